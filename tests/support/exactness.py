"""Comparison of core learners with their oracles, and strategies of the property tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from oracles.result import Result
from support.streams import Stream, dense_weights
from thresher import _core

STORES = st.sampled_from(["dense", "hashed"])
TOLERANCES = {"float64": 1e-10, "float32": 1e-5}
DTYPES = st.sampled_from(["float64", "float64", "float32"])


def nudged(X: np.ndarray, dtype: str) -> np.ndarray:
    """Return rows with rounding errors: each value is changed by about the precision of a type."""
    noise = np.random.default_rng(0).standard_normal(X.shape)
    return X * (1 + np.finfo(dtype).eps * noise)


def is_steady(oracle: Result, of_nudged: Result, dtype: str) -> bool:
    """Tell whether rounding errors of the rows change the weights by less than is allowed."""
    scale = max(1.0, float(np.abs(oracle.weights).max(initial=0.0)), abs(oracle.intercept))
    change = np.abs(oracle.weights - of_nudged.weights).max(initial=0.0)
    return float(change) <= TOLERANCES[dtype] * scale


def assert_equal(
    model: _core.Learner,
    stream: Stream,
    oracle: Result,
    dtype: str,
    average: bool = False,
    sparse: bool = True,
) -> None:
    """Compare weights, support, intercept and progressive loss with the oracle.

    Tolerances are relative to the largest weight. In single precision, or with a rule that makes
    no zeros, a weight may be zero in one of the two and a rounding error in the other.
    """
    w = dense_weights(model, stream.width, average)
    expected, bias = oracle.weights, oracle.intercept
    if average:
        assert oracle.average_weights is not None
        assert oracle.average_intercept is not None
        expected, bias = oracle.average_weights, oracle.average_intercept
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)), abs(bias))
    tolerance = TOLERANCES[dtype] * scale
    np.testing.assert_allclose(w, expected.astype(float), rtol=0, atol=tolerance)
    assert model.intercept(average) == pytest.approx(bias, abs=tolerance)
    if sparse and dtype == "float64":
        np.testing.assert_array_equal(w != 0, np.abs(expected) > 1e-13 * scale)
    assert model.nonzeros(average) == np.count_nonzero(w)
    assert model.steps == oracle.steps
    total = sum(oracle.losses)
    assert model.loss_sum == pytest.approx(total, rel=100 * tolerance / scale, abs=100 * tolerance)


def calm(oracle: Result) -> bool:
    """Tell whether predictions stayed small, so that rounding errors stay small, too."""
    return bool(np.all(np.isfinite(oracle.predictions)) and np.abs(oracle.predictions).max() < 50)
