"""The native core equals the naive oracles: weights, support, predictions and losses.

This is tested over losses, schedules, stores, number types, orders, batches and resume points
(P-03, P-04, P-06, P-08, P-18, P-20).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.averaged import averaged
from oracles.forward_backward import forward_backward
from oracles.truncated_gradient import truncated_gradient
from support.exactness import DTYPES, STORES, assert_equal, calm, is_steady, nudged
from support.rule_cases import CASES, draw_values
from support.streams import LOSSES, SCHEDULES, Stream, dense_weights, learner, streams
from thresher import _core
from thresher.rules import RULES


@st.composite
def truncation(draw: st.DrawFn) -> dict[str, Any]:
    """Draw parameters of truncated gradient; ceilings and gravities are not round numbers."""
    shrink = draw(st.sampled_from(["truncate", "truncate", "round", "subgradient"]))
    ceilings = [0.0317, 0.213] if shrink == "round" else [np.inf, np.inf, 0.0317, 0.213]
    return {
        "loss": draw(st.sampled_from(LOSSES)),
        "schedule": draw(st.sampled_from(SCHEDULES)),
        "eta0": draw(st.sampled_from([0.0503, 0.151])),
        "relative": draw(st.booleans()),
        "fading": draw(st.booleans()),
        "power": draw(st.sampled_from([0.3, 0.75])),
        "decay": draw(st.sampled_from([1.0, 0.7])),
        "gravity": draw(st.sampled_from([0.0, 0.0107, 0.103])),
        "period": draw(st.sampled_from([1, 3, 10])),
        "ceiling": draw(st.sampled_from(ceilings)),
        "shrink": shrink,
        "l2": draw(st.sampled_from([0.0, 0.0, 0.0531, 1.07])),
        "fit_intercept": draw(st.booleans()),
        "average": draw(st.booleans()),
        "epsilon": 0.1,
        "quantile": 0.3,
    }


@given(data=st.data(), params=truncation(), store=STORES, dtype=DTYPES)
def test_truncated_gradient(
    data: st.DataObject, params: dict[str, Any], store: str, dtype: str
) -> None:
    """P-03, P-04, P-06: lazy equals eager for every shrink, ceiling, schedule and average."""
    stream = data.draw(streams(params["loss"]))
    if dtype == "float32" and params["shrink"] == "subgradient":
        assume(not params["gravity"])  # weights oscillate around zero, so rounding errors grow
    sweep = data.draw(st.sampled_from([2, 7, 1 << 20]))
    oracle = truncated_gradient(
        stream.X, stream.y, stream.passes, sample_weight=stream.weight, dtype=np.dtype(dtype),
        **params,
    )  # fmt: skip
    assume(calm(oracle))
    model = learner(
        "truncated_gradient", stream.width, store=store, dtype=dtype, sweep_events=sweep, **params
    )
    stream.learn(model)
    assert_equal(model, stream, oracle, dtype)
    if params["average"]:
        assert_equal(model, stream, oracle, dtype, average=True)


@given(
    data=st.data(),
    loss=st.sampled_from(LOSSES),
    l1=st.sampled_from([0.0, 0.0131, 0.117]),
    l2=st.sampled_from([0.0, 0.09]),
    schedule=st.sampled_from(SCHEDULES),
    store=STORES,
    dtype=DTYPES,
)
def test_forward_backward(
    data: st.DataObject, loss: str, l1: float, l2: float, schedule: str, store: str, dtype: str
) -> None:
    """P-08: FOBOS is truncated gradient with K = 1 and no ceiling."""
    stream = data.draw(streams(loss))
    oracle = forward_backward(
        stream.X, stream.y, stream.passes, loss=loss, l1=l1, l2=l2, eta0=0.217, schedule=schedule,
        fit_intercept=True, sample_weight=stream.weight, dtype=np.dtype(dtype),
    )  # fmt: skip
    assume(calm(oracle))
    model = learner(
        "truncated_gradient", stream.width, store=store, dtype=dtype, loss=loss, gravity=l1, l2=l2,
        eta0=0.217, schedule=schedule,
    )  # fmt: skip
    assert_equal(stream.learn(model), stream, oracle, dtype)


@pytest.mark.parametrize("rule", [rule for rule, case in CASES.items() if case.oracle])
@given(data=st.data(), loss=st.sampled_from(LOSSES), fit=st.booleans(), store=STORES, dtype=DTYPES)
def test_rules_equal_their_oracles(
    rule: str, data: st.DataObject, loss: str, fit: bool, store: str, dtype: str
) -> None:
    """FTRL (R-8.4), dual averaging (R-8.1) and AdaGrad, whose weights return to exact zero."""
    stream, case = data.draw(streams(loss)), CASES[rule]
    assert case.oracle is not None
    params = draw_values(data.draw, case.drawn) | {"loss": loss, "fit_intercept": fit}
    rest = (stream.y, stream.passes)
    given = {"sample_weight": stream.weight, "dtype": np.dtype(dtype), **params}
    oracle = case.oracle(stream.X, *rest, **given)
    assume(calm(oracle))
    if rule == "adagrad":  # its first steps may be long
        assume(is_steady(oracle, case.oracle(nudged(stream.X, dtype), *rest, **given), dtype))
    sweep_events = data.draw(st.sampled_from([2, 1 << 20]))
    model = learner(
        RULES[rule].core, stream.width, store=store, dtype=dtype, sweep_events=sweep_events,
        **params,
    )  # fmt: skip
    assert_equal(stream.learn(model), stream, oracle, dtype)


@given(
    data=st.data(),
    loss=st.sampled_from(LOSSES),
    alpha=st.sampled_from([0.5137, 2.971]),
    center=st.booleans(),
    fit_intercept=st.booleans(),
    store=STORES,
    dtype=DTYPES,
)
def test_averaged_sgd(
    data: st.DataObject, loss: str, alpha: float, center: bool, fit_intercept: bool, store: str,
    dtype: str,
) -> None:  # fmt: skip
    """P-18: last and averaged weights, plain and centred, equal the dense recursion."""
    assume(not (center and loss == "clipped_square"))
    stream = data.draw(streams(loss))
    oracle = averaged(
        stream.X, stream.y, stream.passes, loss=loss, alpha=alpha, center=center,
        fit_intercept=fit_intercept, sample_weight=stream.weight, dtype=np.dtype(dtype),
    )  # fmt: skip
    assume(calm(oracle))
    model = learner(
        "averaged_sgd", stream.width, store=store, dtype=dtype, loss=loss, alpha=alpha,
        center=center, fit_intercept=fit_intercept,
    )  # fmt: skip
    if center:
        model.center(np.arange(stream.width, dtype=np.uint64), stream.X.mean(axis=0))
    stream.learn(model)
    assert_equal(model, stream, oracle, dtype, sparse=False)
    assert_equal(model, stream, oracle, dtype, average=True, sparse=False)


RESUMED = [(RULES[rule].core, params) for rule, case in CASES.items() for params in case.resumed]


@pytest.mark.parametrize(("rule", "params"), RESUMED)
@given(data=st.data(), dtype=st.sampled_from(["float32", "float64"]))
def test_batches_reads_and_stores_do_not_matter(
    rule: str, params: dict[str, Any], data: st.DataObject, dtype: str
) -> None:
    """R-0.8, P-20: results are bit-identical for any batches, stores, saves and reads between."""
    stream = data.draw(streams("logistic"))
    order = np.concatenate(stream.passes)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=4)))
    batch = stream.batch()

    def fresh(store: str) -> _core.Learner:
        model = learner(rule, stream.width, store=store, dtype=dtype, sweep_events=5, **params)
        if params.get("center"):
            model.center(np.arange(stream.width, dtype=np.uint64), stream.X.mean(axis=0))
        return model

    whole = fresh("dense")
    whole.learn(batch, order)
    pieces = fresh("hashed")
    for first, last in zip([0, *cuts], [*cuts, len(order)], strict=True):
        pieces.learn(batch, order, first, last)
        pieces.nonzeros(), pieces.weights(True), pieces.predict(batch), pieces.facts()
        state = pieces.state()
        pieces = learner(rule, stream.width, store="hashed", dtype=dtype, sweep_events=5, **params)
        pieces.restore(state)
    for average in (False, True):
        for one, other in zip(whole.weights(average), pieces.weights(average), strict=True):
            np.testing.assert_array_equal(one, other)
        assert whole.intercept(average) == pieces.intercept(average)
        np.testing.assert_array_equal(whole.predict(batch, average), pieces.predict(batch, average))
    assert whole.loss_sum == pieces.loss_sum
    assert whole.rate == pieces.rate
    assert whole.facts() == pieces.facts()


@given(data=st.data(), params=truncation())
def test_prediction_sequence(data: st.DataObject, params: dict[str, Any]) -> None:
    """P-03: the prediction before every step equals that of the eager oracle."""
    stream = data.draw(streams(params["loss"]))
    params["average"] = False
    oracle = truncated_gradient(
        stream.X, stream.y, stream.passes, sample_weight=stream.weight, **params
    )
    assume(calm(oracle))
    model, batch = learner("truncated_gradient", stream.width, **params), stream.batch()
    step = 0
    for number, order in enumerate(stream.passes):
        if number:
            model.next_pass()
        for position, row in enumerate(order):
            p = model.predict(batch)[row]
            assert p == pytest.approx(oracle.predictions[step], abs=1e-9, rel=1e-9)
            model.learn(batch, order, position, position + 1)
            step += 1


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_weights_far_smaller_than_the_pending_shrinkage(store: str, average: bool) -> None:
    """A weight of 1e-19 with a pending shrinkage of 0.5 is neither lost nor misread."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), 1e-18 * rng.normal(size=200)])
    stream = Stream(X, rng.choice([-1.0, 1.0], 200), None, [np.arange(200)])
    params = {"loss": "logistic", "eta0": 0.1, "gravity": 0.05, "period": 7, "average": average}
    oracle = truncated_gradient(stream.X, stream.y, stream.passes, **params)
    model = stream.learn(
        learner("truncated_gradient", 2, store=store, fit_intercept=False, **params)
    )
    np.testing.assert_allclose(dense_weights(model, 2), oracle.weights, rtol=1e-9, atol=1e-30)
    if average:
        got = dense_weights(model, 2, average=True)
        np.testing.assert_allclose(got, oracle.average_weights, rtol=1e-9, atol=1e-12)
