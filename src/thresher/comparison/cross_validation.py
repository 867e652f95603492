"""Parameters by cross-validation on the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid

from thresher.comparison.candidates import configured
from thresher.comparison.grids import Grid
from thresher.comparison.measures import loss_of, support_of
from thresher.errors import DivergenceError
from thresher.model.frontier import Dot, Frontier
from thresher.search import OnePassSearchCV

Folds = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True)
class Chosen:
    """What cross-validation found.

    Attributes
    ----------
    point : dict
        The parameters.
    error : float
        Mean over folds, in the units of the comparison.
    standard_error : float
    tried : int
        Points of the grid.
    failed : int
        Points of which a model failed.
    edges : tuple of str
        Parameters whose value is the first or last of its range: a better one may lie beyond.
    """

    point: dict[str, Any]
    error: float
    standard_error: float
    tried: int
    failed: int
    edges: tuple[str, ...]


@dataclass(frozen=True)
class Scorer:
    """Minus what cross-validation makes small, as scikit-learn calls it."""

    task: str

    def __call__(self, fitted: Any, X: Any, y: Any) -> float:
        """Return the score of a model on the rows of a fold."""
        return -loss_of(fitted, X, y, self.task)


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
) -> Chosen:
    """Try all points of a grid on all folds, and choose one.

    Parameters
    ----------
    estimator : estimator
    grid : dict of lists
    X : CSR matrix or array
    y : array
    folds : sequence of pairs of arrays
        Rows to learn from, and rows to score on.
    task : str
    lanes : bool
        Whether all models can learn from the same reading of the rows.
    how : str
        "best": of the least mean error, of equals the sparsest; "sparsest": the sparsest whose mean
        error is within one standard error of that.
    n_jobs : int
        Threads.
    """
    points = list(ParameterGrid(grid))
    search = _together if lanes else _one_by_one
    errors, nonzeros, why = search(estimator, grid, points, X, y, folds, task, n_jobs)
    means = errors.mean(axis=1)
    spreads = errors.std(axis=1, ddof=1) / np.sqrt(len(folds))
    frontier = Frontier(
        [
            Dot(str(point), float(count), float(f"{mean:.12g}"), float(spread))  # ties are ties
            for point, count, mean, spread in zip(
                points, nonzeros.mean(axis=1), means, spreads, strict=True
            )
        ]
    )
    at = frontier.best if how == "best" else frontier.chosen
    if at is None:
        raise DivergenceError(f"all {len(points)} points of the grid failed; the first: {why}")
    return Chosen(
        point=dict(points[at]),
        error=float(means[at]),
        standard_error=float(spreads[at]),
        tried=len(points),
        failed=int(np.count_nonzero(~np.isfinite(means))),
        edges=_edges(grid, points[at]),
    )


_Found = tuple[NDArray[np.float64], NDArray[np.float64], str]


def _together(
    estimator: Any, grid: Grid, points: Sequence[Mapping[str, Any]], X: Any, y: NDArray[Any],
    folds: Folds, task: str, n_jobs: int,
) -> _Found:  # fmt: skip
    """Let all points and folds learn from the same reading of the rows."""
    search = OnePassSearchCV(
        estimator, grid, cv=list(folds), scoring=Scorer(task), refit=False, n_jobs=n_jobs
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)  # counted, and told of with the result
        search.fit(X, y)
    results = search.cv_results_
    errors = np.array([results[f"split{i}_test_score"] for i in range(len(folds))]).T
    return -errors, search.nonzeros_.astype(np.float64), "a model of every point failed"


def _one_by_one(
    estimator: Any, grid: Grid, points: Sequence[Mapping[str, Any]], X: Any, y: NDArray[Any],
    folds: Folds, task: str, n_jobs: int,
) -> _Found:  # fmt: skip
    """Fit every point on every fold."""

    def fitted(point: Mapping[str, Any], train: Any, test: Any) -> tuple[float, float, str]:
        try:
            model = configured(clone(estimator), point).fit(X[train], y[train])
            error = loss_of(model, X[test], y[test], task)
        except (ArithmeticError, ValueError) as failure:
            return np.nan, np.nan, str(failure)
        return error, float(np.count_nonzero(support_of(model, X.shape[1]))), ""

    jobs = (delayed(fitted)(point, *fold) for point in points for fold in folds)
    found = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
    shape = len(points), len(folds)
    errors, nonzeros = (np.array([one[i] for one in found]).reshape(shape) for i in (0, 1))
    return errors, nonzeros, next((why for *_, why in found if why), "")


def _edges(grid: Grid, point: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters whose value lies at an end of its range of numbers."""
    at_end = []
    for name, values in grid.items():
        numbers = [v for v in values if isinstance(v, int | float)]
        if len(numbers) > 2 and point[name] in (min(numbers), max(numbers)):
            at_end.append(name)
    return tuple(at_end)
