"""Trains and scores the models of a grid: by lanes where it can, by plain fits where it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from thresher.data.read_options import Stopped
from thresher.model.model import Model
from thresher.search.checkpointing import SearchCheckpoint
from thresher.search.fits import Fits
from thresher.search.grid import GridPoint
from thresher.search.lane_fits import LaneFits
from thresher.search.model_groups import ModelResult
from thresher.search.plain_fits import PlainFits
from thresher.search.progress import SearchProgress
from thresher.search.progress_reporter import ProgressReporter, Training
from thresher.search.scores import Scores
from thresher.search.splits import Splits
from thresher.search.trained import TrainedModels
from thresher.training.run_options import RunOptions


class Reading(NamedTuple):
    """Models that train together, and how they are trained."""

    fits: Fits
    group: Any


class Search:
    """Trains and scores the models of a grid.

    Parameters
    ----------
    estimator : estimator
        Not fitted; the models copy its attributes about the columns of the rows.
    splits : Splits
        Splits of a matrix or a source.
    scores : Scores
    limit : int
        Largest size of all models together, in bytes.
    n_jobs : int or None
        Number of threads.
    callback : callable or None
        Called with a SearchProgress; None: nobody asks for progress.
    run : RunOptions, optional
        Observer and checkpoints.
    saved : SearchCheckpoint, optional
        The checkpoint, if `run` has a file for it.

    Attributes
    ----------
    models : dict of int to estimator
        The models of all rows by point, if the splits keep them; without models that diverged.
    """

    def __init__(
        self,
        estimator: Any,
        splits: Splits,
        scores: Scores,
        limit: int,
        n_jobs: int | None,
        callback: Callable[[SearchProgress], Any] | None,
        run: RunOptions | None = None,
        saved: SearchCheckpoint | None = None,
    ) -> None:
        self.estimator, self.splits, self.scores = estimator, splits, scores
        self.limit, self.n_jobs, self.callback = limit, n_jobs, callback
        self.run, self.saved = run or RunOptions(), saved
        if saved is not None:
            self.limit, self.n_jobs = saved.limit, saved.threads
        self.models: dict[int, Any] = {}
        self._report = ProgressReporter(callback, 0)
        self._last: Training | None = None  # the last group, after training

    @property
    def rows(self) -> int:
        """Rows of a pass that were read so far."""
        return self._report.rows

    def plan(self, points: Sequence[GridPoint]) -> list[Reading]:
        """Return the groups of models that train together, without training them."""
        shared = self.estimator, self.splits, self.scores
        found: list[Reading] = []
        for fits, own in (
            (
                LaneFits(*shared, self.limit, self.n_jobs, self._done > 0),
                [point for point in points if not point.obstacle],
            ),
            (PlainFits(*shared), [point for point in points if point.obstacle]),
        ):
            found += [Reading(fits, group) for group in (fits.plan(own) if own else ())]
        return found

    def go(
        self, readings: Sequence[Reading], report: ProgressReporter | None = None
    ) -> dict[tuple[int, int], ModelResult]:
        """Train and score all models; return the results by point and split.

        Parameters
        ----------
        readings : sequence of Reading
        report : ProgressReporter, optional
            By default a new one.
        """
        new = ProgressReporter(self.callback, len(readings), self.run.observer)
        self._report = report or new
        found: dict[tuple[int, int], ModelResult] = {}
        self._report.reading += self._done
        if self.saved is not None:
            found |= self.saved.results
            self._report.rows = max(self._report.rows, self.saved.rows)
        try:
            for number, reading in enumerate(readings):
                if number >= self._done:
                    found |= self._go(reading, number + 1 == len(readings))
        except KeyboardInterrupt as error:
            if self.saved is None or not (isinstance(error, Stopped) or self.run.observer.stops()):
                raise
            self.saved.interrupt()
        finally:
            # The trainer of the group refers to the report. If the report still referred to the
            # group, only the garbage collector would free the weights of all lanes.
            self._last, self._report.training = self._report.training, None
        return found

    @property
    def _done(self) -> int:
        """Number of groups that are finished."""
        return 0 if self.saved is None else self.saved.done

    def _go(self, reading: Reading, last: bool) -> dict[tuple[int, int], ModelResult]:
        """Train and score a group; add it to the checkpoint."""
        found: dict[tuple[int, int], ModelResult] = {}
        models: dict[int, Any] = {}
        run = RunOptions() if self.saved is None else self.saved.options()
        for point, split, result, model in reading.fits.go(reading.group, self._report, run):
            found[point.number, split] = result
            if model is not None:
                models[point.number] = model
        self.models |= models
        # The lanes of a source that can be read only once are needed until the end.
        if self.saved is not None and (self.splits.source.rereadable or not last):
            self.saved.rows = self._report.rows
            self.saved.finish(found, models)
            self.saved.pause()
        return found

    # ---- models --------------------------------------------------------------------------------

    def has_model(self, number: int) -> bool:
        """Tell whether the model of all rows of a point was kept: not if it diverged."""
        return number in self.models or (self.saved is not None and number in self.saved.models)

    def model_of(self, number: int) -> Model:
        """Return the model of all rows of a point; the run before may have trained it."""
        if number in self.models:
            model: Model = self.models[number].model_
            return model
        assert self.saved is not None
        return self.saved.models[number]

    def model(self, number: int) -> Any:
        """Return the model of a point of the last group as an estimator."""
        trained = self._last
        assert isinstance(trained, TrainedModels)
        at = next(i for i, job in enumerate(trained.jobs) if job.point.number == number)
        return trained.model(at)

    def nonzeros(self) -> Mapping[int, int]:
        """Return the current number of nonzero weights of the models of all rows, by point."""
        before = {} if self.saved is None else self.saved.models
        done = {number: int(model.nnz) for number, model in before.items()}
        done |= {number: int(model.model_.nnz) for number, model in self.models.items()}
        training = self._report.training or self._last
        return done if training is None else done | training.nonzeros()
