"""Scores on a source: sums over rows that are read again, or scored before they are learned."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.labels import Labels
from thresher.data.targets import Targets
from thresher.errors import DataError
from thresher.search.folds import fold_numbers
from thresher.search.model_groups import OVERFLOWS, ModelJob, places
from thresher.search.progress_reporter import ProgressReporter
from thresher.search.scores import Scored, Scores
from thresher.search.splits import SourceSplits
from thresher.search.trained import TrainedModels
from thresher.training.hooks import Hooks
from thresher.training.label_set_scores import TrueSets
from thresher.training.lane_outputs import LaneOutputs
from thresher.training.ranking_scores import refuse_several
from thresher.training.records import ANY
from thresher.training.scores import Score, ScoreTally, score_source
from thresher.training.trainer import Trainer

_PREDICTIONS = 1 << 22  # predictions in memory at the same time


class SumScores(Scores):
    """Scores models on the rows of a source, block by block.

    Parameters
    ----------
    splits : SourceSplits
    named : mapping of str to Score
        A single score is named "score".
    """

    def __init__(self, splits: SourceSplits, named: Mapping[str, Score]) -> None:
        self.splits, self.named = splits, named

    def begin(self, jobs: Sequence[ModelJob], labels: Labels) -> Hooks:
        """Begin the models of a group."""
        self.jobs, self.lanes, self.labels = jobs, places(jobs), labels
        self.weights, self.overflown = np.zeros(len(jobs)), np.zeros(len(jobs), bool)
        classes = 0 if labels.classes is None else max(labels.outputs, 2)
        if labels.outputs > 1 and any(one.needs == "decision" for one in self.named.values()):
            refuse_several(labels.outputs)
        self.tallies = [ScoreTally(self.named, job.point.loss, classes) for job in jobs]
        return _BeforeLearning(self) if self.splits.progressive else Hooks()

    def at_once(self, lanes: int) -> int:
        """Return how many rows `lanes` lanes may learn at once; their predictions are stored."""
        return max(1, _PREDICTIONS // lanes) if self.splits.progressive else ANY

    def truth(self, targets: Targets) -> Any:
        """Return class numbers, the sets of labels, or the values of a regression."""
        if self.splits.source.multilabel:
            return TrueSets.of(targets)
        return targets[0] if self.labels.classes is None else targets.single()

    def add(
        self,
        chosen: Sequence[int],
        raw: NDArray[np.float64],
        true: Any,
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Add rows: raw predictions of some jobs, with the outputs of a job in adjacent columns."""
        at = 0
        for i in chosen:
            own = raw[:, at : at + len(self.lanes[i])]
            at += len(self.lanes[i])
            self.weights[i] += len(true) if weights is None else weights.sum()
            if np.isfinite(own).all():
                self.tallies[i].add(own, true, weights)
            else:
                self.overflown[i] = True

    def of(self, trained: TrainedModels, report: ProgressReporter) -> Iterator[Scored]:
        """Yield the scores of trained models."""
        began = time.perf_counter()
        if not self.splits.progressive:
            self._read(trained, report)
        seconds = (time.perf_counter() - began) / len(self.jobs)
        self._check_weights(trained)
        for i, (tally, failure) in enumerate(zip(self.tallies, trained.failures(), strict=True)):
            scores: Any = tally.result()
            if list(scores) == ["score"]:
                scores = scores["score"]
            overflow = OVERFLOWS if self.overflown[i] else ""
            yield Scored(i, scores, failure or overflow, seconds)

    def of_model(self, model: Any, split: int) -> Any:
        """Return the scores of a fitted estimator on the rows of a fold."""
        found = score_source(model.model_, self.splits.held_out(split), self.named)
        return found["score"] if list(found) == ["score"] else found

    def _read(self, trained: TrainedModels, report: ProgressReporter) -> None:
        """Read all rows again, and score each fold."""
        trainer, first = trained.trainer, 0
        plan = trainer.plan
        for block in self.splits.source.blocks(dtype=plan.dtype, kinds=trainer.kinds):
            if block.rows:
                true = self.truth(self.labels.targets(block))
                fold = fold_numbers(first, block.rows, self.splits.folds)
                for split in dict.fromkeys(job.split for job in self.jobs):
                    held_out = np.flatnonzero(fold == split)
                    few = max(1, _PREDICTIONS // len(trained.team))
                    for start in range(0, len(held_out), few):
                        rows = held_out[start : start + few]
                        weights = None if block.weights is None else block.weights[rows]
                        self._score(trained, block.batch, split, rows, true[rows], weights)
            first += block.rows
            report.report(plan.passes + 1, first)

    def _score(
        self,
        trained: TrainedModels,
        batch: _core.Batch,
        split: int,
        rows: NDArray[np.int64],
        true: Any,
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Add rows that the models of a split did not learn from."""
        for average in (False, True):
            chosen = [
                i
                for i, job in enumerate(self.jobs)
                if job.split == split and job.point.average == average
            ]
            if chosen:
                raw = trained.predict(batch, chosen, rows, average)
                self.add(chosen, raw, true, weights)

    def _check_weights(self, trained: TrainedModels) -> None:
        """Raise DataError if the weights of all training rows or of all rows of a fold are 0."""
        source = self.splits.source
        if not trained.team.weight_sums().any():
            raise DataError(f"{source}: the weights of all rows are 0: nothing is learned")
        for job, weight in zip(self.jobs, self.weights.tolist(), strict=True):
            if weight == 0 and job.split < self.splits.scored:
                raise DataError(
                    f"{source}: the weights of all rows of fold {job.split} are 0: there is no "
                    f"score; use fewer folds"
                )


class _BeforeLearning(Hooks):
    """Scores the predictions of lanes for each row before they learn it."""

    def __init__(self, scores: SumScores) -> None:
        self.scores = scores

    def begin(self, trainer: Trainer) -> None:
        """Install the scoring in new lanes, before their first row."""

        def before(raw: NDArray[np.float64], targets: Targets, first: int, last: int) -> None:
            scores, weights = self.scores, trainer.last_block.weights
            true = scores.truth(targets)[first:last]
            own = None if weights is None else weights[first:last]
            scores.add(range(len(scores.jobs)), raw, true, own)

        assert isinstance(trainer.outputs, LaneOutputs)
        trainer.outputs.before = before

    def state(self) -> dict[str, Any]:
        """Return the sums so far, in types that JSON has."""
        scores = self.scores
        return {
            "weights": scores.weights.tolist(),
            "overflown": scores.overflown.tolist(),
            "tallies": [tally.state for tally in scores.tallies],
        }

    def restore(self, saved: Any, trainer: Trainer) -> None:
        """Continue from sums."""
        self.scores.weights = np.array(saved["weights"], np.float64)
        self.scores.overflown = np.array(saved["overflown"], bool)
        for tally, state in zip(self.scores.tallies, saved["tallies"], strict=True):
            tally.state = state
