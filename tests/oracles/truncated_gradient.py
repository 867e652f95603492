"""Truncated gradient, coefficient rounding and the L1 sub-gradient (R-3.2, R-4.1, R-5.1, R-6.1).

    p = c_x (w.x) + b,   g = s_i loss'(p, y),   u = -eta_i g c_x x,   b <- b - eta_i g

    If K divides i, with a = eta_i K gravity and D = 1 + eta_i K l2:
        truncate     w <- T1(w + u, a, theta) / D          R-6.1, gradient first (R-6.5, A-03)
        round        w <- T0(w + u, theta) / D             R-4.1, A-01
        subgradient  w <- (w - a sgn(w)) / D + u           R-5.1, A-06: sgn of the old weight
    else:
        w <- w + u                                         R-3.2

Fading gravity is gravity / i in step i. With a target number of weights, gravity is multiplied at
the first truncation at or after each step of `steering_due`: by the square root of
(nonzeros + 1) / (1.25 target + 1), clipped to 0.7..1.5. Gravity stays within a tenth and ten times
of its given value.
i counts the steps, and s_i is the weight of step i: see `repeats`.
w_1 = 0, b_1 = 0. 1/D is the proximal map of (l2/2)||w||^2; every weight is divided, also those
above theta. The bias is never shrunk. c_x is 1 except for clipped_square (R-1.8). The average
is the mean of (w, b) over all steps, each taken after its update.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import losses
from .operators import T0, T1
from .rates import Relative, rate, steering_due
from .repeats import repeats, slope
from .result import Matrix, Order, Result, Vector


def truncated_gradient(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    gravity: float = 0.0,
    period: int = 1,
    ceiling: float = math.inf,
    shrink: str = "truncate",
    l2: float = 0.0,
    eta0: float = 0.1,
    schedule: str = "constant",
    decay: float = 1.0,
    power: float = 0.5,
    relative: bool = False,
    fading: bool = False,
    fit_intercept: bool = False,
    average: bool = False,
    target_nnz: int = 0,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> Result:
    """Learn from the rows of X in the given order, from w = 0 and b = 0."""
    if shrink not in ("truncate", "round", "subgradient"):
        raise ValueError(
            f"unknown shrink {shrink!r}; one of truncate, round, subgradient is allowed"
        )
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    K, theta = period, ceiling

    w = np.zeros(X.shape[1], dtype=dtype)
    b = 0.0
    w_sum = np.zeros_like(w)
    b_sum = 0.0
    divisors = Relative(relative)
    predictions: list[float] = []
    values: list[float] = []
    i = 0
    pending, given = False, gravity
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
                i += 1
                eta = rate(schedule, i, pass_number, eta0, decay, power)
                by, by_bias = divisors.divisors(c * x, losses.steepness(loss, p, label))
                eta, eta_bias = eta / by, eta / by_bias
                reach = eta * c * c * float(x @ x) + (eta_bias if fit_intercept else 0.0)
                g = slope(loss, p, label, weight, reach, epsilon, quantile)

                u = real(-eta * g * c) * x
                if i % K == 0:
                    a = eta * K * (gravity / i if fading else gravity)
                    D = real(1 + eta * K * l2)
                    if shrink == "truncate":
                        w = T1(w + u, a, theta) / D
                    elif shrink == "round":
                        w = T0(w + u, theta) / D
                    else:
                        w = (w - real(a) * np.sign(w)) / D + u
                else:
                    w = w + u
                if fit_intercept:
                    b = b - eta_bias * g

                w_sum = w_sum + w
                b_sum = b_sum + b
                pending = pending or steering_due(i)
                if target_nnz and pending and i % K == 0:
                    pending = False
                    ratio = (np.count_nonzero(w) + 1) / (1.25 * target_nnz + 1)
                    gravity = gravity * min(max(math.sqrt(ratio), 0.7), 1.5)
                    gravity = min(max(gravity, given / 10), given * 10)

    return Result(
        weights=w,
        intercept=b,
        average_weights=w_sum / real(max(i, 1)) if average else None,
        average_intercept=b_sum / max(i, 1) if average else None,
        predictions=predictions,
        losses=values,
        steps=len(predictions),
    )
