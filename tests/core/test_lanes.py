"""A lane equals the same model trained separately: over rules, losses, masks, classes, stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.lane_cases import batch_of, defaults, grid, levels, rows_of, same
from support.rule_cases import CASES
from support.streams import weights_for
from thresher import _core
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters

GRIDS = {rule: case.lanes for rule, case in CASES.items() if case.lanes}


@st.composite
def cases(draw: Any) -> dict[str, Any]:
    rule = draw(st.sampled_from(sorted(GRIDS)))
    # with clipped_square, rounding errors of averaged SGD are large: its steps are 1 / (alpha t)
    left_out = "clipped_square" if rule == "averaged-sgd" else ""
    losses = [m for m in RULES[rule].losses if m != left_out] or ["margin"]
    loss = draw(st.sampled_from(losses))
    lanes = draw(st.integers(2, 40))
    grid = GRIDS[rule]
    fixed = {name: draw(st.sampled_from(grid[name])) for name in sorted(grid)}
    varied = draw(st.sets(st.sampled_from(sorted(grid)), max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    points = [
        fixed | {name: grid[name][rng.integers(len(grid[name]))] for name in sorted(varied)}
        for _ in range(lanes)
    ]
    if draw(st.booleans()) and rule == "truncated-gradient":
        points = [p | {"shrink": "round", "ceiling": 0.05} for p in points]
    return {
        "rule": rule,
        "points": [p | ({"loss": loss} if losses != ["margin"] else {}) for p in points],
        "dtype": draw(st.sampled_from(["float64", "float32"])),
        "store": draw(st.sampled_from(["dense", "hashed"])),
        "level": draw(st.sampled_from(["auto", "portable"])),
        "clocks": draw(st.integers(1, 4)),
        "classes": draw(st.sampled_from([0, 3])),
        "intercept": draw(st.booleans()),
        "weighted": draw(st.booleans()),
        "cut": draw(st.integers(0, 60)),
        "sweep_events": draw(st.sampled_from([5, 1 << 20])),
        "rng": rng,
    }


@settings(max_examples=4 * settings.default.max_examples)
@given(cases())
def test_a_lane_equals_a_separate_model(case: dict[str, Any]) -> None:
    rule, dtype, store, rng = case["rule"], case["dtype"], case["store"], case["rng"]
    rows, width = 60, 12
    X = rows_of(rng, rows, width, dtype)
    loss = case["points"][0].get("loss", "margin")
    signs = case["points"][0].get("loss", "hinge") in RULES["truncated-gradient"].losses_for(
        "classifier"
    ) or rule == "margin-perceptron"  # fmt: skip
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0) if signs else np.abs(rng.standard_normal(rows))
    low = 0.0 if case["points"][0].get("loss") == "clipped_square" else -1.0
    y = np.where(y == -1.0, low, y) if signs else y
    weights = weights_for(rng, loss, rows) if case["weighted"] else None
    several = case["classes"] and signs
    numbers, words, clocks, targets = [], [], [], []
    for i, point in enumerate(case["points"]):
        params = defaults(rule) | point | {"fit_intercept": case["intercept"]}
        own_numbers, own_words = core_parameters(rule, params, rows)
        own_numbers["sweep_events"] = float(case["sweep_events"])
        numbers.append(own_numbers)
        words.append(own_words)
        clocks.append(i % case["clocks"])
        targets.append(i % case["classes"] if several else -1)
    seen = (rng.random((rows, case["clocks"])) < 0.8).astype(np.uint8)
    kinds = rng.integers(0, case["classes"] or 1, rows).astype(np.int32)
    classes = (np.arange(rows + 1), kinds) if several else None
    core = RULES[rule].core
    order = rng.permutation(rows)
    average = bool(case["points"][0].get("average")) or rule == "averaged-sgd"

    def fresh() -> _core.Lanes:
        return _core.make_lanes(
            core, store, dtype, width, numbers, words, clocks, targets, case["level"]
        )

    lanes = fresh()
    batch = batch_of(X, y, weights)
    cut = case["cut"]
    before = lanes.learn(batch, order, 0, cut, seen=seen, classes=classes, low=low, before=True)
    resumed = fresh()
    resumed.restore(lanes.state())
    assert resumed.state() == lanes.state() or store == "hashed"
    resumed.learn(batch, order, cut, rows, seen=seen, classes=classes, low=low)
    resumed.next_pass()
    resumed.learn(batch, None, 0, 20, seen=seen, classes=classes, low=low)
    stopped = [bool(message) for message in resumed.divergences]
    calm = np.flatnonzero(~np.array(stopped))
    raw = np.zeros((rows, len(numbers)))
    raw[:, calm] = resumed.predict(batch, calm, average=average)
    for lane in range(len(numbers)):
        alone = _core.make_learner(core, store, dtype, width, numbers[lane], words[lane])
        target = np.where(kinds == targets[lane], 1.0, low) if several else y
        own = batch_of(X, target, weights)
        expected = np.full(cut, np.nan)

        def mine(visited: Any, clock: int = clocks[lane]) -> Any:
            return visited[seen[visited, clock] == 1]

        try:
            for place, row in enumerate(order[:cut]):
                if seen[row, clocks[lane]]:
                    expected[place] = alone.predict(own)[row] if lane == 0 else 0.0
                    alone.learn(own, np.array([row]))
            alone.learn(own, mine(order[cut:]))
            alone.next_pass()
            alone.learn(own, mine(np.arange(20)))
        except _core.DivergenceError:
            assert stopped[lane]
            continue
        assert not stopped[lane]
        if alone.loss_sum > 500:  # near divergence, rounding errors are large
            continue
        assert (np.isnan(before[:, lane]) == np.isnan(expected)).all()
        if lane == 0:
            same(np.nan_to_num(before[:, 0]), np.nan_to_num(expected), dtype)
        same(raw[:, lane], alone.predict(own, average), dtype)
        dense, alone_dense = np.zeros(width), np.zeros(width)
        keys, values = resumed.weights(lane, average)
        dense[keys] = values
        keys, values = alone.weights(average)
        alone_dense[keys] = values
        same(dense, alone_dense, dtype)
        same(resumed.intercepts(average)[lane], alone.intercept(average), dtype)
        same(resumed.loss_sums()[lane], alone.loss_sum, dtype)
        assert resumed.steps()[lane] == alone.steps
        assert resumed.weight_sums()[lane] == alone.weight_sum
        np.testing.assert_allclose(resumed.rates()[lane], alone.rate, rtol=1e-12)
        assert (dense != 0).sum() == resumed.nonzeros(average)[lane]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lanes", [2, 3, 4, 7, 15, 16, 17, 31, 33])
@pytest.mark.parametrize(
    "rule", ["truncated-gradient", "ftrl", "averaged-sgd", "margin-perceptron"]
)
def test_all_instruction_sets_give_the_same_bits(rule: str, lanes: int, dtype: str) -> None:
    rng = np.random.default_rng(lanes)
    X = rows_of(rng, 200, 30, dtype)
    y = np.sign(rng.standard_normal(200))
    own = {"truncated-gradient": "gravity", "averaged-sgd": "alpha"}.get(rule, "l1")
    arguments = [
        core_parameters(rule, defaults(rule) | {own: 0.001 * (i + 1)}, None) for i in range(lanes)
    ]
    states = []
    for level in levels():
        made = _core.make_lanes(
            RULES[rule].core, "dense", dtype, 30, [n for n, _ in arguments],
            [w for _, w in arguments],
            [0] * lanes, [-1] * lanes, level,
        )  # fmt: skip
        made.learn(batch_of(X, y))
        assert made.layouts[0].startswith(level)
        states.append(made.state())
    assert all(state == states[0] for state in states)


def test_lanes_that_share_a_clock_share_lines() -> None:
    numbers, words = grid(lanes=16)
    made = _core.make_lanes(
        "truncated_gradient", "dense", "float32", 100, numbers, words, [0] * 16, [-1] * 16,
        "portable",
    )  # fmt: skip
    assert set(made.layouts) == {"portable lines of 16"}
    assert made.store_bytes == 100 * 68  # 16 weights and a stamp
    made = _core.make_lanes(
        "truncated_gradient", "dense", "float32", 100, numbers[:15], words[:15], [0] * 15,
        [-1] * 15, "portable",
    )  # fmt: skip
    assert made.store_bytes == 100 * 64  # 15 weights and a stamp
