"""Taking learners through rows: chunks, the record of progress, the loss of a pass."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core, settings
from thresher.data import as_batch, nonzeros
from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.model import Progress

if TYPE_CHECKING:
    from thresher.estimators.streaming import StreamingEstimator

_CHUNK = 1 << 22  # nonzeros learned between two looks at the clock and at Ctrl-C


class Run:
    """One call of fit or partial_fit: takes the learners through rows and keeps the history."""

    def __init__(
        self,
        estimator: StreamingEstimator,
        learners: Sequence[_core.Learner],
        X: Any,
        targets: Sequence[NDArray[np.float64]],
        weights: NDArray[np.float64] | None,
        history: Sequence[Progress],
        recorded: tuple[float, float],
        watch: DivergenceWatch,
    ) -> None:
        self.estimator, self.learners, self.X = estimator, learners, X
        self.targets, self.weights, self.history = targets, weights, list(history)
        self.batch = as_batch(X)
        self._count_steps()
        self.full = {i for i, m in enumerate(learners) if estimator._is_full(m)}
        self.stopped = False
        self.began = time.perf_counter() - (self.history[-1].seconds if self.history else 0.0)
        self.recorded = recorded  # the tally at the last record
        self.watch, self.zero_loss = watch, self._zero_loss()
        watch.expect(self.zero_loss, X.shape[0] if weights is None else float(weights.sum()))
        # How often each row was learned from, where a certificate asks.
        self.visits = np.zeros(X.shape[0], np.int64) if getattr(estimator, "certify", 0) else None

    def one_pass(
        self,
        order: NDArray[np.int64] | None,
        evaluation: tuple[_core.Batch, list[NDArray[np.float64]]] | None,
        record_end: bool = True,
    ) -> float:
        """Learn from all rows once; return the loss by which early stopping decides."""
        before = self._tally()
        position, rows = 0, self.X.shape[0]
        while position < rows and not self.stopped:
            mark = self._next_mark()
            end = min(self._chunk_end(position), position + mark - self.steps)
            self._learn(order, position, end)
            position = end
            if self.steps == mark and not (record_end and position == rows):
                self._record(None)
        valid = None if evaluation is None else self._loss_on(*evaluation)
        if record_end and self.steps > 0:
            if self.stopped and self.history and self.history[-1].examples == self.steps:
                self.history[-1] = self.history[-1]._replace(valid_loss=valid)
            else:
                self._record(valid, end=True)
        return valid if valid is not None else self._mean_since(before)

    def _learn(self, order: NDArray[np.int64] | None, first: int, last: int) -> None:
        """Let all outputs learn these rows.

        A bad row stops all outputs before it, and Ctrl-C waits until all have learned the chunk, so
        that they stay in step. Divergence of one of several outputs leaves them out of step.
        """
        reached = [first] * len(self.learners)
        try:
            for output in range(len(self.learners)):
                self._learn_one(output, order, reached, last)
        except _core.DataError:
            bad = max(reached)
            for output in range(len(self.learners)):
                self._learn_one(output, order, reached, bad)
            self._count_steps()
            raise
        except KeyboardInterrupt:
            for output in range(len(self.learners)):
                self._learn_one(output, order, reached, last)
            self._count_steps()
            raise
        self._count_steps()
        if self.visits is not None:
            rows = np.arange(first, last) if order is None else order[first:last]
            np.add.at(self.visits, rows, 1)
        if len(self.full) == len(self.learners):
            self.stopped = True

    def _count_steps(self) -> None:
        self.steps = max(learner.steps for learner in self.learners)  # some may be full

    def _learn_one(
        self, output: int, order: NDArray[np.int64] | None, reached: list[int], last: int
    ) -> None:
        """Let one output learn the rows from where it is up to `last`, unless it is full."""
        learner = self.learners[output]
        self.batch.set_targets(self.targets[output], self.weights)
        while reached[output] < last and output not in self.full:
            before = learner.steps
            try:
                learner.learn(self.batch, order, reached[output], last)
            finally:
                reached[output] += learner.steps - before
            if learner.paused and self.estimator._paused(output, learner):
                self.full.add(output)

    def _chunk_end(self, position: int) -> int:
        rows = int(self.X.shape[0])
        per_row = max(1.0, nonzeros(self.X) / max(rows, 1))
        return min(rows, position + max(1, int(_CHUNK / per_row)))

    def _next_mark(self) -> int:
        """Return the next step count to record at: the powers of two from 128 on.

        Counted from the learner's first row, so that the history of a stream does not depend on
        how it was cut into batches.
        """
        return max(128, 1 << self.steps.bit_length())

    def _tally(self) -> tuple[float, float]:
        return (
            sum(learner.loss_sum for learner in self.learners),
            sum(learner.weight_sum for learner in self.learners),
        )

    def _mean_since(self, before: tuple[float, float]) -> float:
        loss, weight = self._tally()
        return (loss - before[0]) / (weight - before[1]) if weight > before[1] else 0.0

    def losses(
        self, predictions: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the losses at raw predictions."""
        e = self.estimator
        numbers, words = settings.core_parameters(e._rule, e._made_of[0], e._made_of[1])
        loss = words["loss"], numbers["epsilon"], numbers["quantile"]
        return _core.loss_values(*loss, predictions, labels)[0]

    def _loss_on(self, batch: _core.Batch, targets: Sequence[NDArray[np.float64]]) -> float:
        e = self.estimator
        learners = self.learners
        if e._target() is not None:  # the model has fewer weights than the learners
            learners = e._model_of(e._outputs_of(learners))._learners()
        losses = [
            self.losses(learner.predict(batch, e._average), target).mean()
            for learner, target in zip(learners, targets, strict=True)
        ]
        return float(np.mean(losses))

    def _zero_loss(self) -> float:
        """Return the mean loss of predicting zero, over rows by weight and over outputs."""
        if self.weights is not None and not self.weights.any():
            return 0.0
        return float(
            np.mean([np.average(self._zero_losses(t), weights=self.weights) for t in self.targets])
        )

    def _zero_losses(self, target: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.estimator._task == "regressor":
            return self.losses(np.zeros(len(target)), target)
        ends = np.array([target.min(), target.max()])  # a classifier has two labels
        low, high = self.losses(np.zeros(2), ends)
        return np.asarray(np.where(target == ends[1], high, low))

    def _nonzeros(self) -> int:
        counts = [learner.nonzeros(self.estimator._average) for learner in self.learners]
        target = self.estimator._target()
        return sum(counts if target is None else [min(count, target) for count in counts])

    def _record(self, valid: float | None, end: bool = False) -> None:
        # Counting looks at every weight: not before the steps so far have cost more than that.
        counted = end or self.steps >= self.X.shape[1] // 16
        record = Progress(
            examples=self.steps,
            loss=self._mean_since(self.recorded),
            nonzeros=self._nonzeros() if counted else None,
            rate=self.learners[0].rate,
            seconds=time.perf_counter() - self.began,
            valid_loss=valid,
        )
        self.recorded = self._tally()
        self.history.append(record)
        message = self.watch.see(record, self.zero_loss) if self.estimator._diverges else None
        if message is not None:
            warnings.warn(message, DivergenceWarning, stacklevel=5)
        if self.estimator.callback is not None and self.estimator.callback(record):
            self.stopped = True
