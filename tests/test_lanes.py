"""A lane equals the same model trained alone: over rules, losses, masks, classes, stores."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher import _core
from thresher.rules import RULES
from thresher.settings import core_parameters

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}

GRIDS: dict[str, dict[str, list[Any]]] = {
    "truncated-gradient": {
        "gravity": [0.0, 1e-3, 0.02, 0.1],
        "eta0": [0.05, 0.3, "auto"],
        "period": [1, 3],
        "schedule": ["constant", "sqrt"],
        "l2": [0.0, 0.01],
        "shrink": ["truncate", "subgradient"],
        "ceiling": [float("inf"), 0.2],
        "average": [False, True],
        "decay": [1.0, 0.7],
    },
    "forward-backward": {"l1": [0.0, 1e-3, 0.03], "eta0": [0.1, 0.4], "l2": [0.0, 0.1]},
    "ftrl": {"l1": [0.0, 0.5, 2.0], "l2": [0.0, 0.1], "alpha": [0.1, 1.0], "beta": [0.5, 1.0]},
    "averaged-sgd": {"alpha": [0.01, 0.5, 2.0, 20.0]},
    "margin-perceptron": {"l1": [0.0, 0.01], "margin": [0.5, 1.0], "eta0": [0.1, 1.0],
                          "shrink": ["row", "all"]},
    "dual-averaging": {"l1": [0.0, 0.01], "strength": [1.0, 3.0]},
}  # fmt: skip


def rows_of(rng: np.random.Generator, rows: int, width: int, dtype: str) -> Any:
    X = sp.random(rows, width, 0.3, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    return (0.4 * X).astype(dtype)


def batch_of(X: Any, y: Any, weights: Any = None) -> _core.Batch:
    return _core.sparse_batch(X.indptr, X.indices, X.data, X.shape[1], y, weights)


def defaults(rule: str) -> dict[str, Any]:
    return {name: p.default for name, p in RULES[rule].parameters.items()}


def same(got: Any, expected: Any, dtype: str) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


@st.composite
def cases(draw: Any) -> dict[str, Any]:
    rule = draw(st.sampled_from(sorted(GRIDS)))
    # averaged SGD makes roundings of clipped_square large: steps of 1 / (alpha t), rows scaled
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


@settings(max_examples=max(100, settings.default.max_examples))
@given(cases())
def test_a_lane_equals_the_model_trained_alone(case: dict[str, Any]) -> None:
    rule, dtype, store, rng = case["rule"], case["dtype"], case["store"], case["rng"]
    rows, width = 60, 12
    X = rows_of(rng, rows, width, dtype)
    signs = case["points"][0].get("loss", "hinge") in RULES["truncated-gradient"].losses_for(
        "classifier"
    ) or rule == "margin-perceptron"  # fmt: skip
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0) if signs else np.abs(rng.standard_normal(rows))
    low = 0.0 if case["points"][0].get("loss") == "clipped_square" else -1.0
    y = np.where(y == -1.0, low, y) if signs else y
    weights = rng.integers(0, 3, rows).astype(float) if case["weighted"] else None
    several = case["classes"] and signs
    numbers, words, clocks, targets = [], [], [], []
    for i, point in enumerate(case["points"]):
        params = defaults(rule) | point | {"fit_intercept": case["intercept"]}
        told, said = core_parameters(rule, params, rows)
        told["sweep_events"] = float(case["sweep_events"])
        numbers.append(told)
        words.append(said)
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
        if alone.loss_sum > 500:  # what explodes makes roundings large
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


def grid(rule: str = "truncated-gradient", lanes: int = 15, **common: Any) -> Any:
    """Return numbers and words of lanes that differ in gravity."""
    found = [
        core_parameters(rule, defaults(rule) | {"gravity": 1e-3 * i, "eta0": 0.1} | common, None)
        for i in range(lanes)
    ]
    return [numbers for numbers, _ in found], [words for _, words in found]


def levels() -> list[str]:
    found = []
    for level in ("portable", "avx2", "avx512"):
        try:
            _core.make_lanes("ftrl", "dense", "float32", 1, [], [], [], [], level)
        except ValueError:
            continue
        found.append(level)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lanes", [2, 3, 4, 7, 15, 16, 17, 31, 33])
@pytest.mark.parametrize(
    "rule", ["truncated-gradient", "ftrl", "averaged-sgd", "margin-perceptron"]
)
def test_all_levels_give_the_same_bits(rule: str, lanes: int, dtype: str) -> None:
    rng = np.random.default_rng(lanes)
    X = rows_of(rng, 200, 30, dtype)
    y = np.sign(rng.standard_normal(200))
    own = {"truncated-gradient": "gravity", "averaged-sgd": "alpha"}.get(rule, "l1")
    told = [
        core_parameters(rule, defaults(rule) | {own: 0.001 * (i + 1)}, None) for i in range(lanes)
    ]
    states = []
    for level in levels():
        made = _core.make_lanes(
            RULES[rule].core, "dense", dtype, 30, [n for n, _ in told], [w for _, w in told],
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


def test_a_lane_that_diverges_stops_and_the_others_go_on() -> None:
    rng = np.random.default_rng(0)
    X = rows_of(rng, 300, 10, "float64") * 100
    y = rng.standard_normal(300)
    told = [
        core_parameters(
            "truncated-gradient", defaults("truncated-gradient") | {"loss": "squared", "eta0": e},
            None,
        )
        for e in (1e-6, 10.0, 1e-5)
    ]  # fmt: skip
    made = _core.make_lanes(
        "truncated_gradient", "dense", "float64", 10, [n for n, _ in told], [w for _, w in told],
        [0] * 3, [-1] * 3,
    )  # fmt: skip
    made.learn(batch_of(X, y))
    assert made.divergences[0] == made.divergences[2] == ""
    assert "diverged at step" in made.divergences[1]
    assert "lower eta0" in made.divergences[1]
    assert np.isfinite(made.loss_sums()).all()
    assert made.steps()[1] < 300
    assert made.steps()[0] == made.steps()[2] == 300
    alone = _core.make_learner("truncated_gradient", "dense", "float64", 10, *told[2])
    alone.learn(batch_of(X, y))
    same(made.predict(batch_of(X, y))[:, 2], alone.predict(batch_of(X, y)), "float64")
    again = _core.make_lanes(
        "truncated_gradient", "dense", "float64", 10, [n for n, _ in told], [w for _, w in told],
        [0] * 3, [-1] * 3,
    )  # fmt: skip
    again.restore(made.state())
    assert again.divergences == made.divergences
    assert again.steps().tolist() == made.steps().tolist()


@pytest.mark.parametrize("rule", ["truncated-gradient", "dual-averaging"])
def test_a_bad_row_is_named_and_the_rows_before_it_are_learned(rule: str) -> None:
    rng = np.random.default_rng(0)
    X = rows_of(rng, 50, 10, "float64")
    X.data[X.indptr[20]] = np.nan
    numbers, words = zip(*[core_parameters(rule, defaults(rule), None)] * 3, strict=True)
    made = _core.make_lanes(
        RULES[rule].core, "dense", "float64", 10, list(numbers), list(words), [0] * 3, [-1] * 3
    )
    with pytest.raises(_core.DataError, match="row 20: the value of feature"):
        made.learn(batch_of(X, np.ones(50)))
    assert made.steps().tolist() == [20] * 3
    with pytest.raises(_core.DataError, match="row 3: the label is NaN"):
        made.learn(batch_of(X, np.r_[np.ones(3), np.nan, np.ones(46)]))
    assert made.steps().tolist() == [23] * 3


@pytest.mark.parametrize("rule", ["truncated-gradient", "dual-averaging"])
def test_a_bad_row_stops_lanes_that_do_not_see_it_too(rule: str) -> None:
    X = rows_of(np.random.default_rng(0), 50, 10, "float64")
    X.data[X.indptr[20]] = np.nan
    seen = np.ones((50, 2), np.uint8)
    seen[20, 0] = 0
    numbers, words = zip(*[core_parameters(rule, defaults(rule), None)] * 2, strict=True)
    made = _core.make_lanes(
        RULES[rule].core, "dense", "float64", 10, list(numbers), list(words), [0, 1], [-1, -1]
    )
    with pytest.raises(_core.DataError, match="row 20"):
        made.learn(batch_of(X, np.ones(50)), seen=seen)
    assert made.steps().tolist() == [20, 20]


def test_the_last_key_has_a_cell_of_its_own_after_sweeps() -> None:
    keys = np.array([-1] + [7] * 12 + [9, 9], np.int64)
    labels = np.array([0.1] + [0.0] * 12 + [50.0, 50.0])
    told, said = core_parameters(
        "truncated-gradient",
        defaults("truncated-gradient")
        | {"loss": "squared", "gravity": 0.5, "eta0": 0.1, "period": 1, "fit_intercept": False},
        None,
    )
    told["sweep_events"] = 5.0
    batch = _core.sparse_batch(np.arange(16), keys, np.ones(15), 0, labels)
    alone = _core.make_learner("truncated_gradient", "hashed", "float64", 0, told, said)
    alone.learn(batch)
    made = _core.make_lanes(
        "truncated_gradient", "hashed", "float64", 0, [told] * 2, [said] * 2, [0, 0], [-1, -1]
    )
    made.learn(batch)
    for found in (made.weights(0), made.weights(1)):
        assert found[0].tolist() == alone.weights()[0].tolist() == [9]
        np.testing.assert_allclose(found[1], alone.weights()[1], rtol=1e-12)


def test_lanes_that_cannot_be_added_leave_no_trace() -> None:
    numbers, words = grid(lanes=2)
    made = _core.make_lanes(
        "truncated_gradient", "dense", "float64", 10, numbers, words, [0, 0], [-1, -1]
    )
    short = {name: value for name, value in numbers[0].items() if name != "gravity"}
    with pytest.raises(ValueError, match="gravity"):
        made.add([short], words[:1], [7], [3])
    assert len(made) == 2
    assert made.intercepts().tolist() == [0.0, 0.0]
    made.learn(batch_of(rows_of(np.random.default_rng(0), 5, 10, "float64"), np.ones(5)))
    assert made.steps().tolist() == [5, 5]


def test_what_is_not_finite_is_an_error_unless_it_is_asked_for() -> None:
    rule = "truncated-gradient"
    params = defaults(rule) | {"loss": "squared", "eta0": 1e10}
    told = [core_parameters(rule, params, None)] * 2
    made = _core.make_lanes(
        RULES[rule].core, "dense", "float32", 2, [n for n, _ in told], [w for _, w in told],
        [0, 0], [-1, -1],
    )  # fmt: skip
    made.learn(batch_of(sp.csr_matrix(np.ones((1, 2), np.float32)), np.full(1, 1e19)))
    huge = batch_of(sp.csr_matrix(np.full((3, 2), 1e18, np.float32)), None)
    assert not np.isfinite(made.predict(huge, finite=False)).any()
    with pytest.raises(_core.DataError, match="the prediction overflows"):
        made.predict(huge)


def test_lanes_may_be_added_while_others_learn() -> None:
    numbers, words = grid(lanes=1)
    X = rows_of(np.random.default_rng(0), 4000, 10, "float64")
    batch = batch_of(X, np.ones(4000))
    made = _core.make_lanes("truncated_gradient", "dense", "float64", 10, numbers, words, [0], [-1])
    shapes: list[int] = []

    def learn() -> None:
        for _ in range(10):
            before = made.learn(batch, before=True)
            assert before is not None
            shapes.append(before.shape[1])

    thread = threading.Thread(target=learn)
    thread.start()
    for _ in range(20):
        made.add(numbers * 3, words * 3, [0] * 3, [-1] * 3)
    thread.join()
    assert len(made) == 61
    assert len(shapes) == 10
    assert shapes == sorted(shapes)


def test_lanes_may_come_later() -> None:
    rng = np.random.default_rng(0)
    X = rows_of(rng, 100, 10, "float64")
    kinds = rng.integers(0, 3, 100).astype(np.int32)
    starts = np.arange(101)
    numbers, words = grid(lanes=1)
    made = _core.make_lanes(
        "truncated_gradient", "hashed", "float64", 0, numbers * 2, words * 2, [0] * 2, [0, 1]
    )
    batch = batch_of(X, None)
    made.learn(batch, None, 0, 40, classes=(starts, kinds))
    made.add(numbers, words, [0], [2])
    made.learn(batch, None, 40, 100, classes=(starts, kinds))
    assert made.steps().tolist() == [100, 100, 60]
    alone = _core.make_learner("truncated_gradient", "hashed", "float64", 0, numbers[0], words[0])
    own = batch_of(X, np.where(kinds == 2, 1.0, -1.0))
    alone.learn(own, None, 40, 100)
    same(made.predict(batch)[:, 2], alone.predict(own), "float64")


def test_a_state_of_other_lanes_or_damaged_is_refused() -> None:
    rng = np.random.default_rng(0)
    X, y = rows_of(rng, 30, 10, "float64"), np.ones(30)

    def fresh(lanes: int, rule: str = "truncated_gradient") -> _core.Lanes:
        name = rule.replace("_", "-")
        numbers, words = grid(name, lanes) if name == "truncated-gradient" else zip(
            *[core_parameters(name, defaults(name), None)] * lanes, strict=True
        )  # fmt: skip
        return _core.make_lanes(
            rule, "dense", "float64", 10, list(numbers), list(words), [0] * lanes, [-1] * lanes
        )

    made = fresh(5)
    made.learn(batch_of(X, y))
    state = made.state()
    for other in (fresh(4), fresh(5, "ftrl")):
        with pytest.raises(ValueError, match="state"):
            other.restore(state)
    for damaged in (state[:-1], state + b"\0", state[:10], b""):
        before = made.state()
        with pytest.raises(ValueError, match="state"):
            made.restore(damaged)
        assert made.state() == before


def test_a_level_that_there_is_none_of_is_refused() -> None:
    numbers, words = grid(lanes=2)
    with pytest.raises(ValueError, match="level: 'auto', 'portable'"):
        _core.make_lanes(
            "truncated_gradient", "dense", "float32", 10, numbers, words, [0, 0], [-1, -1], "sse9"
        )


def test_lanes_say_what_they_have_to_be_told() -> None:
    numbers, words = grid(lanes=2)
    X = rows_of(np.random.default_rng(0), 10, 10, "float64")

    def made(targets: list[int]) -> _core.Lanes:
        return _core.make_lanes(
            "truncated_gradient", "dense", "float64", 10, numbers, words, [0, 1], targets
        )

    with pytest.raises(ValueError, match="seen: a column for each clock"):
        made([-1, -1]).learn(batch_of(X, np.ones(10)), seen=np.ones((10, 1), np.uint8))
    with pytest.raises(ValueError, match="learning needs labels, or classes"):
        made([0, 1]).learn(batch_of(X, np.ones(10)))
    classes = (np.arange(11), np.zeros(10, np.int32))
    with pytest.raises(ValueError, match="learning needs labels, or classes"):
        made([-1, 1]).learn(batch_of(X, None), classes=classes)
    with pytest.raises(ValueError, match="clocks: 0 or more"):
        _core.make_lanes(
            "truncated_gradient", "dense", "float64", 10, numbers, words, [0, -1], [-1, -1]
        )
