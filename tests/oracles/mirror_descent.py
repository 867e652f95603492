"""Stochastic mirror descent with a p-norm link, SMIDAS (R-11.1 to R-11.3, A-12).

    w = link(theta):   w_j = sgn(theta_j) |theta_j|^(p-1) / ||theta||_p^(p-2),   0 if theta = 0
    q = c_x (w.x) + b,   g = s_t loss'(q, y)
    theta <- soft(theta - eta_t g c_x x, a)     on all coordinates, at every step
             a = l1          "paper"            (002 eq 9, A-12)
             a = eta_t l1    "scaled"           (the cited original)
    b <- b - eta_t g

theta = 0 and b = 0 at the start; p > 1 is the parameter ``p``. The link is computed with
m = max|theta|, so that no power leaves the range of the numbers (R-11.3):

    w_j = sgn(theta_j) m (|theta_j|/m)^(p-1) / (sum_i (|theta_i|/m)^p)^((p-2)/p)

The bias is not part of the p-norm and is never thresholded: a plain SGD coordinate. t counts the
steps, and s_t is the weight of step t: see `repeats`. A slope of 1 moves the prediction by at most
eta_t (p - 1) ||c_x x||_p^2, and the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import losses
from .operators import soft
from .rates import Relative, rate
from .repeats import repeats, slope
from .result import Matrix, Order, Result, Vector


@dataclass(frozen=True)
class MirrorResult(Result):
    """A trained model and its dual vector: weights = link(dual)."""

    dual: Vector


def mirror_descent(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    p: float,
    l1: float = 0.0,
    threshold: str = "paper",
    eta0: float = 0.1,
    schedule: str = "constant",
    decay: float = 1.0,
    power: float = 0.5,
    relative: bool = False,
    fit_intercept: bool = False,
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> MirrorResult:
    """Learn from the rows of X in the given order, from theta = 0 and b = 0. No average."""
    if threshold not in ("paper", "scaled"):
        raise ValueError(f"unknown threshold {threshold!r}; one of paper, scaled is allowed")
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight

    theta = np.zeros(X.shape[1], dtype=dtype)
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
                q = c * float(link(theta, p) @ x) + b
                if whole is not None:
                    predictions.append(q)
                    values.append(whole * losses.value(loss, q, label, epsilon, quantile))
                if weight == 0:
                    continue
                t += 1
                eta = rate(schedule, t, pass_number, eta0, decay, power)
                by, by_bias = divisors.divisors(c * x, losses.steepness(loss, q, label))
                eta, eta_bias = eta / by, eta / by_bias
                norm = (p - 1) * float(np.linalg.norm(c * x, p)) ** 2
                reach = eta * norm + (eta_bias if fit_intercept else 0.0)
                g = slope(loss, q, label, weight, reach, epsilon, quantile)

                theta = theta - real(eta * g * c) * x
                theta = soft(theta, l1 if threshold == "paper" else eta * l1)
                if fit_intercept:
                    b = b - eta_bias * g

    rows_learned = len(predictions)
    return MirrorResult(link(theta, p), b, None, None, predictions, values, rows_learned, theta)


def link(theta: Vector, p: float) -> Vector:
    """Return the weights of the dual vector theta (R-11.3)."""
    real = theta.dtype.type
    m = np.max(np.abs(theta), initial=real(0))
    if m == 0:
        return np.zeros_like(theta)
    share = np.abs(theta) / m
    norm = np.sum(share ** real(p)) ** real((p - 2) / p)
    w: Vector = np.sign(theta) * m * share ** real(p - 1) / norm
    return w
