"""FTRL-Proximal (R-8.4), per coordinate, with its published l1, l2, alpha and beta.

    w_j = 0                                                              if |z_j| <= l1
          -(z_j - sgn(z_j) l1) / ((beta + sqrt(n_j)) / alpha + l2)       otherwise
    p = c_x (w.x) + b,   g_j = s_i loss'(p, y) c_x x_j
    sigma_j = (sqrt(n_j + g_j^2) - sqrt(n_j)) / alpha
    z_j <- z_j + g_j - sigma_j w_j,   n_j <- n_j + g_j^2

With a target number of weights, at the steps of `steering_due` l1 becomes the larger of the given
l1 and the (target + 1)-th largest |z_j|.
s_i is the weight of step i, which can be above 1: see `repeats`.
z = n = 0 at the start. The bias is one more coordinate with x = 1 (no c_x) and l1 = l2 = 0,
kept as Python floats.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import losses
from .rates import steering_due
from .repeats import repeats
from .result import Matrix, Order, Result, Vector


def ftrl(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    l1: float = 0.0,
    l2: float = 0.0,
    alpha: float = 0.1,
    beta: float = 1.0,
    fit_intercept: bool = False,
    target_nnz: int = 0,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> Result:
    """Learn from the rows of X in the given order, from z = n = 0. No average."""
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight

    z = np.zeros(X.shape[1], dtype=dtype)
    n = np.zeros(X.shape[1], dtype=dtype)
    z_b, n_b, given_l1 = 0.0, 0.0, l1
    predictions: list[float] = []
    values: list[float] = []
    t = 0
    for rows in order:
        for row in rows:
            x, label = X[row], float(y[row])
            c = losses.row_scale(loss, x)
            for weight, whole in repeats(s[row]):
                w = weights_of(z, n, l1, l2, alpha, beta)
                b = bias_of(z_b, n_b, alpha, beta)
                p = c * float(w @ x) + b
                if whole is not None:
                    predictions.append(p)
                    values.append(whole * losses.value(loss, p, label, epsilon, quantile))
                if weight == 0:
                    continue
                t += 1
                g = weight * losses.derivative(loss, p, label, epsilon, quantile)

                g_x = real(g * c) * x
                sigma = (np.sqrt(n + g_x * g_x) - np.sqrt(n)) / real(alpha)
                z = z + g_x - sigma * w
                n = n + g_x * g_x
                if fit_intercept:
                    sigma_b = (math.sqrt(n_b + g * g) - math.sqrt(n_b)) / alpha
                    z_b = z_b + g - sigma_b * b
                    n_b = n_b + g * g
                if target_nnz and steering_due(t):
                    sizes = sorted((float(abs(v)) for v in z if v != 0), reverse=True)
                    least = sizes[target_nnz] if len(sizes) > target_nnz else 0.0
                    l1 = max(given_l1, least)

    w = weights_of(z, n, l1, l2, alpha, beta)
    b = bias_of(z_b, n_b, alpha, beta)
    return Result(w, b, None, None, predictions, values, len(predictions))


def weights_of(z: Vector, n: Vector, l1: float, l2: float, alpha: float, beta: float) -> Vector:
    """Return the weights of the state (z, n)."""
    real = z.dtype.type
    w = np.zeros_like(z)
    nonzero = np.abs(z) > real(l1)
    z, n = z[nonzero], n[nonzero]
    w[nonzero] = -(z - np.sign(z) * real(l1)) / ((real(beta) + np.sqrt(n)) / real(alpha) + real(l2))
    return w


def bias_of(z: float, n: float, alpha: float, beta: float) -> float:
    """Return the bias of its state (z, n): the same formula with l1 = l2 = 0."""
    return 0.0 if z == 0 else -z / ((beta + math.sqrt(n)) / alpha)
