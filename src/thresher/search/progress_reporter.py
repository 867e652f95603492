"""Reports the progress of a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from thresher.search.model_groups import losses_of
from thresher.search.progress import SearchProgress
from thresher.search.trained import TrainedModels
from thresher.training.observer import Observer
from thresher.training.trainer import Trainer

_INTERVAL = 0.2  # seconds between reports


class ProgressReporter(Observer):
    """Reports the progress of a search at intervals, and when all rows of a matrix were read.

    Parameters
    ----------
    callback : callable
        Called with a SearchProgress.
    readings : int
        Number of groups of models that train one after the other.

    Attributes
    ----------
    rows : int
        Rows of a pass that were read so far.
    """

    def __init__(self, callback: Callable[[SearchProgress], Any], readings: int) -> None:
        self.callback, self.readings, self.reading, self.rows = callback, readings, 0, 0
        self._began, self._told = time.perf_counter(), 0.0
        self.trained: TrainedModels | None = None

    def begin(self, trained: TrainedModels) -> None:
        """Begin the next group of models."""
        self.reading, self.trained = self.reading + 1, trained

    def progress(self, trainer: Trainer) -> None:
        """Report rows that were learned.

        Parameters
        ----------
        trainer : Trainer
        """
        assert trainer.position is not None
        rows = trainer.position.line if trainer.plan.in_memory else trainer.first_row
        self.report(trainer.number + 1, rows)

    def report(self, number: int, rows: int) -> None:
        """Report that `rows` rows of a pass were read."""
        assert self.trained is not None
        self.rows = max(self.rows, rows)
        trainer, seconds = self.trained.trainer, time.perf_counter() - self._began
        all_rows = trainer.source.rows
        if (all_rows is None or rows < all_rows) and seconds - self._told < _INTERVAL:
            return
        self._told = seconds
        team, passes = self.trained.team, trainer.plan.passes
        fields = self.reading, self.readings, number, passes, rows, len(team), seconds
        self.callback(SearchProgress(*fields, losses_of(team, self.trained.jobs)))
