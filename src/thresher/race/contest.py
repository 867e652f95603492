"""The race itself: fit all candidates on the same folds, and measure the rows held out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from thresher.data.arrays import is_sparse
from thresher.data.matrix_source import MatrixSource
from thresher.errors import DataError
from thresher.estimators import estimator_class
from thresher.losses import Task
from thresher.race.candidates import Candidate
from thresher.race.choice import Scored
from thresher.race.folds import ALWAYS
from thresher.race.measures import (
    errors,
    log_losses,
    mean_and_error,
    sd_of,
    slope_of,
    squared_errors,
)
from thresher.race.result import Entrant
from thresher.race.scaling import ColumnScale, multiplied
from thresher.search.gravities import gravity_scale_of
from thresher.threads import jobs_of
from thresher.training.no_weights import NO_WEIGHTS
from thresher.training.observer import Observer
from thresher.training.trainer import Trainer

_GRADIENTS = 1 << 30  # most bytes of gradients, when the largest penalty is computed
_WORSE = 2.0  # a path of penalties ends after two losses this many standard errors above its best
_FAILURES = (ArithmeticError, ValueError, RuntimeError, MemoryError)


class QuietObserver(Observer):
    """An observer of the fits of a race: it shows nothing, and stops when another one does.

    Parameters
    ----------
    outer : Observer
    """

    def __init__(self, outer: Observer) -> None:
        self.outer = outer

    def warn(self, message: str | Warning, category: type[Warning] = UserWarning) -> None:
        """Ignore a warning: the final fit warns again."""

    def stops(self) -> bool:
        """Return whether to stop now."""
        return self.outer.stops()


class FinalObserver(QuietObserver):
    """An observer of the final fit: it passes on all but warnings that tell to change parameters.

    The race has measured fits that ended after as many passes. If all weights are zero, no
    candidate was better.
    """

    def progress(self, trainer: Trainer) -> None:
        """Pass on the progress."""
        self.outer.progress(trainer)

    def tell(self, event: str, **facts: Any) -> None:
        """Pass on an event."""
        self.outer.tell(event, **facts)

    def warn(self, message: str | Warning, category: type[Warning] = UserWarning) -> None:
        """Pass on a warning."""
        slow, empty = (
            issubclass(category, ConvergenceWarning),
            NO_WEIGHTS in str(message),
        )
        if not slow and not empty:
            self.outer.warn(message, category)


@dataclass
class Contest:
    """Rows, and the fits of candidates to them.

    Attributes
    ----------
    task : {"classifier", "regressor"}
    X : CSR matrix or array
    y : array, or CSR matrix of labels
    weights : array or None
        Weights of the rows, including those of their classes.
    classes : array or None
    seed : int
    observer : Observer
    n_jobs : int or None
        Number of folds that are fitted at the same time.
    """

    task: Task
    X: Any
    y: Any
    weights: NDArray[np.float64] | None
    classes: NDArray[Any] | None
    seed: int
    observer: Observer = field(default_factory=Observer)
    n_jobs: int | None = None
    _largest: dict[bool, float] = field(default_factory=dict, init=False)

    # ---- one fit -------------------------------------------------------------------------------

    def estimator(self, candidate: Candidate, rows: int) -> Any:
        """Return the estimator of a candidate for a number of rows, not fitted.

        The penalty of a path is for the rows of the contest. For more rows it falls with the root
        of their number, as the noise of the gradients does.

        Parameters
        ----------
        candidate : Candidate
        rows : int
        """
        made = estimator_class(candidate.rule, self.task)(random_state=self.seed)
        made.set_params(**candidate.params)
        if candidate.share is not None:
            largest = self._largest_penalty(candidate)
            if 0 < largest < np.inf:  # else no feature is related to the labels
                ratio = np.sqrt(self.X.shape[0] / max(rows, self.X.shape[0]))
                made.set_params(l1=float(f"{candidate.share * largest * ratio:.3g}"))
        return made

    def _largest_penalty(self, candidate: Candidate) -> float:
        """Return the smallest penalty at which all weights are zero."""
        if candidate.scaled not in self._largest:
            made = estimator_class(candidate.rule, self.task)()
            X = ColumnScale.of(self.X).applied(self.X) if candidate.scaled else self.X
            mean, sd = self._unit
            y = (self.y - mean) / sd if self.task == "regressor" else self.y
            source = MatrixSource(X, y, self.weights)
            with np.errstate(over="ignore", invalid="ignore"):
                scale = gravity_scale_of(made, source, _GRADIENTS, self.classes)
            self._largest[candidate.scaled] = scale.largest
        return self._largest[candidate.scaled]

    def fitted(
        self,
        candidate: Candidate,
        X: Any,
        y: Any,
        weights: NDArray[np.float64] | None,
        observer: Observer,
    ) -> Any:
        """Return the estimator of a candidate, fitted to rows; weights are for columns as given.

        Parameters
        ----------
        candidate : Candidate
        X, y, weights
            The rows.
        observer : Observer
        """
        made, (mean, sd) = self.estimator(candidate, X.shape[0]), self._unit
        scale = ColumnScale.of(X) if candidate.scaled else None
        given = X if scale is None else scale.applied(X)
        y = (y - mean) / sd if self.task == "regressor" else y
        with np.errstate(over="ignore", invalid="ignore"):  # huge values: measured, too
            made.fit(given, y, weights, observer=observer)
        return multiplied(made if scale is None else scale.undone(made), sd, mean)

    @cached_property
    def _unit(self) -> tuple[float, float]:
        """Mean and standard deviation of the targets; learners get targets in this unit."""
        if self.task == "classifier":
            return 0.0, 1.0
        weights = self.row_weights
        return float(np.average(self.y, weights=weights)), sd_of(self.y, weights)

    # ---- all folds -----------------------------------------------------------------------------

    def score(self, candidate: Candidate, folds: NDArray[np.int64]) -> Scored:
        """Fit a candidate to the rows outside each fold, and return its losses on the folds.

        Parameters
        ----------
        candidate : Candidate
        folds : array of shape (rows,)
            The fold of each row.
        """
        if candidate.share is not None:
            self._largest_penalty(candidate)  # before threads need it
        numbers = [fold for fold in np.unique(folds).tolist() if fold != ALWAYS]
        jobs = (delayed(self._fold)(candidate, folds, fold) for fold in numbers)
        found = Parallel(n_jobs=jobs_of(self.n_jobs), prefer="threads")(jobs)
        held = np.concatenate([np.flatnonzero(folds == fold) for fold in numbers])
        order, weights = np.argsort(held), self.row_weights[np.sort(held)]
        if not all(np.isfinite(one).all() for one, *_ in found):
            raise DataError("its predictions are not finite")
        nonzeros = float(np.mean([count for *_, count in found]))
        if len(found[0]) == 3:
            losses, wrong = (np.concatenate([one[n] for one in found])[order] for n in (0, 1))
            return Scored(losses, mean_and_error(wrong, weights)[0], nonzeros)
        decision, y = np.concatenate([one for one, _ in found])[order], self.y[held[order]]
        assert self.classes is not None
        slope = slope_of(decision, y, self.classes, weights)
        losses = log_losses(slope * decision, y, self.classes)
        error = mean_and_error(errors(decision, y, self.classes), weights)[0]
        return Scored(losses, error, nonzeros, slope)

    def _fold(self, candidate: Candidate, folds: NDArray[np.int64], fold: int) -> tuple[Any, ...]:
        """Return the result of a model that did not learn from a fold.

        Rows of one class each: decisions and nonzeros; others: losses, errors and nonzeros.
        """
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        weights = None if self.weights is None else self.weights[train]
        quiet = QuietObserver(self.observer)
        model = self.fitted(candidate, self.X[train], self.y[train], weights, quiet)
        X, y, nonzeros = self.X[test], self.y[test], model.model_.nnz
        if self.task == "regressor":
            losses = squared_errors(model.predict(X), y, self._unit[1])
            return losses, losses, nonzeros
        decision = model.decision_function(X)
        if not is_sparse(y):
            return decision, nonzeros
        assert self.classes is not None  # decisions for all labels may not fit in memory
        return *(of(decision, y, self.classes) for of in (log_losses, errors)), nonzeros

    @property
    def row_weights(self) -> NDArray[np.float64]:
        """Weights of the rows; ones, if there are none."""
        return np.ones(self.X.shape[0]) if self.weights is None else self.weights


def run(
    contest: Contest,
    candidates: tuple[Candidate, ...],
    folds: NDArray[np.int64],
    tell: Callable[[int, Entrant], None],
) -> tuple[list[Entrant], dict[int, Scored], dict[int, Exception]]:
    """Fit and measure all candidates; return entrants, and losses and failures by their numbers.

    Parameters
    ----------
    contest : Contest
    candidates : tuple of Candidate
    folds : array of shape (rows,)
    tell : callable
        Called with the number of a candidate, and its result.
    """
    entrants: list[Entrant] = []
    scored: dict[int, Scored] = {}
    failures: dict[int, Exception] = {}
    held = contest.row_weights[folds != ALWAYS]
    paths: dict[str, list[Scored]] = {}
    for number, candidate in enumerate(candidates):
        began, entrant = time.perf_counter(), Entrant(candidate.name, candidate.rule)
        path = paths.setdefault(candidate.path, []) if candidate.path else []
        if _is_over(path, held):
            entrant = replace(entrant, why="not tried: the loss rose before, with larger penalties")
        else:
            try:
                one = scored[number] = contest.score(candidate, folds)
                path.append(one)
                mean, spread = mean_and_error(one.losses, held)
                made = contest.estimator(candidate, contest.X.shape[0])
                entrant = replace(
                    entrant,
                    params=_chosen_params(made),
                    loss=mean,
                    standard_error=spread,
                    error=np.nan if contest.task == "regressor" else one.error,
                    nonzeros=one.nonzeros,
                    seconds=time.perf_counter() - began,
                )
            except _FAILURES as error:
                failures[number] = error
                seconds = time.perf_counter() - began
                why = f"failed: {str(error) or type(error).__name__}"
                entrant = replace(entrant, seconds=seconds, why=why)
        entrants.append(entrant)
        tell(number, entrant)
    return entrants, scored, failures


def _is_over(path: list[Scored], weights: NDArray[np.float64]) -> bool:
    """Tell whether the last two losses of a path are clearly larger than its least one."""
    if len(path) < 3:
        return False
    best = min(path, key=lambda one: mean_and_error(one.losses, weights)[0])
    return all(_is_worse(one, best, weights) for one in path[-2:])


def _is_worse(one: Scored, best: Scored, weights: NDArray[np.float64]) -> bool:
    mean, spread = mean_and_error(one.losses - best.losses, weights)
    return one is not best and mean > _WORSE * spread


def _chosen_params(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that differ from the defaults, without the seed."""
    default = type(estimator)().get_params(deep=False)
    own = estimator.get_params(deep=False)
    return {
        name: value
        for name, value in own.items()
        if value != default[name] and name != "random_state"
    }
