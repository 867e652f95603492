"""Regularised dual averaging, RDA (R-8.1, A-13), written with the sums of the gradients.

    G_t = sum over steps 1..t of g c_x x,   g = s_t loss'(p, y),   p = c_x (w.x) + b
    w   = argmin_v  G_t.v + t l1 ||v||_1 + gamma_t sqrt(t) (0.5 ||v||^2 + rho ||v||_1)
        = -soft(G_t, t l1 + gamma_t rho sqrt(t)) / (gamma_t sqrt(t))

w is 0 before the first step; w after step t makes the prediction of step t + 1. With gbar = G_t/t
this is R-8.1: lambda_t = l1 + gamma rho/sqrt(t), w = -(sqrt(t)/gamma) soft(gbar, lambda_t).

    gamma_t = gamma, or, if relative, gamma m_t,   m_t = mean over steps 1..t of s c_x^2 ||x||^2
              (gamma where m_t = 0), s the steepness of the loss there

gamma is the parameter ``strength``, rho the parameter ``boost``. t counts the steps of all passes,
and s_t is the weight of step t: see `repeats`. gamma_t includes step t; the prediction of step t
uses gamma_{t-1}. A slope of 1 moves c_x (w.x) by at most c_x^2 ||x||^2 / (gamma_t sqrt(t)).
The bias is one more coordinate with x = 1 (no c_x) and l1 = rho = 0, kept as a Python float; its
relative gamma has the mean of s alone. If fading, t l1 is the sum of l1/i over the steps i.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import losses
from .operators import soft
from .repeats import repeats, slope
from .result import Matrix, Order, Result, Vector


def dual_averaging(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    l1: float = 0.0,
    strength: float = 1.0,
    boost: float = 0.0,
    relative: bool = False,
    fading: bool = False,
    fit_intercept: bool = False,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> Result:
    """Learn from the rows of X in the given order, from G = 0. No average."""
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight

    G = np.zeros(X.shape[1], dtype=dtype)
    G_b = 0.0
    w = np.zeros_like(G)
    b = 0.0
    norms = sizes = penalty = 0.0  # t m_t, t times the mean of s, t l1
    predictions: list[float] = []
    values: list[float] = []
    t = 0
    for rows in order:
        for row in rows:
            x, label = X[row], float(y[row])
            c = losses.row_scale(loss, x)
            for weight, whole in repeats(s[row]):
                p = c * float(w @ x) + b
                if whole is not None:
                    predictions.append(p)
                    values.append(whole * losses.value(loss, p, label, epsilon, quantile))
                if weight == 0:
                    continue
                t += 1
                penalty = penalty + (l1 / t if fading else l1)
                size, norm = losses.steepness(loss, p, label), sum(float(v) ** 2 for v in c * x)
                norms = norms + size * norm
                sizes = sizes + size
                gamma = strength * norms / t if relative and norms > 0 else strength
                gamma_b = strength * sizes / t if relative and sizes > 0 else strength

                reach = (norm / gamma + (1.0 / gamma_b if fit_intercept else 0.0)) / math.sqrt(t)
                g = slope(loss, p, label, weight, reach, epsilon, quantile)
                G = G + real(g * c) * x
                if fit_intercept:
                    G_b = G_b + g
                w = weights_of(G, t, penalty, gamma, boost)
                b = -G_b / (gamma_b * math.sqrt(t))

    return Result(w, b, None, None, predictions, values, len(predictions))


def weights_of(G: Vector, t: int, penalty: float, gamma: float, rho: float) -> Vector:
    """Return the weights of the summed gradients G and penalties after step t >= 1."""
    real = G.dtype.type
    w: Vector = -soft(G, penalty + gamma * rho * math.sqrt(t)) / real(gamma * math.sqrt(t))
    return w
