"""Models of a grid that are fitted one after the other, each as by `fit`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sklearn.base import clone

from thresher.errors import DivergenceError, ReadOnceError, setting
from thresher.search.fits import Finished, Fits
from thresher.search.grid import GridPoint
from thresher.search.model_groups import ModelResult
from thresher.search.progress_reporter import ProgressReporter
from thresher.search.scores import Scores
from thresher.search.splits import Splits
from thresher.training.observer import Observer
from thresher.training.run_options import RunOptions
from thresher.training.trainer import Trainer


class PlainFit(NamedTuple):
    """A model to fit: one point of the grid on one split of the rows."""

    point: GridPoint
    split: int


class PlainFits(Fits):
    """Fits a clone of the estimator for each point and split, as `GridSearchCV` does.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    splits : Splits
        Splits of a matrix or a source.
    scores : Scores
    """

    def __init__(self, estimator: Any, splits: Splits, scores: Scores) -> None:
        self.estimator, self.splits, self.scores = estimator, splits, scores

    def plan(self, points: Sequence[GridPoint]) -> list[PlainFit]:
        """Return the models, split by split; raise ReadOnceError if rows can be read only once."""
        for point in points[:1]:
            why = f"the models of this grid are fitted one after the other ({point.obstacle})"
            if not self.splits.source.rereadable:
                raise ReadOnceError(
                    f"{self.splits.source} can be read only once, and {why}",
                    source=str(self.splits.source),
                    hint="make a cache from it",
                )
            if self.splits.progressive:
                raise ReadOnceError(
                    (setting("cv", "progressive"), " scores rows while models learn them "
                     f"together, and {why}; give ", setting("cv"), " a number of folds"),
                    source=str(self.splits.source),
                    parameter="cv",
                )  # fmt: skip
        return [PlainFit(point, split) for split in self.splits.numbers for point in points]

    def go(self, group: PlainFit, report: ProgressReporter, run: RunOptions) -> Iterator[Finished]:
        """Fit and score one model."""
        point, split = group
        model = clone(self.estimator).set_params(**clone(point.params, safe=False))
        if "callback" in point.params:
            model.set_params(callback=None)  # it is called only in the final fit
        observer = _PlainObserver(point, self.splits.rows_of(split), report)
        report.begin(observer)
        report.report(1, 0)
        began, failure, scores, nonzeros = time.perf_counter(), "", None, 0
        try:
            self.splits.fit(model, split, replace(run, observer=observer))
            nonzeros = int(model.model_.nnz)
        except DivergenceError as error:
            failure = str(error)
        fitted = time.perf_counter()
        if not failure and split < self.splits.scored:
            try:
                scores = self.scores.of_model(model, split)
            except DivergenceError as error:
                failure = str(error)
        ended = time.perf_counter()
        report.report(observer.passes + 1, observer.all_rows or report.rows)
        result = ModelResult(scores, failure, nonzeros, fitted - began, ended - fitted)
        kept = split == self.splits.whole and not failure
        yield Finished(point, split, result, model if kept else None)


class _PlainObserver(Observer):
    """Reports the progress of one fit as that of a search."""

    def __init__(self, point: GridPoint, rows: int | None, report: ProgressReporter) -> None:
        self.point, self.all_rows, self._report = point, rows, report
        self.passes, self.models = int(point.params.get("passes") or 1), 1
        self._loss = 0.0

    def losses(self) -> dict[int, float]:
        """Return the loss of the point."""
        return {self.point.number: self._loss}

    def nonzeros(self) -> dict[int, int]:
        """Return nothing: weights are not counted while a model is fitted."""
        return {}

    def progress(self, trainer: Trainer) -> None:
        """Report rows that were learned.

        Parameters
        ----------
        trainer : Trainer
        """
        self._loss, self.models = trainer.mean_loss, len(trainer.outputs)
        self._report.progress(trainer)

    def tell(self, event: str, **facts: Any) -> None:
        """Report a record of a rule that needs all rows at once.

        Parameters
        ----------
        event : str
        **facts
        """
        self._report.tell(event, **facts)
        if event == "record" and "loss" in facts:
            self._loss = float(facts["loss"])
            rows = self.all_rows or max(int(facts["examples"]), 1)
            done = min(1 + int(facts["examples"]) // rows, self.passes)
            self._report.report(done, int(facts["examples"]) % rows)

    def stops(self) -> bool:
        """Return whether the search must stop."""
        return self._report.stops()
