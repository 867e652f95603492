"""Raw predictions -> what users ask for: scores, labels, probabilities, values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PROBABILITY_LOSSES = ("logistic", "clipped_square")


def scores(raw: NDArray[np.float64], loss: str, classifies: bool = True) -> NDArray[np.float64]:
    """Turn raw predictions of the outputs into the decision function (R-0.7)."""
    if classifies and loss == "clipped_square":
        raw = raw - 0.5
    return raw[:, 0] if raw.shape[1] == 1 else raw


def labels(decision: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """Turn the decision function into labels; 0 counts as positive (A-20)."""
    several = decision.ndim > 1
    return np.asarray(classes[decision.argmax(axis=1) if several else (decision >= 0).astype(int)])


def probabilities(decision: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Turn the decision function into probabilities; those of several classes add up to one."""
    p = independent(decision, loss)
    if p.ndim == 1:
        return np.column_stack([1.0 - p, p])
    total = p.sum(axis=1, keepdims=True)
    even = np.full_like(p, 1.0 / p.shape[1])
    return np.asarray(np.divide(p, total, out=even, where=total > 0))


def independent(decision: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Turn scores into probabilities, each by itself."""
    if loss == "logistic":
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-decision)))
    return np.clip(decision + 0.5, 0.0, 1.0)


def values(raw: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Turn raw predictions of a regressor into predictions of y."""
    if loss == "poisson":
        return np.exp(np.clip(raw, -30.0, 30.0))
    if loss == "clipped_square":
        return np.clip(raw, 0.0, 1.0)
    return raw
