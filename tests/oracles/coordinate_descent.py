"""Stochastic coordinate descent, SCD (R-12.1, R-12.2, A-15).

    F(w, b) = (1/S) sum_i s_i loss(z_i, y_i) + l1 ||w||_1,   z = X w + b,   S = sum_i s_i

    For the coordinate j drawn:
        g_j    = (1/S) sum_i s_i loss'(z_i, y_i) x_ij
        beta_j = beta (1/S) sum_i s_i x_ij^2       step "coordinate" (R-12.2)
                 beta                              step "global" (R-12.1: |x_ij| <= 1 is assumed)
        w_j <- soft(w_j - g_j/beta_j, l1/beta_j)

beta bounds the second derivative of the loss. Only losses with such a bound can be used, except
clipped_square, whose rows are scaled. The draw -1 is a step of the bias: a coordinate with x = 1
and l1 = 0, whose beta_j is beta in both cases. A coordinate without data (no x_ij != 0 of positive
weight) stays 0. z is computed again at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import losses
from .operators import soft
from .result import Matrix, Vector

CURVATURE = {name: c for name, c in losses.CURVATURE.items() if name != "clipped_square"}
"""beta of each loss: the least upper bound of its second derivative in p."""

INTERCEPT = -1
"""The draw for a step of the bias."""


@dataclass(frozen=True)
class DescentResult:
    """A trained model, and F after each step."""

    weights: Vector
    intercept: float
    objectives: list[float]


def coordinate_descent(
    X: Matrix,
    y: Vector,
    draws: Sequence[int] | Vector,
    *,
    loss: str,
    l1: float = 0.0,
    step: str = "coordinate",
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    dtype: Any = np.float64,
) -> DescentResult:
    """Step through the coordinates drawn, from w = 0 and b = 0."""
    if loss not in CURVATURE:
        raise ValueError(f"loss {loss!r} is not allowed; one of {', '.join(CURVATURE)} is")
    if step not in ("coordinate", "global"):
        raise ValueError(f"unknown step {step!r}; one of coordinate, global is allowed")
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    share = (s / s.sum()).astype(dtype)  # s_i / S
    beta = CURVATURE[loss]

    w = np.zeros(X.shape[1], dtype=dtype)
    b = 0.0
    objectives: list[float] = []
    for j in draws:
        z = X @ w + real(b)
        slopes = [losses.derivative(loss, float(z[i]), float(y[i]), epsilon) for i in range(len(X))]
        if j == INTERCEPT:
            b = b - float(share @ np.array(slopes, dtype=dtype)) / beta
        else:
            x = X[:, j]
            g_j = float((share * np.array(slopes, dtype=dtype)) @ x)
            curvature = float((share * x) @ x)
            beta_j = beta * curvature if step == "coordinate" else beta
            if curvature > 0:
                w[j] = soft(w[j : j + 1] - real(g_j / beta_j), l1 / beta_j)[0]
        objectives.append(objective(X, y, w, b, loss=loss, l1=l1, sample_weight=s, epsilon=epsilon))

    return DescentResult(w, b, objectives)


def objective(
    X: Matrix,
    y: Vector,
    w: Vector,
    b: float,
    *,
    loss: str,
    l1: float,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
) -> float:
    """Return F(w, b), in double precision."""
    s = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    z = X.astype(np.float64) @ w.astype(np.float64) + b
    total = sum(
        float(s[i]) * losses.value(loss, float(z[i]), float(y[i]), epsilon) for i in range(len(X))
    )
    return total / float(s.sum()) + l1 * float(np.abs(w).sum(dtype=np.float64))
