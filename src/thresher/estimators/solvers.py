"""What estimators that see all rows at once share: the record of progress, the outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.estimators.linear import LinearEstimator
from thresher.model import Output, Progress


class MatrixEstimator(LinearEstimator):
    """Base of estimators that learn from the whole matrix, again and again; no partial_fit."""

    _found: list[Output]

    def _outputs(self) -> list[Output]:
        return self._found

    def _keep(
        self, params: dict[str, Any], shape: tuple[int, int], found: list[Output], record: Record
    ) -> Self:
        """Take over what a fit has found."""
        self._made_of, self._found = (params, shape[0]), found
        self.history_, self.n_iter_ = record.history, len(record.history)
        self._width, self._sparse_coef = shape[1], False
        self._forget_answers()
        self._model = self.model_  # made now: predicting changes nothing
        return self


class Record:
    """The history of a fit, a record a pass; tells the callback, which may stop the fit."""

    def __init__(self, estimator: MatrixEstimator, rows: int, evaluation: Any) -> None:
        self.estimator, self.rows, self.evaluation = estimator, rows, evaluation
        self.history: list[Progress] = []
        self.began = time.perf_counter()
        self.stopped = False

    def add(
        self,
        objective: float,
        rate: float,
        weights: Sequence[NDArray[np.float64]],
        intercepts: Sequence[float],
    ) -> None:
        """Record a pass that ended with these weights and intercepts of the outputs."""
        progress = Progress(
            examples=(len(self.history) + 1) * self.rows,
            loss=objective,
            nonzeros=int(sum(np.count_nonzero(w) for w in weights)),
            rate=rate,
            seconds=time.perf_counter() - self.began,
            valid_loss=self._valid_loss(weights, intercepts),
        )
        self.history.append(progress)
        callback = self.estimator.callback
        self.stopped = bool(callback is not None and callback(progress))

    def _valid_loss(
        self, weights: Sequence[NDArray[np.float64]], intercepts: Sequence[float]
    ) -> float | None:
        if self.evaluation is None:
            return None
        X, targets = self.evaluation
        e = self.estimator
        loss = e._loss(), float(getattr(e, "epsilon", 0.0)), 0.5
        outputs = zip(weights, intercepts, targets, strict=True)
        means = [_core.loss_values(*loss, X @ w + b, y)[0].mean() for w, b, y in outputs]
        return float(np.mean(means))


def output(weights: NDArray[np.float64], intercept: float) -> Output:
    """Return an output of all weights, zeros included."""
    keys = np.flatnonzero(weights)
    return Output(keys.astype(np.uint64), weights[keys], intercept)
