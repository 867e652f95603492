"""What estimators that see all rows at once share: records of progress, the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.estimators.linear import LinearEstimator
from thresher.model import Output
from thresher.training.solver_run import SolverRun


class MatrixEstimator(LinearEstimator):
    """Base of estimators that learn from the whole matrix, again and again; no partial_fit."""

    _found: list[Output]

    def _outputs(self) -> list[Output]:
        return self._found

    def _keep(
        self, params: dict[str, Any], shape: tuple[int, int], found: list[Output], run: SolverRun
    ) -> Self:
        """Take over what a fit has found."""
        self._made_of, self._found = (params, shape[0]), found
        self.history_, self.n_iter_ = run.history, len(run.history)
        self._width, self._sparse_coef = shape[1], False
        self._forget_answers()
        self._model = self.model_  # made now: predicting changes nothing
        return self

    def _record(
        self,
        run: SolverRun,
        evaluation: Any,
        objective: float,
        rate: float,
        weights: Sequence[NDArray[np.float64]],
        intercepts: Sequence[float],
    ) -> None:
        """Record a pass that ended with these weights and intercepts of the outputs."""
        run.record(
            examples=(len(run.history) + 1) * int(run.rows[0].shape[0]),
            loss=objective,
            nonzeros=int(sum(np.count_nonzero(w) for w in weights)),
            rate=rate,
            valid_loss=self._valid_loss(evaluation, weights, intercepts),
        )

    def _valid_loss(
        self, evaluation: Any, weights: Sequence[NDArray[np.float64]], intercepts: Sequence[float]
    ) -> float | None:
        if evaluation is None:
            return None
        X, targets = evaluation
        loss = self._loss(), float(getattr(self, "epsilon", 0.0)), 0.5
        outputs = zip(weights, intercepts, targets, strict=True)
        means = [_core.loss_values(*loss, X @ w + b, y)[0].mean() for w, b, y in outputs]
        return float(np.mean(means))


def output(weights: NDArray[np.float64], intercept: float) -> Output:
    """Return an output of all weights, zeros included."""
    keys = np.flatnonzero(weights)
    return Output(keys.astype(np.uint64), weights[keys], intercept)
