"""Simple averaged SGD: every step touches every feature, and every iterate is added up."""

from __future__ import annotations

from typing import Any

import numpy as np

_SLOPES: dict[str, Any] = {  # of the loss at the prediction p of the target y
    "absolute": lambda p, y: -1.0 if p <= y else 1.0,
    "squared": lambda p, y: p - y,
    "logistic": lambda p, y: -y / (1.0 + np.exp(min(p * y, 700.0))),
    "hinge": lambda p, y: -y if p * y <= 1 else 0.0,
    "huber": lambda p, y: float(np.clip(p - y, -0.1, 0.1)),
    "epsilon_insensitive": lambda p, y: float(np.sign(p - y)) if abs(p - y) > 0.1 else 0.0,
}


def averaged(
    X: Any, y: Any, *, loss: str, alpha: float, passes: int = 1, center: bool = False
) -> tuple[Any, float]:
    """Return the means of all weight vectors and of all intercepts, in the order of the rows.

    Parameters
    ----------
    X : array of shape (rows, features)
    y : array of shape (rows,)
    loss : str
    alpha : float
        The objective is alpha/2 (||w||^2 + b^2) + mean loss; the step is 1/(alpha t).
    passes : int
    center : bool
        Subtract the mean of all rows from each.
    """
    slope = _SLOPES[loss]
    mean = X.mean(axis=0) if center else np.zeros(X.shape[1])
    w, b = np.zeros(X.shape[1]), 0.0
    w_sum, b_sum, t = np.zeros(X.shape[1]), 0.0, 0
    for _ in range(passes):
        for x, target in zip(X, y, strict=True):
            t += 1
            x = x - mean
            step = slope(float(w @ x) + b, target) / (alpha * t)
            w = (1 - 1 / t) * w - step * x
            b = (1 - 1 / t) * b - step
            w_sum += w
            b_sum += b - float(w @ mean)
    return w_sum / t, b_sum / t
