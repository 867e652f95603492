"""Taking learners through rows: chunks, the record of progress, the loss of a pass."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data import as_batch, nonzeros
from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.model import Progress
from thresher.rules import core_args
from thresher.scoring import learners_of
from thresher.training.alone import Alone
from thresher.training.outputs import Outputs
from thresher.training.targets import Targets
from thresher.training.together import Together

if TYPE_CHECKING:
    from thresher.estimators.streaming import StreamingEstimator

_CHUNK = 1 << 22  # nonzeros learned between two looks at the clock and at Ctrl-C


class Run:
    """One call of fit or partial_fit: takes the learners through rows and keeps the history."""

    def __init__(
        self,
        estimator: StreamingEstimator,
        learners: Outputs,
        X: Any,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        history: Sequence[Progress],
        recorded: tuple[float, float],
        watch: DivergenceWatch,
    ) -> None:
        self.estimator, self.learners, self.X = estimator, learners, X
        self.targets, self.weights, self.history = targets, weights, list(history)
        self.batch = as_batch(X)
        self.steps = learners.steps
        if isinstance(learners, Alone):
            learners.full = {i for i, m in enumerate(learners) if estimator._is_full(m)}
        self.stopped = False
        self.began = time.perf_counter() - (self.history[-1].seconds if self.history else 0.0)
        self.recorded = recorded  # the tally at the last record
        self.watch, self.zero_loss = watch, targets.zero_loss(self.losses, weights)
        watch.expect(self.zero_loss, X.shape[0] if weights is None else float(weights.sum()))
        # How often each row was learned from, where a certificate asks.
        self.visits = np.zeros(X.shape[0], np.int64) if getattr(estimator, "certify", 0) else None

    def one_pass(
        self,
        order: NDArray[np.int64] | None,
        evaluation: tuple[_core.Batch, Targets] | None,
        record_end: bool = True,
        arrivals: Sequence[int] = (),
    ) -> float:
        """Learn from all rows once; return the loss by which early stopping decides.

        At each of `arrivals`, which are places of rows, an output begins.
        """
        before = self._tally()
        position, rows, coming = 0, self.X.shape[0], list(arrivals)[::-1]
        while position < rows and not self.stopped:
            while coming and coming[-1] == position:
                coming.pop()
                assert isinstance(self.learners, Together)
                self.learners.add()
            mark = self._next_mark()
            end = min(self._chunk_end(position), position + mark - self.steps)
            end = min(end, *coming[-1:], rows)
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
        """Let all outputs learn these rows."""
        try:
            self.learners.learn(
                self.batch, self.targets, self.weights, order, first, last, self.estimator._paused
            )
        finally:
            self.steps = self.learners.steps
        if self.visits is not None:
            rows = np.arange(first, last) if order is None else order[first:last]
            np.add.at(self.visits, rows, 1)
        if len(self.learners.full) == len(self.learners):
            self.stopped = True

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
        return self.learners.tally

    def _mean_since(self, before: tuple[float, float]) -> float:
        loss, weight = self._tally()
        return (loss - before[0]) / (weight - before[1]) if weight > before[1] else 0.0

    def losses(
        self, predictions: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the losses at raw predictions."""
        e = self.estimator
        numbers, words = core_args.core_parameters(e._rule, e._made_of[0], e._made_of[1])
        loss = words["loss"], numbers["epsilon"], numbers["quantile"]
        return _core.loss_values(*loss, predictions, labels)[0]

    def _loss_on(self, batch: _core.Batch, targets: Targets) -> float:
        e, target = self.estimator, self.estimator._target()
        if target is None:
            total = self.learners.loss_on(batch, targets, self.losses, average=e._average)
        else:  # the model has fewer weights than the learners
            learners = learners_of(e._model_of(self.learners.outputs(e._average, target)))
            raw = np.column_stack([learner.predict(batch) for learner in learners])
            total = float(targets.row_losses(raw, self.losses).sum())
        return total / targets.rows

    def _nonzeros(self) -> int:
        counts, target = self.learners.nonzeros(self.estimator._average), self.estimator._target()
        return int(counts.sum() if target is None else np.minimum(counts, target).sum())

    def _record(self, valid: float | None, end: bool = False) -> None:
        # Counting looks at every weight: not before the steps so far have cost more than that.
        counted = end or self.steps >= self.X.shape[1] // 16
        record = Progress(
            examples=self.steps,
            loss=self._mean_since(self.recorded),
            nonzeros=self._nonzeros() if counted else None,
            rate=self.learners.rate,
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
