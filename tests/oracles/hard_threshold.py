"""Gradient descent with hard thresholding, GraDes (R-2.6, R-10.1 to R-10.4).

    w <- H(w + eta A'r, s),   b <- b + eta a'r,   r = v - A w - a b
    A = diag(sqrt(s_i)) X,    v = diag(sqrt(s_i)) y,   a = (sqrt(s_1), sqrt(s_2), ...)
    Psi(w, b) = 0.5 ||r||^2 = 0.5 sum_i s_i (y_i - w.x_i - b)^2                         R-10.2

H keeps the s entries of largest magnitude; among equal entries, the first (R-2.6). s is the
parameter ``n_nonzero``, eta = 1/gamma the parameter ``step``. w = 0 and b = 0 at the start. The
bias is a column of ones that is always kept and does not count in s; it steps with the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .result import Matrix, Vector


@dataclass(frozen=True)
class ThresholdResult:
    """A trained model and the record of its iterations."""

    weights: Vector
    intercept: float
    psi: list[float]
    """Psi at the start and after each iteration."""
    supports: list[Vector]
    """The columns kept, ascending: all of them at the start, then J of each iteration."""


def hard_threshold(
    X: Matrix,
    y: Vector,
    *,
    n_nonzero: int,
    step: float,
    iterations: int,
    fit_intercept: bool = False,
    sample_weight: Vector | None = None,
    dtype: Any = np.float64,
) -> ThresholdResult:
    """Make the iterations from w = 0 and b = 0."""
    real = np.dtype(dtype).type
    s = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    a = np.sqrt(s).astype(dtype)
    A = a[:, None] * np.asarray(X, dtype=dtype)
    v = a * np.asarray(y, dtype=dtype)

    w = np.zeros(A.shape[1], dtype=dtype)
    b = 0.0
    r = v
    psi = [0.5 * float(r @ r)]
    supports: list[Vector] = [np.arange(len(w))]
    for _ in range(iterations):
        w, J = H(w + real(step) * (A.T @ r), n_nonzero)
        if fit_intercept:
            b = b + step * float(a @ r)
        r = v - A @ w - a * real(b)
        psi.append(0.5 * float(r @ r))
        supports.append(J)

    return ThresholdResult(w, b, psi, supports)


def H(v: Vector, s: int) -> tuple[Vector, Vector]:
    """Keep the s entries of v of largest magnitude; return the result and the indices kept."""
    falling = sorted(range(len(v)), key=lambda j: (-abs(v[j]), j))
    J = np.array(sorted(falling[:s]), dtype=np.int64)
    kept = np.zeros_like(v)
    kept[J] = v[J]
    return kept, J


def spectral_radius(A: Matrix, J: Vector, step: float) -> float:
    """Return rho(D_J (I - eta A'A)) from the eigenvalues of the whole matrix (R-10.3)."""
    D = np.zeros((A.shape[1], A.shape[1]))
    D[J, J] = 1.0
    M = np.eye(A.shape[1]) - step * (A.T @ A)
    return float(np.max(np.abs(np.linalg.eigvals(D @ M))))
