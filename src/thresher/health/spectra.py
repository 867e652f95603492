"""Largest and smallest singular values of sparse columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DENSE = 400  # rows or columns up to which spectra are computed densely


def extremes(
    X: Any, squares: NDArray[np.float64], mask: NDArray[np.bool_] | None = None,
    tol: float = 1e-7, max_iter: int = 300, smallest: bool = True,
) -> tuple[tuple[float, float], tuple[float, float]]:  # fmt: skip
    """Return bounds of the largest and of the smallest squared singular value.

    Only the columns in the mask are used; `squares` has their squared norms. The two bounds of a
    value are equal if the value was found. X is not copied.
    """

    def forward(v: NDArray[np.float64]) -> NDArray[np.float64]:
        if mask is not None:
            v, inner = np.zeros(len(mask)), v
            v[mask] = inner
        return np.asarray(X @ v)

    def back(u: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(X.T @ u if mask is None else (X.T @ u)[mask])

    rows, width = X.shape[0], len(squares)
    if not squares.any() or not math.isfinite(squares.sum()):
        most = float(squares.max(initial=0.0))
        return (most, most), (0.0, 0.0)
    first, then = (back, forward) if rows < width else (forward, back)
    short = min(rows, width)
    if short <= _DENSE:
        if smallest and rows * width <= _DENSE * 10_000:
            values = np.linalg.svd([first(e) for e in np.eye(short)], compute_uv=False)[::-1] ** 2
        else:
            values = np.linalg.eigvalsh([then(first(e)) for e in np.eye(short)]).clip(0.0)
        high, low = float(values[-1]), 0.0 if rows < width else float(values[0])
        return (high, high), (low, low)
    found = _largest(lambda v: then(first(v)), short, tol, max_iter)
    top = (float(squares.max()), float(squares.sum())) if found is None else (found, found)
    if rows < width or squares.min() == 0 or not smallest:
        return top, (0.0, 0.0)
    gap = _largest(lambda v: top[1] * v - then(first(v)), short, tol, max_iter)
    low = min(float(squares.min()), math.inf if gap is None else max(top[1] - gap, 0.0))
    return top, (0.0 if gap is None else low, low)


def _largest(
    product: Callable[[NDArray[np.float64]], Any], size: int, tol: float, max_iter: int
) -> float | None:
    """Return the largest eigenvalue of a symmetric operator; None if Lanczos does not converge."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=size)
    options = {"v0": start, "ncv": 64, "tol": tol, "maxiter": max_iter}
    try:
        return float(eigsh(operator, 1, which="LA", return_eigenvectors=False, **options)[0])
    except ArpackNoConvergence:
        return None
