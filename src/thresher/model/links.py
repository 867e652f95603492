"""Functions from raw predictions to scores, labels, probabilities and values."""

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


# The link functions, of raw predictions and the label of the other classes. Exponents are clipped
# to +-30, as in the core.
LINKS: dict[Link, Callable[[Array, float], Array]] = {
    "identity": lambda raw, low: raw,
    "sigmoid": lambda raw, low: _sigmoid(raw),
    "clip": lambda raw, low: (np.clip(raw, low, 1.0) - low) / (1.0 - low),
    "exp": lambda raw, low: np.exp(np.clip(raw, -30.0, 30.0)),
}

# Bounds of probabilities: a logistic probability is never exactly 0 or 1, despite rounding.
_OPEN = {"sigmoid": (float(np.finfo(np.float64).tiny), 1.0 - 2.0**-53)}


def scores(raw: NDArray[np.float64], loss: str, classifies: bool = True) -> NDArray[np.float64]:
    """Return the decision function from raw predictions of the outputs (R-0.7)."""
    if classifies and LOSSES[loss].decision_at:
        raw = raw - LOSSES[loss].decision_at
    return raw[:, 0] if raw.shape[1] == 1 else raw


def labels(decision: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels from the decision function; 0 counts as positive (A-20)."""
    if len(classes) == 1:  # no other class was seen yet
        return np.repeat(classes, len(decision))
    several = decision.ndim > 1
    return np.asarray(classes[decision.argmax(axis=1) if several else (decision >= 0).astype(int)])


def error_of(
    scores: NDArray[np.float64],
    classes: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> float:
    """Return the error rate in percent.

    A row is correct if the score of its class is above the scores of all other classes. With two
    classes, a score of exactly zero is an error (A-20).

    Parameters
    ----------
    scores : array of shape (rows,) or (rows, classes)
        For two classes, one score per row, above zero for class 1.
    classes : array of shape (rows,)
        Numbers of the classes; -1 for a class that the model does not have, which is an error.
    weights : array of shape (rows,), optional
        Weights of the rows.

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
    own = np.where(classes < 0, -np.inf, scores[rows, classes])
    others = scores.copy()
    others[rows, classes] = -np.inf
    wrong = ~(own > others.max(axis=1))
    if weights is None:
        return float(100.0 * np.mean(wrong))
    return float(100.0 * np.average(wrong, weights=weights))


def probabilities(
    decision: NDArray[np.float64], loss: str, classes: int = 2
) -> NDArray[np.float64]:
    """Return probabilities from the decision function; those of a row add up to one."""
    if classes == 1:  # no other class was seen yet
        return np.ones((len(decision), 1))
    p = separate_probabilities(decision, loss)
    if p.ndim == 1:
        return np.column_stack([1.0 - p, p])
    total = p.sum(axis=1, keepdims=True)
    even = np.full_like(p, 1.0 / p.shape[1])
    return np.asarray(np.divide(p, total, out=even, where=total > 0))


def separate_probabilities(decision: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Return the probability of each output separately; they need not add up to one."""
    return values(decision + LOSSES[loss].decision_at, loss)


def label_probabilities(decision: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Return the probability of each label, for rows with any number of labels."""
    low, high = _OPEN.get(LOSSES[loss].link, (0.0, 1.0))
    return np.clip(separate_probabilities(decision, loss), low, high)


def values(raw: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Return predictions of y, or probabilities, from raw predictions."""
    return LINKS[LOSSES[loss].link](raw, LOSSES[loss].low)
