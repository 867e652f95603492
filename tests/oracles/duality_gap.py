"""The duality gap of coordinate descent, with dense arrays (R-12.3).

    F(w, b) = sum_i p_i loss(z_i, y_i) + l1 ||w||_1,   p_i = s_i / S
    D(u)    = -sum_i p_i loss*(u_i / p_i, y_i)   if |x_j . u| <= l1, and sum_i u_i = 0 for the bias

u is p_i loss'(z_i, y_i). With a bias, the larger of its positive and negative parts is scaled to
the sum of the other. Then u is scaled by min(1, l1 / max_j |x_j . u|).
"""

from __future__ import annotations

import math

import numpy as np

from . import losses
from .coordinate_descent import objective
from .result import Matrix, Vector


def conjugate(loss: str, v: float, y: float, epsilon: float = 0.1) -> float:
    """Return loss*(v) = sup_p (p v - loss(p, y)), for v in its domain."""
    a = -v * y
    if loss == "logistic":
        a = min(max(a, 0.0), 1.0)
        return sum(q * math.log(q) for q in (a, 1.0 - a) if q > 0)
    if loss in ("squared_hinge", "modified_huber"):
        return a * a / 4 - a
    if loss in ("squared", "huber"):
        return v * y + v * v / 2
    assert loss == "square"
    return v * y + v * v / 4


def duality_gap(
    X: Matrix,
    y: Vector,
    w: Vector,
    b: float,
    *,
    loss: str,
    l1: float,
    sample_weight: Vector | None = None,
    intercept: bool = False,
    epsilon: float = 0.1,
) -> float:
    """Return F(w, b) - D(u)."""
    s = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    p = s / s.sum()
    z = X @ w + b
    pairs = list(zip(z.tolist(), np.asarray(y, float).tolist(), strict=True))
    u = p * np.array([losses.derivative(loss, *pair, epsilon) for pair in pairs])
    if intercept:
        positive, negative = u[u > 0].sum(), -u[u < 0].sum()
        size = min(positive, negative)
        if positive > 0:
            u[u > 0] *= size / positive
        if negative > 0:
            u[u < 0] *= size / negative
    largest = np.abs(X.T @ u).max(initial=0.0)
    u *= min(1.0, l1 / largest) if largest > 0 else 1.0
    dual = -sum(
        p_i * conjugate(loss, u_i / p_i, y_i)
        for p_i, u_i, (_, y_i) in zip(p.tolist(), u.tolist(), pairs, strict=True)
        if p_i > 0
    )
    return objective(X, y, w, b, loss=loss, l1=l1, sample_weight=s, epsilon=epsilon) - dual
