"""Random problems and comparisons for the tests of the oracles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from oracles import losses
from oracles.losses import MARGIN
from oracles.result import Matrix, Result, Vector

INF = math.inf
BOUNDED = sorted(losses.CONSTANTS)
SMOOTH = (*losses.CURVATURE, "poisson")

reals = st.floats(-4, 4, allow_nan=False)
fractions = st.floats(0, 1, allow_nan=False)
amounts = st.floats(0, 3, allow_nan=False)


def label(name: str, v: float) -> float:
    """Turn any v in [-4, 4] into a label that the loss allows."""
    if name in MARGIN:
        return 1.0 if v > 0 else -1.0
    if name == "clipped_square":
        return abs(v) / 4
    if name == "poisson":
        return float(round(abs(v)))
    return v


def problem(name: str, seed: int, n: int = 40, d: int = 8) -> tuple[Matrix, Vector]:
    """Draw sparse rows (one of them empty) and labels that the loss allows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    X[n // 2] = 0
    noise = 0.5 * rng.normal(size=n)
    y = np.clip(X @ rng.normal(size=d) + noise, -4, 4)
    return X, np.array([label(name, v) for v in y])


def orders(n: int, passes: int, seed: int) -> list[Any]:
    """Draw one permutation of the n rows per pass."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(n) for _ in range(passes)]


def assert_same(one: Result, other: Result, tolerance: float = 0.0) -> None:
    """Assert that models, and predictions at every step, are equal."""
    np.testing.assert_allclose(one.weights, other.weights, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.intercept, other.intercept, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.predictions, other.predictions, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.losses, other.losses, rtol=tolerance, atol=tolerance)
    assert one.steps == other.steps
