"""AdaGrad with an l1 penalty, step by step and for every coordinate.

Duchi, Hazan, Singer, JMLR 2011: composite mirror descent with a diagonal matrix (equation 24).

    p = c_x (w.x) + b,   g_j = s_i loss'(p, y) c_x x_j
    s_j <- s_j + g_j^2,   H_j = delta + sqrt(s_j)
    w_j <- S(w_j - eta g_j / H_j, eta lambda_t / H_j)

s_i is the weight of step i, which can be above 1: see `repeats`.
lambda_t is l1, or l1 / t with `fading`. w_j is 0 where H_j is 0. The bias is one more coordinate
with x = 1 (no c_x) and no penalty, kept as Python floats.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import losses
from .averaging import Part
from .operators import soft
from .repeats import repeats
from .result import Matrix, Order, Result, Vector


def adagrad(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    l1: float = 0.0,
    alpha: float = 1.0,
    delta: float = 1.0,
    fading: bool = False,
    fit_intercept: bool = False,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> Result:
    """Learn from the rows of X in the given order, from w = s = 0. No average."""
    X = np.asarray(X, dtype=dtype)
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    w, s = np.zeros((2, X.shape[1]), dtype=dtype)
    b, s_b = 0.0, 0.0
    predictions: list[float] = []
    values: list[float] = []
    t = 0
    for rows in order:
        for row in rows:
            x, label = X[row], float(y[row])
            c = losses.row_scale(loss, x)
            for weight, whole in repeats(weights[row]):
                p = c * float(w @ x) + b
                if whole is not None:
                    predictions.append(p)
                    values.append(whole * losses.value(loss, p, label, epsilon, quantile))
                if weight == 0:
                    continue
                t += 1
                g = weight * losses.derivative(loss, p, label, epsilon, quantile)
                w, s = step(w, s, X.dtype.type(g * c) * x, alpha, delta, l1 / t if fading else l1)
                if fit_intercept and g != 0:
                    s_b += g * g
                    b -= alpha * g / (delta + math.sqrt(s_b))
    return Result(w, b, None, None, predictions, values, len(predictions))


def step(
    w: Vector, s: Vector, g: Vector, alpha: float, delta: float, l1: float
) -> tuple[Vector, Vector]:
    """Return the weights and the sums of squared gradients after a step."""
    s = s + g * g
    H = s.dtype.type(delta) + np.sqrt(s)
    H[H == 0] = np.inf
    return soft(w - s.dtype.type(alpha) * g / H, s.dtype.type(alpha * l1) / H), s


class AdaGradPart(Part):
    """A part of the rows, for averaging: {w, s} of a feature, {b, s} of the intercept."""

    def _move(self, x: Vector, g: float, w: Vector, b: float, steep: float) -> None:
        q = self.params
        l1 = q["l1"] / self.t if q["fading"] else q["l1"]
        self.s[0], self.s[1] = step(self.s[0], self.s[1], g * x, q["alpha"], q["delta"], l1)
        if q["fit_intercept"] and g != 0:
            self.b[1] += g * g
            self.b[0] -= q["alpha"] * g / (q["delta"] + math.sqrt(self.b[1]))
