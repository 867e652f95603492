"""Raw predictions -> what users ask for: scores, labels, probabilities, values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.losses import LOSSES, Link

Array = NDArray[np.float64]


def _sigmoid(raw: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-raw)))


# Probabilities or values from raw predictions and the label of the other classes. Exponents are
# kept within +-30, as in the core.
LINKS: dict[Link, Callable[[Array, float], Array]] = {
    "identity": lambda raw, low: raw,
    "sigmoid": lambda raw, low: _sigmoid(raw),
    "clip": lambda raw, low: (np.clip(raw, low, 1.0) - low) / (1.0 - low),
    "exp": lambda raw, low: np.exp(np.clip(raw, -30.0, 30.0)),
}

# No logistic score stands for a probability of 0 or 1; rounding must not make one of it.
_OPEN = {"sigmoid": (float(np.finfo(np.float64).tiny), 1.0 - 2.0**-53)}


def scores(raw: NDArray[np.float64], loss: str, classifies: bool = True) -> NDArray[np.float64]:
    """Turn raw predictions of the outputs into the decision function (R-0.7)."""
    if classifies and LOSSES[loss].decision_at:
        raw = raw - LOSSES[loss].decision_at
    return raw[:, 0] if raw.shape[1] == 1 else raw


def labels(decision: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """Turn the decision function into labels; 0 counts as positive (A-20)."""
    several = decision.ndim > 1
    return np.asarray(classes[decision.argmax(axis=1) if several else (decision >= 0).astype(int)])


def error_of(scores: NDArray[np.float64], classes: NDArray[np.int64]) -> float:
    """Return the share of rows that are wrong, in percent.

    A row is right where the score of its class is above those of all others: a score of exactly
    zero, where there are two classes, is an error (A-20).

    Parameters
    ----------
    scores : array of shape (rows,) or (rows, classes)
        Of two classes, one score a row, above zero for class 1.
    classes : array of shape (rows,)
        Numbers of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.model.links import error_of
    >>> error_of(np.array([-1.0, 0.0, 0.0, 2.0]), np.array([0, 0, 1, 1]))
    50.0
    """
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    rows = np.arange(len(classes))
    own = scores[rows, classes]
    others = scores.copy()
    others[rows, classes] = -np.inf
    return float(100.0 * np.mean(~(own > others.max(axis=1))))


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
    return values(decision + LOSSES[loss].decision_at, loss)


def of_labels(decision: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Turn scores of rows with any number of labels into the probability of having each."""
    return np.clip(independent(decision, loss), *_OPEN.get(LOSSES[loss].link, (0.0, 1.0)))


def values(raw: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Turn raw predictions into predictions of y, or into probabilities."""
    return LINKS[LOSSES[loss].link](raw, LOSSES[loss].low)
