"""Measures of a fitted model on test rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from thresher.comparison.candidates import inner
from thresher.model.links import error_of
from thresher.model.supports import kappa

# Measures of each task and their column headings, in the order of the columns.
MEASURES = {
    "binary": {"error": "error %", "auc": "AUC"},
    "multiclass": {"error": "error %"},
    "regression": {"mse": "mean sq. error", "r2": "R2"},
}


class Measure(NamedTuple):
    """A mean and its standard deviation.

    Attributes
    ----------
    mean : float
    sd : float or None
        The standard deviation of a sample (n - 1); None if there is only one value.
    """

    mean: float
    sd: float | None


def measure_of(values: Sequence[float]) -> Measure:
    """Return the mean and standard deviation of values.

    Parameters
    ----------
    values : sequence of float

    Examples
    --------
    >>> measure_of([1.0, 3.0])
    Measure(mean=2.0, sd=1.4142135623730951)
    """
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Measure(mean, None)
    square = math.fsum((value - mean) ** 2 for value in values)
    return Measure(mean, math.sqrt(square / (len(values) - 1)))


def loss_of(
    fitted: Any, X: Any, y: NDArray[Any], task: str, weights: NDArray[np.float64] | None = None
) -> float:
    """Return what cross-validation minimizes: the error in percent, or the mean square error.

    Parameters
    ----------
    fitted : estimator
    X : CSR matrix or array
    y : array
        Numbers of the classes, or targets.
    task : str
    weights : array or None
        Weights of the rows.
    """
    if task == "regression":
        return _mean((np.asarray(fitted.predict(X), np.float64) - y) ** 2, weights)
    return error_of(np.asarray(fitted.decision_function(X), np.float64), y, weights)


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(np.mean(values) if weights is None else np.average(values, weights=weights))


def measured(
    fitted: Any, X: Any, y: NDArray[Any], task: str, weights: NDArray[np.float64] | None = None
) -> dict[str, float | None]:
    """Return all measures of a model; it predicts the rows once.

    Parameters
    ----------
    fitted : estimator
    X : CSR matrix or array
    y : array
        Numbers of the classes, or targets.
    task : str
        A key of ``MEASURES``.
    weights : array or None
        Weights of the rows.
    """
    predict = fitted.predict if task == "regression" else fitted.decision_function
    scores = np.asarray(predict(X), np.float64)
    if not np.isfinite(scores).all():
        raise ArithmeticError("the scores of test rows are not finite")
    if task == "regression":
        mse = _mean((scores - y) ** 2, weights)
        spread = _mean((y - _mean(y, weights)) ** 2, weights)
        return {"mse": mse, "r2": 1.0 - mse / spread if spread > 0 else None}
    found: dict[str, float | None] = {"error": error_of(scores, y, weights)}
    if task == "binary":
        used = y >= 0 if weights is None else (y >= 0) & (weights > 0)
        both = 0 < np.count_nonzero(y[used]) < np.count_nonzero(used)
        own = None if weights is None else weights[used]
        auc = float(roc_auc_score(y[used], scores[used], sample_weight=own)) if both else None
        found["auc"] = auc
    return found


def support_of(fitted: Any, columns: int) -> NDArray[np.bool_]:
    """Return which columns have a nonzero weight, for any class.

    Parameters
    ----------
    fitted : estimator
    columns : int
    """
    used = np.zeros(columns, bool)
    for part in getattr(fitted, "estimators_", [fitted]):
        own = part if hasattr(part, "coef_") else inner(part)
        if hasattr(own, "model_"):
            used[own.model_.indices.astype(np.intp)] = True
        else:
            used |= (np.atleast_2d(own.coef_) != 0).any(axis=0)
    return used


def kappas_of(supports: Sequence[NDArray[np.bool_]], columns: int) -> list[float]:
    """Return Cohen's kappa of all pairs of supports.

    Parameters
    ----------
    supports : sequence of boolean array
    columns : int
    """
    numbers = [np.flatnonzero(support) for support in supports]
    return [kappa(one, other, columns) for one, other in combinations(numbers, 2)]
