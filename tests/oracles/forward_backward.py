"""Forward-backward splitting, FOBOS (R-8.3), with an l2 term.

    forward    w_half = w - eta_t g c_x x,   g = s_t loss'(p, y),   p = c_x (w.x) + b
    backward   w = argmin_v 0.5 ||v - w_half||^2 + eta_t (l1 ||v||_1 + (l2/2) ||v||^2)
                 = soft(w_half, eta_t l1) / (1 + eta_t l2)

t counts the steps, and s_t is the weight of step t: see `repeats`.

The bias takes the forward step only. The paper's rate is eta_t = 1/sqrt(t).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import losses
from .operators import soft
from .rates import Relative, rate
from .repeats import repeats, slope
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
                eta = rate(schedule, t, pass_number, eta0, decay, power)
                by, by_bias = divisors.divisors(c * x, losses.steepness(loss, p, label))
                eta, eta_bias = eta / by, eta / by_bias
                reach = eta * c * c * float(x @ x) + (eta_bias if fit_intercept else 0.0)
                g = slope(loss, p, label, weight, reach, epsilon, quantile)

                w_half = w - real(eta * g * c) * x
                w = soft(w_half, eta * l1) / real(1 + eta * l2)
                if fit_intercept:
                    b = b - eta_bias * g

    return Result(w, b, None, None, predictions, values, len(predictions))
