"""Dual averaging and the margin perceptron in the core equal their oracles (P-08, P-10, P-20)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracles.margin_perceptron import margin_perceptron
from support.exactness import DTYPES, STORES, assert_equal
from support.streams import dense_weights, learner, streams
from thresher import _core


@given(
    data=st.data(),
    margin=st.sampled_from([0.0, 0.0107, 0.53]),
    eta=st.sampled_from([1.0, 0.271]),
    l1=st.sampled_from([0.0, 0.0103, 0.117]),
    shrink=st.sampled_from(["touched", "all"]),
    fit_intercept=st.booleans(),
    store=STORES,
    dtype=DTYPES,
)
def test_margin_perceptron(
    data: st.DataObject, margin: float, eta: float, l1: float, shrink: str, fit_intercept: bool,
    store: str, dtype: str,
) -> None:  # fmt: skip
    """R-9.1, A-33, and the facts of certificates: updates, culprits, norm bound (R-9.7, R-9.8)."""
    stream = data.draw(streams("hinge"))
    passes = [np.concatenate(stream.passes)]  # the core does not stop by itself after a pass
    oracle = margin_perceptron(
        stream.X, stream.y, passes, margin=margin, eta=eta, l1=l1, shrink=shrink,
        fit_intercept=fit_intercept, sample_weight=stream.weight, dtype=np.dtype(dtype),
    )  # fmt: skip
    # Exactly at the margin, a rounding error would decide whether there is an update.
    y = stream.y[passes[0][: oracle.steps]]
    gaps = np.abs(y * np.array(oracle.predictions) - margin)
    assume(np.all((gaps > 1e-4) | (np.array(oracle.predictions) == 0)))
    model = learner(
        "margin_perceptron", stream.width, store=store, dtype=dtype, loss="margin", epsilon=margin,
        eta0=eta, l1=l1, shrink=shrink, fit_intercept=fit_intercept,
        sweep_events=data.draw(st.sampled_from([2, 1 << 20])),
    )  # fmt: skip
    model.learn(stream.batch(), passes[0])
    assert_equal(model, stream, oracle, dtype)
    facts = model.facts()
    assert facts["updates"] == oracle.updates
    assert facts["culprits"] == oracle.updated.sum()
    w, b = dense_weights(model, stream.width), model.intercept()
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    if shrink == "touched":
        assert facts["nonzeros"] == np.count_nonzero(w)
        assert facts["norm_bound"] == pytest.approx(oracle.bound, rel=tolerance, abs=tolerance)
        if oracle.updates:
            assert facts["least_shrinkage"] == pytest.approx(
                oracle.least_eps, rel=tolerance, abs=tolerance
            )
    assert w @ w + b * b <= facts["norm_bound"] + tolerance
    radius = np.max(np.sum(stream.X**2, axis=1)) + fit_intercept
    assert facts["squared_radius"] <= radius * (1 + 1e-6) + 1e-9


@given(data=st.data(), l1=st.sampled_from([0.0, 0.0103]), dtype=DTYPES)
def test_margin_perceptron_pauses(data: st.DataObject, l1: float, dtype: str) -> None:
    """R-9.3: it pauses after the update that reaches the number of nonzeros; the excess is below
    the number of features in a row.
    """
    stream = data.draw(streams("logistic", weighted=False))
    order = np.concatenate(stream.passes)
    limit = data.draw(st.integers(1, stream.width))
    oracle = margin_perceptron(
        stream.X, stream.y, [order], l1=l1, max_density=limit / stream.width, margin=0.0107,
        dtype=np.dtype(dtype),
    )  # fmt: skip
    gaps = np.abs(stream.y[order[: oracle.steps]] * np.array(oracle.predictions) - 0.0107)
    assume(np.all((gaps > 1e-4) | (np.array(oracle.predictions) == 0)))
    model = learner(
        "margin_perceptron", stream.width, dtype=dtype, loss="margin", epsilon=0.0107, eta0=1.0,
        l1=l1, shrink="touched", fit_intercept=False,
    )  # fmt: skip
    model.pause_at(limit)
    made = model.learn(stream.batch(), order)
    assert made == oracle.steps
    assert model.paused == (oracle.stop == "density")
    assert_equal(model, stream, oracle, dtype)
    if model.paused:
        last = stream.X[order[made - 1]]
        assert limit <= model.nonzeros() < limit + np.count_nonzero(last)


def test_dual_averaging_on_a_long_stream_in_single_precision() -> None:
    """The sum of gradients grows with t; steps must not be rounded away."""
    y = np.where(np.arange(100_000) % 5 == 0, -1.0, 1.0)
    batch = _core.dense_batch(np.ones((100_000, 1), np.float32), y)
    weights = {}
    for dtype in ("float32", "float64"):
        model = learner("dual_averaging", 1, dtype=dtype, l1=0.1, strength=0.1, fit_intercept=False)
        for _ in range(100):
            model.learn(batch)
        weights[dtype] = dense_weights(model, 1)[0]
    assert weights["float32"] == pytest.approx(weights["float64"], abs=1e-3)
