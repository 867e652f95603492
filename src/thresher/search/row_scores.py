"""Scores on rows in memory: by scikit-learn's scorers, or faster by sums with the same result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection._validation import _score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from thresher import _core
from thresher.search.model_groups import OVERFLOWS, ModelJob
from thresher.search.progress_reporter import ProgressReporter
from thresher.search.scores import Scored, Scores
from thresher.search.splits import MatrixSplits
from thresher.search.trained import TrainedModels
from thresher.training.scores import Score, ScoreTally, sums_in_core

_PREDICTIONS = 1 << 24  # predictions in memory at the same time


def accuracy(model: Any, X: Any, y: Any) -> float:
    """Return the same as a classifier's `score`, without checking all labels for each model.

    Parameters
    ----------
    model : estimator
    X : CSR matrix, array or DataFrame of shape (rows, features)
    y : array of shape (rows,)
    """
    return float(np.average(np.asarray(y) == model.predict(X)))


@dataclass(frozen=True)
class HeldOut:
    """Rows that the models of a split did not learn from.

    Attributes
    ----------
    given : function without arguments
        Returns the rows, their labels, and more arguments of the scorer.
    true : array or None
        Class numbers, or values, for the quick score; None: the scorer must be used.
    batch : _core.Batch
    rows : array of int64
        The numbers of the rows in the batch.
    """

    given: Callable[[], tuple[Any, Any, Mapping[str, Any]]]
    true: NDArray[Any] | None
    batch: _core.Batch
    rows: NDArray[np.int64]

    @cached_property
    def for_scorer(self) -> tuple[Any, Any, Mapping[str, Any]]:
        """The arguments of a scorer; they are copied only if a scorer is called."""
        return self.given()


@dataclass(frozen=True)
class RowScores(Scores):
    """Scores models on the rows in memory that they did not learn from.

    Attributes
    ----------
    X, y : arguments of `fit`
    splits : MatrixSplits
    scorer : callable
        A scorer of scikit-learn.
    params : mapping
        More arguments of the scorer.
    error_score : float or "raise"
    quick : Score, optional
        The same score by sums over rows.
    """

    X: Any
    y: Any
    splits: MatrixSplits
    scorer: Any
    params: Mapping[str, Any]
    error_score: Any
    quick: Score | None = None

    def of(self, trained: TrainedModels, report: ProgressReporter) -> Iterator[Scored]:
        """Yield the scores of trained models, split by split."""
        jobs, failures, done = trained.jobs, trained.failures(), 0
        numbers = dict.fromkeys(job.split for job in jobs)
        held = {n: self.held_out(n) for n in numbers if n < self.splits.scored}
        summed = self._summed(trained, held)
        for number in numbers:
            own = [i for i, job in enumerate(jobs) if job.split == number]
            if number >= self.splits.scored:  # models of all rows have no test rows
                yield from (Scored(i, None, failures[i], 0.0) for i in own)
                continue
            for i in own:
                if i in summed:
                    score, seconds = summed[i]
                    failure = failures[i] or (OVERFLOWS if np.isnan(score) else "")
                    yield Scored(i, None if failure else score, failure, seconds)
            others = [i for i in own if i not in summed]
            yield from self._one_by_one(trained, others, held[number], failures)
            done += len(held.pop(number).rows)
            report.report(trained.trainer.plan.passes + 1, done)

    def _one_by_one(
        self, trained: TrainedModels, own: Sequence[int], held: HeldOut, failures: Sequence[str]
    ) -> Iterator[Scored]:
        """Score models by their predictions, one after the other."""
        for i, raw, seconds in self._predictions(trained, own, held):
            failure, scores, began = failures[i], None, time.perf_counter()
            if not failure and raw is not None and not np.isfinite(raw).all():
                failure = OVERFLOWS
            elif not failure and held.true is not None and raw is not None:
                scores = self._quick_score(trained.jobs[i], raw, held.true)
            elif not failure:
                scores = self._scored(trained.scored(i, held.for_scorer[0], raw), held)
            yield Scored(i, scores, failure, seconds + time.perf_counter() - began)

    def _summed(
        self, trained: TrainedModels, held: Mapping[int, HeldOut]
    ) -> dict[int, tuple[float, float]]:
        """Return score and seconds of the jobs that the core scores, in one sweep over the rows."""
        found: dict[int, tuple[float, float]] = {}
        if self.quick is None or trained.outputs.scale is not None:
            return found
        classes, asked, wanted = self.splits.classes, [], []
        by_kind: dict[Any, list[int]] = {}
        for i, job in enumerate(trained.jobs):
            cut = job.point.params.get("target_nnz") is not None
            split_up = not trained.team.in_one_part(trained.lanes[i])
            sums = sums_in_core(self.quick, job.point.loss, len(trained.lanes[i]))
            if job.split not in held or held[job.split].true is None or cut or split_up:
                continue
            if sums is not None:
                by_kind.setdefault((job.split, sums, job.point.average), []).append(i)
        began = time.perf_counter()
        for (split, (kind, middle, outputs), average), own in by_kind.items():
            true = np.asarray(held[split].true, np.float64)
            truth = 2.0 * true - 1.0 if classes is not None and outputs == 1 else true
            lanes = np.concatenate([trained.lanes[i] for i in own])
            how = kind, middle, outputs, average
            batch = trained.outputs.read_by_lanes(held[split].batch)
            asked.append((batch, lanes, held[split].rows, truth, *how))
            wanted.append(own)
        sums_of = trained.team.scores(asked)
        each = (time.perf_counter() - began) / max(1, sum(map(len, wanted)))
        for own, call, totals in zip(wanted, asked, sums_of, strict=True):
            sign = 1.0 if call[4] == "hits" else -1.0
            found |= {
                i: (float(sign * total / len(call[2])), each)
                for i, total in zip(own, totals, strict=True)
            }
        return found

    def of_model(self, model: Any, split: int) -> Any:
        """Return the scores of a fitted estimator on the held-out rows of a split."""
        return self._scored(model, self.held_out(split))

    def _scored(self, model: Any, held: HeldOut) -> Any:
        X, y, params = held.for_scorer
        return _score(model, X, y, self.scorer, params, self.error_score)

    def held_out(self, split: int) -> HeldOut:
        """Return the held-out rows of a split."""
        test, source = self.splits.parts[split].test, self.splits.source
        numbers, labels = self.splits.class_numbers, source.block.labels
        true = None
        if self.quick is not None and labels is not None:
            true = self._truth((labels if numbers is None else numbers)[test])

        def given() -> tuple[Any, Any, Mapping[str, Any]]:
            rows = _safe_indexing(self.X, test), _safe_indexing(self.y, test)
            return *rows, _check_method_params(self.X, self.params, indices=test)

        return HeldOut(given, true, source.block.batch, test)

    def _truth(self, true: NDArray[Any]) -> NDArray[Any] | None:
        """Return the true values for the quick score; None if the scorer must be used."""
        return np.asarray(true, np.float64) if self.splits.classes is None else true

    def _quick_score(self, job: ModelJob, raw: NDArray[np.float64], true: NDArray[Any]) -> float:
        assert self.quick is not None
        classes = 0 if self.splits.classes is None else len(self.splits.classes)
        tally = ScoreTally({"score": self.quick}, job.point.loss, classes)
        tally.add(raw, true, None)
        return tally.result()["score"]

    def _predictions(
        self, trained: TrainedModels, own: Sequence[int], held: HeldOut
    ) -> Iterator[tuple[int, NDArray[np.float64] | None, float]]:
        """Yield job, raw predictions and time for some jobs; predicts a few jobs at a time."""
        if not own:
            return
        jobs = trained.jobs
        outputs = len(trained.lanes[own[0]])
        few = max(1, _PREDICTIONS // (len(held.rows) * outputs))
        for average in (False, True):
            chosen = [i for i in own if jobs[i].point.average == average]
            for first in range(0, len(chosen), few):
                some, began = chosen[first : first + few], time.perf_counter()
                raw = trained.predict(held.batch, some, held.rows, average)
                seconds = (time.perf_counter() - began) / len(some)
                for k, i in enumerate(some):
                    cut = jobs[i].point.params.get("target_nnz") is not None
                    each = np.ascontiguousarray(raw[:, k * outputs : (k + 1) * outputs])
                    yield i, None if cut else each, seconds


@dataclass(frozen=True)
class HeldOutScores(RowScores):
    """Scores models on other rows than those of their matrix, which all are training rows.

    Attributes
    ----------
    checked : estimator
        Not fitted; it has checked the training rows.
    """

    checked: Any = None

    def held_out(self, split: int) -> HeldOut:
        """Return the held-out rows."""
        block = self.checked._valid_source((self.X, self.y)).block  # noqa: SLF001
        true, classes = None, self.splits.classes
        if self.quick is not None:
            y = np.asarray(block.labels)
            true = self._truth(y if classes is None else np.searchsorted(classes, y))
        rows = np.arange(block.rows)
        return HeldOut(lambda: (self.X, self.y, self.params), true, block.batch, rows)
