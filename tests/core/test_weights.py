"""The weight of a row means repetitions (R-3.6): of every rule, and in lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.truncated_gradient import truncated_gradient
from support.exactness import DTYPES, STORES, assert_equal
from support.lane_cases import batch_of, defaults, same
from support.rule_cases import CASES
from support.streams import LOSSES, Stream, learner, streams
from thresher import _core
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters

LEARNERS = [
    (RULES[rule].core, params)
    for rule, case in CASES.items()
    for params in case.resumed
    if rule != "one-pass"  # its steps have weight 1, 1, 2, 4, ...: nearly the same as copies
]
LEARNERS += [
    ("truncated_gradient", {"gravity": 0.05, "target_nnz": 3.0, "relative": True, "eta0": 0.5}),
    ("ftrl", {"l1": 0.1, "target_nnz": 3.0}),
]


def made(rule: str, stream: Stream, store: str, dtype: str, params: dict[str, Any]) -> Any:
    model = learner(rule, stream.width, store=store, dtype=dtype, sweep_events=5, **params)
    if params.get("center"):
        model.center(np.arange(stream.width, dtype=np.uint64), stream.X.mean(axis=0))
    return model


def assert_same_bits(one: _core.Learner, other: _core.Learner, batch: _core.Batch) -> None:
    for average in (False, True):
        for found, expected in zip(one.weights(average), other.weights(average), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert one.intercept(average) == other.intercept(average)
        np.testing.assert_array_equal(one.predict(batch, average), other.predict(batch, average))
    assert one.rate == other.rate
    facts, expected_facts = one.facts(), other.facts()
    facts.pop("culprits", None), expected_facts.pop("culprits", None)  # copies are different rows
    assert facts == expected_facts


@pytest.mark.parametrize(("rule", "params"), LEARNERS)
@given(data=st.data(), store=STORES, dtype=DTYPES)
def test_an_integer_weight_equals_copies_to_the_last_bit(
    rule: str, params: dict[str, Any], data: st.DataObject, store: str, dtype: str
) -> None:
    """R-3.6: also 0 copies, and with states saved between the rows."""
    if store == "hashed" and rule == "mirror_descent":
        store = "dense"
    stream = data.draw(streams("logistic", weighted=False))
    copies = data.draw(
        st.lists(
            st.sampled_from([0, 1, 2, 3, 32]),
            min_size=len(stream.y),
            max_size=len(stream.y),
        )
    )
    stream.weight = np.array(copies, float)
    weighted, batch = made(rule, stream, store, dtype, params), stream.batch()
    repeated = made(rule, stream, store, dtype, params)
    plain = Stream(stream.X, stream.y, None, []).batch()
    for number, order in enumerate(stream.passes):
        if number:
            weighted.next_pass(), repeated.next_pass()
        cut = data.draw(st.integers(0, len(order)))
        assert weighted.learn(batch, order, 0, cut) == cut
        state = weighted.state()
        weighted = learner(
            rule, stream.width, store=store, dtype=dtype, sweep_events=5, **params
        )  # its state has the mean of the rows
        weighted.restore(state)
        weighted.learn(batch, order, cut, len(order))
        repeated.learn(plain, np.repeat(order, np.array(copies)[order]))
    assert_same_bits(weighted, repeated, plain)
    assert weighted.steps == sum(map(len, stream.passes))
    total = sum(float(stream.weight[order].sum()) for order in stream.passes)
    assert weighted.weight_sum == pytest.approx(total)


@pytest.mark.parametrize(("rule", "params"), LEARNERS)
def test_a_row_of_weight_0_is_left_out(rule: str, params: dict[str, Any]) -> None:
    """Also if it is the first row; its label and values must be valid all the same."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9, 4))
    weight = np.array([0.0, 1, 1, 0, 1, 0, 0, 1, 1])
    stream = Stream(X, rng.choice([-1.0, 1.0], 9), weight, [np.arange(9)])
    kept = Stream(X[weight > 0], stream.y[weight > 0], None, [np.arange(5)])
    one, other = (made(rule, rows, "dense", "float64", params) for rows in (stream, kept))
    if params.get("center"):  # the mean of all rows
        other = made(rule, stream, "dense", "float64", params)
    assert_same_bits(stream.learn(one), kept.learn(other), kept.batch())
    assert one.loss_sum == other.loss_sum
    assert (one.steps, other.steps, one.weight_sum) == (9, 5, 5.0)
    bad = Stream(np.where(X > 1, np.inf, X), stream.y, np.zeros(9), [np.arange(9)])
    with pytest.raises(ValueError, match="row"):
        bad.learn(made(rule, bad, "dense", "float64", params | {"center": False}))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", [33.0, 1e3, 1e9])
