"""Choose parameters by cross-validation on the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid

from thresher.comparison.candidates import configured, fit_weighted
from thresher.comparison.grids import Grid
from thresher.comparison.measures import loss_of, support_of
from thresher.errors import DivergenceError
from thresher.model.frontier import Dot, Frontier
from thresher.search import OnePassSearchCV
from thresher.threads import jobs_of

Folds = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True)
class ChosenPoint:
    """The point of a grid that cross-validation chose.

    Attributes
    ----------
    point : dict
        The parameters.
    error : float
        Mean over the folds: error in percent, or mean square error.
    standard_error : float
    tried : int
        Number of points of the grid.
    failed : int
        Number of points with a model that failed.
    edges : tuple of str
        Parameters whose value is the smallest or largest in the grid.
    """

    point: dict[str, Any]
    error: float
    standard_error: float
    tried: int
    failed: int
    edges: tuple[str, ...]


@dataclass(frozen=True)
class NegatedLoss:
    """The score of cross-validation, as scikit-learn calls it: minus `loss_of`."""

    task: str

    def __call__(self, fitted: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a model on the rows of a fold."""
        return -loss_of(fitted, X, y, self.task, sample_weight)


def choose(
    estimator: Any,
    grid: Grid,
    X: Any,
    y: NDArray[Any],
    folds: Folds,
    *,
    task: str,
    lanes: bool,
    how: str,
    n_jobs: int,
    weights: NDArray[np.float64] | None = None,
) -> ChosenPoint:
    """Try all points of a grid on all folds, and choose one.

    Parameters
    ----------
    estimator : estimator
    grid : dict of lists
    X : CSR matrix or array
    y : array
    folds : sequence of pairs of arrays
        Training rows and test rows of each fold.
    task : str
    lanes : bool
        Whether all models can learn from the same reading of the rows.
    how : str
        "best": the point with the least mean error; among equal ones, the sparsest. "sparsest": the
        sparsest point whose mean error is within one standard error of the least.
    n_jobs : int
        Number of threads.
    weights : array or None
        Weights of the rows.
    """
    points = list(ParameterGrid(grid))
    search = _in_one_pass if lanes else _one_by_one
    errors, nonzeros, why = search(estimator, grid, points, X, y, folds, task, n_jobs, weights)
    means = errors.mean(axis=1)
    spreads = errors.std(axis=1, ddof=1) / np.sqrt(len(folds))
    frontier = Frontier(
        [
            # A mean is rounded, so that equal errors are equal numbers.
            Dot(str(point), float(count), float(f"{mean:.12g}"), float(spread))
            for point, count, mean, spread in zip(
                points, nonzeros.mean(axis=1), means, spreads, strict=True
            )
        ]
    )
    at = frontier.best if how == "best" else frontier.chosen
    if at is None:
        raise DivergenceError(f"all {len(points)} points of the grid failed; the first: {why}")
    return ChosenPoint(
        point=dict(points[at]),
        error=float(means[at]),
        standard_error=float(spreads[at]),
        tried=len(points),
        failed=int(np.count_nonzero(~np.isfinite(means))),
        edges=_edges(grid, points[at]),
    )


_Found = tuple[NDArray[np.float64], NDArray[np.float64], str]


def _in_one_pass(
    estimator: Any, grid: Grid, points: Sequence[Mapping[str, Any]], X: Any, y: NDArray[Any],
    folds: Folds, task: str, n_jobs: int, weights: NDArray[np.float64] | None,
) -> _Found:  # fmt: skip
    """Fit all points and folds in the same reading of the rows."""
    search = OnePassSearchCV(
        estimator, grid, cv=list(folds), scoring=NegatedLoss(task), refit=False, n_jobs=n_jobs
    )
    given: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings(), config_context(enable_metadata_routing=False):
        warnings.simplefilter("ignore", FitFailedWarning)  # the result counts failures
        search.fit(X, y, **given)
    results = search.cv_results_
    errors = np.array([results[f"split{i}_test_score"] for i in range(len(folds))]).T
    return -errors, search.nonzeros_.astype(np.float64), "a model of every point failed"


def _one_by_one(
    estimator: Any, grid: Grid, points: Sequence[Mapping[str, Any]], X: Any, y: NDArray[Any],
    folds: Folds, task: str, n_jobs: int, weights: NDArray[np.float64] | None,
) -> _Found:  # fmt: skip
    """Fit each point on each fold separately."""

    def fitted(point: Mapping[str, Any], train: Any, test: Any) -> tuple[float, float, str]:
        try:
            own, other = (None, None) if weights is None else (weights[train], weights[test])
            model = fit_weighted(configured(clone(estimator), point), X[train], y[train], own)
            error = loss_of(model, X[test], y[test], task, other)
        except (ArithmeticError, ValueError) as failure:
            return np.nan, np.nan, str(failure)
        return error, float(np.count_nonzero(support_of(model, X.shape[1]))), ""

    jobs = (delayed(fitted)(point, *fold) for point in points for fold in folds)
    found = Parallel(n_jobs=jobs_of(n_jobs), prefer="threads")(jobs)
    shape = len(points), len(folds)
    errors, nonzeros = (np.array([one[i] for one in found]).reshape(shape) for i in (0, 1))
    return errors, nonzeros, next((why for *_, why in found if why), "")


def _edges(grid: Grid, point: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters whose value is the smallest or largest number in the grid."""
    at_end = []
    for name, values in grid.items():
        numbers = [v for v in values if isinstance(v, int | float)]
        if len(numbers) > 2 and point[name] in (min(numbers), max(numbers)):
            at_end.append(name)
    return tuple(at_end)
