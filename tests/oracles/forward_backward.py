"""Forward-backward splitting, FOBOS (R-8.3), with an l2 term.

    forward    w_half = w - eta_t g c_x x,   g = s_t loss'(p, y),   p = c_x (w.x) + b
    backward   w = argmin_v 0.5 ||v - w_half||^2 + eta_t (l1 ||v||_1 + (l2/2) ||v||^2)
                 = soft(w_half, eta_t l1) / (1 + eta_t l2)

The bias takes the forward step only. The paper's rate is eta_t = 1/sqrt(t).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import losses
from .operators import soft
from .rates import Relative, rate
from .result import Matrix, Order, Result, Vector


def forward_backward(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    l1: float = 0.0,
    l2: float = 0.0,
    eta0: float = 1.0,
    schedule: str = "sqrt",
    decay: float = 1.0,
    power: float = 0.5,
    relative: bool = False,
    fit_intercept: bool = False,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> Result:
    """Learn from the rows of X in the given order, from w = 0 and b = 0. No average."""
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight

    w = np.zeros(X.shape[1], dtype=dtype)
    b = 0.0
    divisors = Relative(relative)
    predictions: list[float] = []
    values: list[float] = []
    t = 0
    for pass_number, rows in enumerate(order):
        for row in rows:
            t += 1
            x, label, weight = X[row], float(y[row]), float(s[row])
            c = losses.row_scale(loss, x)
            p = c * float(w @ x) + b
            eta = rate(schedule, t, pass_number, eta0, decay, power)
            steep = weight * losses.steepness(loss, p, label)
            by, by_bias = divisors.divisors(c * x, steep)
            eta, eta_bias = eta / by, eta / by_bias
            g = weight * losses.derivative(loss, p, label, epsilon, quantile)
            predictions.append(p)
            values.append(weight * losses.value(loss, p, label, epsilon, quantile))

            w_half = w - real(eta * g * c) * x
            w = soft(w_half, eta * l1) / real(1 + eta * l2)
            if fit_intercept:
                b = b - eta_bias * g

    return Result(w, b, None, None, predictions, values, t)