@pytest.mark.parametrize("relative", [False, True])
def test_no_weight_makes_a_step_overshoot(loss: str, weight: float, relative: bool) -> None:
    """R-3.7: the prediction of a heavy row ends at the minimum of its loss, not beyond it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 5))
    y = {"poisson": rng.poisson(1.0, 12).astype(float), "clipped_square": rng.random(12)}.get(
        loss, rng.choice([-1.0, 1.0], 12) * (1.0 if loss in CLASSES else 2.3)
    )
    stream = Stream(X, y, np.full(12, weight), [np.arange(12)])
    params = {"loss": loss, "eta0": 0.31, "relative": relative, "gravity": 1e-4}
    oracle = truncated_gradient(
        X, y, stream.passes, sample_weight=stream.weight, fit_intercept=True, **params
    )
    model = learner("truncated_gradient", 5, **params)
    batch = stream.batch()
    for row in range(12):
        before = model.predict(batch)[row]
        model.learn(batch, np.array([row]))
        after = model.predict(batch)[row]
        if loss == "poisson":
            assert np.isfinite(after)
        elif loss not in ("logistic", "hinge", "squared_hinge", "modified_huber"):
            assert abs(after - y[row]) <= abs(before - y[row]) + 1e-3
        else:
            assert min(before * y[row], 1.0) - 1e-3 <= after * y[row] < max(before * y[row], 50.0)
    assert_equal(model, stream, oracle, "float64")


CLASSES = ("logistic", "hinge", "squared_hinge", "modified_huber")


@pytest.mark.parametrize("rule", [rule for rule in CASES if RULES[rule].streams])
@pytest.mark.parametrize("weight", [50.0, 1e6])
def test_every_rule_stays_finite_with_heavy_rows(rule: str, weight: float) -> None:
    rng = np.random.default_rng(5)
    X, rows = rng.normal(size=(60, 6)), np.arange(60)
    y = np.sign(X[:, 0] + 0.1 * rng.normal(size=60))
    heavy = np.where(rows % 7 == 0, weight, 1.0)
    rate = RULES[rule].rate_from_rows
    params = defaults(rule) | ({rate: 1.0} if rate else {})
    numbers, words = core_parameters(rule, params, 60)
    model = _core.make_learner(RULES[rule].core, "dense", "float64", 6, numbers, words)
    batch = Stream(X, y, heavy, []).batch()
    model.learn(batch, rows)
    right = model.predict(batch, bool(params.get("average"))) * y > 0
    assert right[heavy > 1].mean() > 0.75


@given(data=st.data(), dtype=st.sampled_from(["float64", "float32"]))
def test_lanes_repeat_rows(data: st.DataObject, dtype: str) -> None:
    """Lanes with integer weights equal lanes with copies of the rows, which clocks see or not."""
    rule = data.draw(st.sampled_from(sorted(r for r, case in CASES.items() if case.lanes)))
    stream = data.draw(streams("logistic", weighted=False))
    rows, rng = len(stream.y), np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    copies, grid = rng.integers(0, 5, rows), CASES[rule].lanes
    points = [
        defaults(rule) | {name: values[rng.integers(len(values))] for name, values in grid.items()}
        for _ in range(6)
    ]
    found = [core_parameters(rule, point, rows) for point in points]
    clocks, seen = [i % 2 for i in range(6)], (rng.random((rows, 2)) < 0.7).astype(np.uint8)

    def lanes() -> Any:
        return _core.make_lanes(
            RULES[rule].core, "dense", dtype, stream.width, [n for n, _ in found],
            [w for _, w in found], clocks, [-1] * 6, "auto",
        )  # fmt: skip

    weighted, repeated = lanes(), lanes()
    X = stream.csr.astype(dtype)
    before = weighted.learn(batch_of(X, stream.y, copies.astype(float)), seen=seen, before=True)
    at = np.repeat(np.arange(rows), copies)
    first = np.concatenate([[0], np.cumsum(copies)[:-1]])[copies > 0]
    expected = repeated.learn(batch_of(X[at], stream.y[at]), seen=seen[at], before=True)
    if before is not None and len(at):
        same(np.nan_to_num(before[copies > 0]), np.nan_to_num(expected[first]), dtype)
    for lane in range(6):
        w, other = np.zeros((2, stream.width))
        for model, into in ((weighted, w), (repeated, other)):
            keys, values = model.weights(lane, False)
            into[keys.astype(int)] = values
        same(w, other, dtype)
        same(weighted.intercepts(False)[lane], repeated.intercepts(False)[lane], dtype)


@pytest.mark.parametrize("weight", [3, 50, 1000])
def test_weights_of_the_rule_one_pass_are_nearly_copies(weight: int) -> None:
    """Steps of weight 1, 1, 2, 4, ... predict the same classes as that many copies of the row."""
    right = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, rows = rng.normal(size=(60, 6)), np.arange(60)
        y = np.sign(X[:, 0] + 0.1 * rng.normal(size=60))
        heavy = np.where(rows % 7 == 0, weight, 1)
        params = {"loss": "logistic", "fit_intercept": True}
        numbers, words = core_parameters("one-pass", defaults("one-pass") | params, 60)
        plain = Stream(X, y, None, []).batch()
        models = [
            _core.make_learner("one_pass", "dense", "float64", 6, numbers, words) for _ in "ab"
        ]
        models[0].learn(Stream(X, y, heavy.astype(float), []).batch(), rows)
        models[1].learn(plain, np.repeat(rows, heavy))
        right.append([(model.predict(plain) * y > 0).mean() for model in models])
    weighted, copies = np.mean(right, axis=0)
    assert abs(weighted - copies) < 0.05
    assert weighted > 0.85
