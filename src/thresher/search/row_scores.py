"""Scores on rows in memory: by scikit-learn's scorers, or faster by sums with the same result."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection._validation import _score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from thresher.search.model_groups import OVERFLOWS, ModelJob
from thresher.search.progress_reporter import ProgressReporter
from thresher.search.scores import Scored, Scores
from thresher.search.splits import MatrixSplits
from thresher.search.trained import TrainedModels
from thresher.training.scores import Score, ScoreTally

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
        for number in dict.fromkeys(job.split for job in jobs):
            own = [i for i, job in enumerate(jobs) if job.split == number]
            if number >= self.splits.scored:  # models of all rows have no test rows
                yield from (Scored(i, None, failures[i], 0.0) for i in own)
                continue
            test = self.splits.parts[number].test
            X, y = _safe_indexing(self.X, test), _safe_indexing(self.y, test)
            params = _check_method_params(self.X, self.params, indices=test)
            true = self._truth(test)
            for i, raw, seconds in self._predictions(trained, own, test):
                failure, scores, began = failures[i], None, time.perf_counter()
                if not failure and raw is not None and not np.isfinite(raw).all():
                    failure = OVERFLOWS
                elif not failure and true is not None and raw is not None:
                    scores = self._quick_score(jobs[i], raw, true)
                elif not failure:
                    model = trained.scored(i, X, raw)
                    scores = _score(model, X, y, self.scorer, params, self.error_score)
                yield Scored(i, scores, failure, seconds + time.perf_counter() - began)
            done += len(test)
            report.report(trained.trainer.plan.passes + 1, done)

    def _truth(self, test: NDArray[np.int64]) -> NDArray[Any] | None:
        """Return the true values for the quick score; None if the scorer must be used."""
        numbers, classes = self.splits.class_numbers, self.splits.classes
        if self.quick is None:
            return None
        if numbers is None or classes is None:
            return np.asarray(self.splits.source.block.labels, np.float64)[test]
        return numbers[test]  # the log loss of scikit-learn fails if test rows lack a class

    def _quick_score(self, job: ModelJob, raw: NDArray[np.float64], true: NDArray[Any]) -> float:
        assert self.quick is not None
        classes = 0 if self.splits.classes is None else len(self.splits.classes)
        tally = ScoreTally({"score": self.quick}, job.point.loss, classes)
        tally.add(raw, true, None)
        return tally.result()["score"]

    def _predictions(
        self, trained: TrainedModels, own: Sequence[int], test: NDArray[np.int64]
    ) -> Iterator[tuple[int, NDArray[np.float64] | None, float]]:
        """Yield job, raw predictions and time for some jobs; predicts a few jobs at a time."""
        jobs, batch = trained.jobs, self.splits.source.block.batch
        outputs = len(trained.lanes[own[0]])
        few = max(1, _PREDICTIONS // (len(test) * outputs))
        for average in (False, True):
            chosen = [i for i in own if jobs[i].point.average == average]
            for first in range(0, len(chosen), few):
                some, began = chosen[first : first + few], time.perf_counter()
                raw = trained.predict(batch, some, test, average)
                seconds = (time.perf_counter() - began) / len(some)
                for k, i in enumerate(some):
                    cut = jobs[i].point.params.get("target_nnz") is not None
                    each = np.ascontiguousarray(raw[:, k * outputs : (k + 1) * outputs])
                    yield i, None if cut else each, seconds
