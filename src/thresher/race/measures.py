"""Losses of single rows, and the standard errors of their means and differences."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from thresher.data.arrays import is_sparse
from thresher.model.links import label_probabilities, probabilities
from thresher.sums import dot

Array = NDArray[np.float64]

_LEAST = 1e-15  # smallest probability whose logarithm is taken
_SLOPES = (math.log(0.01), math.log(2.0))  # logarithms of the allowed slopes


def log_losses(decision: Array, y: object, classes: NDArray[np.generic]) -> Array:
    """Return the log loss of each row; the mean over the labels, if a row has several.

    Parameters
    ----------
    decision : array of shape (rows,) or (rows, outputs)
        The decision function of a model with the logistic loss.
    y : array of labels, or CSR matrix of labels
    classes : array

    Examples
    --------
    >>> import numpy as np
    >>> decision, classes = np.array([0.0, 3.0]), np.array(["no", "yes"])
    >>> log_losses(decision, np.array(["no", "no"]), classes).round(2).tolist()
    [0.69, 3.05]
    """
    if is_sparse(y):
        p = label_probabilities(decision.reshape(decision.shape[0], -1), "logistic")
        own = np.where(y.toarray() != 0, p, 1.0 - p)  # type: ignore[attr-defined]
        return np.asarray(-np.log(np.maximum(own, _LEAST)).mean(axis=1))
    numbers = np.searchsorted(classes, np.asarray(y))
    if decision.ndim == 1:
        return np.logaddexp(0.0, np.where(numbers == 1, -decision, decision))
    p = probabilities(decision, "logistic")[np.arange(len(numbers)), numbers]
    return np.asarray(-np.log(np.maximum(p, _LEAST)))


def errors(decision: Array, y: object, classes: NDArray[np.generic]) -> Array:
    """Return 1 for each row whose label is not predicted, else 0; several labels: a mean.

    Parameters
    ----------
    decision, y, classes
        As for `log_losses`.
    """
    if is_sparse(y):
        wrong = (decision >= 0) != (y.toarray() != 0)  # type: ignore[attr-defined]
        return np.asarray(wrong.mean(axis=1, dtype=np.float64))
    several = decision.ndim > 1
    found = decision.argmax(axis=1) if several else (decision >= 0).astype(np.intp)
    return np.asarray(classes[found] != np.asarray(y), np.float64)


def slope_of(decision: Array, y: object, classes: NDArray[np.generic], weights: Array) -> float:
    """Return the number that decisions are multiplied by for the least log loss, at most 2.

    A model that is too sure of its predictions gets a number below 1, one that is not sure enough
    a number above 1. The predicted labels stay the same.

    Parameters
    ----------
    decision, y, classes
        As for `log_losses`, of rows that the model did not learn from.
    weights : array of shape (rows,)

    Examples
    --------
    >>> import numpy as np
    >>> decision, y = np.array([-20.0, 20.0, 20.0]), np.array([0, 1, 0])
    >>> slope_of(decision, y, np.array([0, 1]), np.ones(3)) < 0.1
    True
    """

    def loss(log: float) -> float:
        return mean_and_error(log_losses(np.exp(log) * decision, y, classes), weights)[0]

    found = minimize_scalar(loss, bounds=_SLOPES, method="bounded", options={"xatol": 1e-3})
    return float(f"{np.exp(found.x):.3g}")


def squared_errors(predicted: Array, y: Array, sd: float) -> Array:
    """Return the squared error of each row, in units of the variance of the targets.

    Parameters
    ----------
    predicted, y : array of shape (rows,)
    sd : float
        Standard deviation of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> squared_errors(np.array([1.0, 5.0]), np.array([1.0, 3.0]), 2.0).tolist()
    [0.0, 1.0]
    """
    with np.errstate(over="ignore"):
        return np.asarray(((predicted - y) / sd) ** 2)


def mean_and_error(values: Array, weights: Array) -> tuple[float, float]:
    """Return the weighted mean of values of rows, and its standard error.

    Parameters
    ----------
    values : array of shape (rows,)
    weights : array of shape (rows,)

    Examples
    --------
    >>> import numpy as np
    >>> mean, error = mean_and_error(np.array([0.0, 2.0]), np.ones(2))
    >>> mean, round(error, 3)
    (1.0, 1.0)
    """
    total = float(weights.sum())
    if not total > 0:
        return math.nan, math.nan
    share = weights / total
    mean = dot(share, values)
    count = int(np.count_nonzero(weights))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(np.sqrt(np.sum((share * (values - mean)) ** 2)))
    return mean, spread * math.sqrt(count / (count - 1)) if count > 1 else math.inf


def sd_of(y: Array, weights: Array) -> float:
    """Return the weighted standard deviation of targets; 1, if all are equal.

    Parameters
    ----------
    y, weights : array of shape (rows,)
    """
    top = float(np.abs(y).max(initial=0.0)) or 1.0
    total = float(weights.sum())
    if not total > 0:
        return 1.0
    share = weights / total
    mean = dot(share, y / top)
    found = top * math.sqrt(dot(share, (y / top - mean) ** 2))
    return found if found > 1e-12 * top else 1.0
