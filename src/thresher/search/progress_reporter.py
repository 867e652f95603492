"""Reports the progress of a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from thresher.search.progress import SearchProgress
from thresher.training.observer import Observer
from thresher.training.trainer import Trainer

_INTERVAL = 0.2  # seconds between reports


class Training(Protocol):
    """The models that train now."""

    @property
    def passes(self) -> int:
        """Number of passes over the rows."""

    @property
    def all_rows(self) -> int | None:
        """Number of rows of a pass, if known."""

    @property
    def models(self) -> int:
        """Number of models that learn from each row: points x folds x classes."""

    def losses(self) -> dict[int, float]:
        """Return the mean progressive loss so far of each point."""

    def nonzeros(self) -> dict[int, int]:
        """Return the current number of nonzero weights of the models of all rows, by point."""


class ProgressReporter(Observer):
    """Reports the progress of a search at intervals, and when all rows of a matrix were read.

    Parameters
    ----------
    callback : callable or None
        Called with a SearchProgress; None: nobody asks for progress.
    readings : int
        Number of groups of models that train one after the other.
    observer : Observer, optional
        Receives the progress of each fit and is told of checkpoints; may stop the search.

    Attributes
    ----------
    rows : int
        Rows of a pass that were read so far.
    training : Training or None
        The models that train now.
    """

    def __init__(
        self,
        callback: Callable[[SearchProgress], Any] | None,
        readings: int,
        observer: Observer | None = None,
    ) -> None:
        self.callback, self.readings, self.reading, self.rows = callback, readings, 0, 0
        self.observer = observer or Observer()
        self._began, self._told = time.perf_counter(), 0.0
        self.training: Training | None = None

    def begin(self, training: Training) -> None:
        """Begin the next group of models."""
        self.reading, self.training = self.reading + 1, training

    def stops(self) -> bool:
        """Return whether the search must stop."""
        return self.observer.stops()

    def tell(self, event: str, **facts: Any) -> None:
        """Tell the observer of a checkpoint; other events are those of single fits.

        Parameters
        ----------
        event : str
        **facts
        """
        if event == "checkpoint":
            self.observer.tell(event, **facts)

    def progress(self, trainer: Trainer) -> None:
        """Report rows that were learned.

        Parameters
        ----------
        trainer : Trainer
        """
        assert trainer.position is not None
        self.observer.progress(trainer)
        rows = trainer.position.line if trainer.plan.in_memory else trainer.first_row
        self.report(trainer.number + 1, rows)

    def report(self, number: int, rows: int) -> None:
        """Report that `rows` rows of a pass were read."""
        assert self.training is not None
        self.rows = max(self.rows, rows)
        if self.callback is None:
            return
        seconds, all_rows = time.perf_counter() - self._began, self.training.all_rows
        if (all_rows is None or rows < all_rows) and seconds - self._told < _INTERVAL:
            return
        self._told = seconds
        passes, models = self.training.passes, self.training.models
        fields = self.reading, self.readings, number, passes, rows, models, seconds
        self.callback(SearchProgress(*fields, self.training.losses()))
