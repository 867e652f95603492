"""Averaged SGD on a regularised objective, with centred rows (R-14.1, R-14.2, R-14.7, A-25).

    F(w, b) = (lambda/2)(||w||^2 + b^2) + mean_i loss(w.x_i + b, y_i)

    x_c = x - xbar if center, else x
    p_t = c_x (w_{t-1}.x_c) + b_{t-1},   g_t = s_t loss'(p_t, y)
    w_t = (1 - 1/t) w_{t-1} - g_t/(lambda t) c_x x_c
    b_t = (1 - 1/t) b_{t-1} - g_t/(lambda t)            (0 without an intercept)
    b'_t = b_t - w_t.xbar if center, else b_t           (the bias for raw rows)

w_0 = 0, b_0 = 0, t = 1, 2, ... over all passes; lambda is the parameter ``alpha``. t counts the
steps, and s_t is the weight of step t: see `repeats`. The centring is explicit: xbar, the plain
mean of all rows of X, is subtracted from each row. The averages are the means of w_1..w_T and of
b'_1..b'_T; w_0 is not included (R-14.5).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import losses
from .repeats import repeats, slope
from .result import Matrix, Order, Result, Vector


def averaged(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    alpha: float,
    center: bool = False,
    fit_intercept: bool = True,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> Result:
    """Learn from the rows of X in the given order; ``intercept`` is b', for rows not centred."""
    if center and loss == "clipped_square":
        # c_x differs between rows, so no single b' = b - w.xbar is equivalent to centring.
        raise ValueError("center=True is not defined for clipped_square")
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    xbar = np.zeros(X.shape[1], dtype=dtype)
    if center:
        xbar = X.mean(axis=0, dtype=np.float64).astype(dtype)

    w = np.zeros(X.shape[1], dtype=dtype)
    b = 0.0
    b_raw = 0.0  # b'
    w_sum = np.zeros_like(w)
    b_raw_sum = 0.0
    predictions: list[float] = []
    values: list[float] = []
    t = 0
    for rows in order:
        for row in rows:
            x, label = X[row], float(y[row])
            c = losses.row_scale(loss, x)
            x_c = x - xbar
            for weight, whole in repeats(s[row]):
                p = c * float(w @ x_c) + b
                if whole is not None:
                    predictions.append(p)
                    values.append(whole * losses.value(loss, p, label, epsilon, quantile))
                if weight == 0:
                    continue
                t += 1
                norm = c * c * float(x_c @ x_c) + (1.0 if fit_intercept else 0.0)
                g = slope(loss, p, label, weight, norm / (alpha * t), epsilon, quantile)

                w = real(1 - 1 / t) * w - real(g / (alpha * t) * c) * x_c
                if fit_intercept:
                    b = (1 - 1 / t) * b - g / (alpha * t)
                b_raw = b - float(w @ xbar)

                w_sum = w_sum + w
                b_raw_sum = b_raw_sum + b_raw

    return Result(
        weights=w,
        intercept=b_raw,
        average_weights=w_sum / real(max(t, 1)),
        average_intercept=b_raw_sum / max(t, 1),
        predictions=predictions,
        losses=values,
        steps=len(predictions),
    )
