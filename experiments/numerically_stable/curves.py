"""Models when they first reach a density, for rules that learn row by row or by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresher import MarginPerceptronClassifier, _core

_CALLS = ((100, 1), (500, 5), (2000, 25))  # up to a row, rows per call; then an eighth
_DRAWS = 200  # coordinate draws between two checks of the density


@dataclass
class Curve:
    """Weights when each level of density was first reached, and the last weights.

    Attributes
    ----------
    width : int
        Number of features.
    levels : dict of float to array
        Only of levels that were reached.
    last : array
    """

    width: int
    levels: dict[float, np.ndarray] = field(default_factory=dict)
    last: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def density(self) -> float:
        """Density of the last weights."""
        return float(np.count_nonzero(self.last)) / self.width

    def see(self, weights: np.ndarray, wanted: Sequence[float]) -> bool:
        """Add weights; return whether the highest level is reached.

        Parameters
        ----------
        weights : array
        wanted : sequence of float
            Levels, increasing.
        """
        self.last = weights
        for level in wanted:
            if level not in self.levels and self.density >= level:
                self.levels[level] = weights
        return self.density >= wanted[-1]

    def errors(self, X: Any, y: Any, wanted: Sequence[float]) -> list[float]:
        """Return errors in percent at the levels; of the last weights if they are sparse enough.

        Parameters
        ----------
        X : CSR matrix
        y : array
        wanted : sequence of float
        """
        last = self.last_error(X, y)
        return [last if self.density <= at else _error(self.levels[at], X, y) for at in wanted]

    def last_error(self, X: Any, y: Any) -> float:
        """Return the error of the last weights, in percent.

        Parameters
        ----------
        X : CSR matrix
        y : array
        """
        return _error(self.last, X, y)


def _error(w: np.ndarray, X: Any, y: Any) -> float:
    return 100 * float(np.mean(y * (X @ w) <= 0))


def perceptron(
    estimator: MarginPerceptronClassifier, X: Any, y: Any, wanted: Sequence[float], scans: int
) -> Curve:
    """Train the margin perceptron; it keeps its models at levels itself.

    Parameters
    ----------
    estimator : MarginPerceptronClassifier
    X, y : CSR matrix and array
    wanted : sequence of float
    scans : int
    """
    estimator.set_params(levels=tuple(wanted), max_density=wanted[-1], passes=scans).fit(X, y)
    curve = Curve(X.shape[1], last=estimator.coef_.ravel())
    for level, model in estimator.level_models_.items():
        curve.levels[level] = np.zeros(X.shape[1])
        curve.levels[level][model.indices] = model.weights
    return curve


def by_rows(
    estimator: Any, X: Any, y: Any, wanted: Sequence[float], scans: int, seed: int
) -> Curve:
    """Train an estimator on few rows at a time, and take its weights in between.

    Parameters
    ----------
    estimator : estimator
        With partial_fit.
    X, y : CSR matrix and array
    wanted : sequence of float
    scans : int
    seed : int
        Of the orders of the rows, a new one for each scan.
    """
    curve = Curve(X.shape[1])
    for part in _parts(len(y), scans, np.random.default_rng(seed)):
        estimator.partial_fit(X[part], y[part], classes=[-1.0, 1.0])
        if curve.see(estimator.coef_.ravel().copy(), wanted):
            break
    return curve


def _parts(rows: int, scans: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    for scan in range(scans):
        order = rng.permutation(rows)
        at = 0
        while at < rows:
            size = next((few for end, few in _CALLS if scan * rows + at < end), max(1, rows // 8))
            yield order[at : at + size]
            at += size


def by_columns(
    l1: float, step: str, X: Any, y: Any, wanted: Sequence[float], scans: int, seed: int
) -> Curve:
    """Run few steps of coordinate descent at a time; its estimator only shows whole scans.

    Parameters
    ----------
    l1 : float
    step : {"global", "coordinate"}
    X, y : CSR matrix and array
    wanted : sequence of float
    scans : int
        A scan draws as many coordinates as there are features.
    seed : int
    """
    columns = X.tocsc()
    batch = _core.sparse_batch(columns.indptr, columns.indices, columns.data, X.shape[0])
    solver = _core.CoordinateDescent(batch, y, None, "logistic", 0.1, l1, step)
    rng, curve = np.random.default_rng(seed), Curve(X.shape[1])
    for _ in range(scans * X.shape[1] // _DRAWS):
        solver.steps(rng.integers(0, X.shape[1], _DRAWS))
        if curve.see(np.asarray(solver.weights()).copy(), wanted):
            break
    return curve


Learn = Callable[[dict[str, Any], int], Curve]  # parameters and seed


def chosen(learn: Learn, grid: Sequence[dict[str, Any]], X: Any, y: Any) -> dict[str, Any]:
    """Return the parameters whose last model, for one order, has the smallest validation error.

    Parameters
    ----------
    learn : callable
    grid : sequence of dict
    X, y : CSR matrix and array
        Validation rows.
    """
    if len(grid) == 1:
        return dict(grid[0])
    return dict(min(grid, key=lambda point: learn(point, 0).last_error(X, y)))
