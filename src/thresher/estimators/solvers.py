"""Base classes of estimators that need all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data import is_source
from thresher.data.in_memory import gather
from thresher.data.label_checks import tidy
from thresher.data.labels import ArrivingClasses, ManyClasses, NumericLabels, TwoClasses
from thresher.data.matrix_source import MatrixSource
from thresher.data.scaled import same_scale
from thresher.data.source import Source
from thresher.data.targets import Targets
from thresher.errors import ParameterError
from thresher.estimators.frames import FrameRows
from thresher.estimators.linear import LinearEstimator
from thresher.losses import LOSSES, Task
from thresher.model.model import Output
from thresher.rules import core_args
from thresher.training.first_rows import column_name
from thresher.training.fitted import FittedState
from thresher.training.run_options import RunOptions
from thresher.training.solver_run import SolverRun
from thresher.training.target_scale import TargetScale
from thresher.training.unscaled import unscaled

if TYPE_CHECKING:
    from thresher.data.block import Block


class WholeMatrixEstimator(LinearEstimator):
    """Base of estimators that need all rows at once; a source is read into memory."""

    _of_columns: tuple[Source, NDArray[np.uint64] | None] | None = None  # while a source is fitted

    def _fit_source(self, source: Source, eval_set: Any, classes: Any, run: RunOptions) -> Self:
        if source.multilabel:
            raise ParameterError(
                "needs rows with one label each, and these have lists of labels",
                owner=type(self).__name__,
            )
        check = label_check(self.task, self._loss(), classes)
        eval_set = same_scale(source, self._valid_source(eval_set, separate=True))
        rows = gather(source, check)
        X, seen = rows.compact() if source.named else (rows.matrix(), None)
        if isinstance(eval_set, MatrixSource):
            eval_set = (eval_set.block.X, eval_set.block.labels)
        elif eval_set is not None:
            others = gather(eval_set, check, source.kinds)
            columns = np.arange(X.shape[1]) if seen is None else seen
            eval_set = (others.matrix_of(columns), tidy(others.labels))
        self._of_columns = (source, seen)  # for messages
        try:
            self.fit(X, tidy(rows.labels), rows.weights, eval_set, names=run.names, **run.of_fit())
        finally:
            self._of_columns = None
        return self.take(of_source(self._fitted, source, seen, run.names))

    def _column_name(self, column: int) -> str:
        if self._of_columns is None:
            return super()._column_name(column)
        source, seen = self._of_columns
        key = column if seen is None else int(seen[column])
        return column_name(source, None, key) if source.rereadable else str(key + source.first)

    def _fit_frame(
        self, X: FrameRows, y: Any, sample_weight: Any, eval_set: Any, run: RunOptions
    ) -> Self:
        source = X.source(np.zeros(len(X)))
        rows = gather(source)
        matrix, seen = rows.compact() if source.bits is None else (rows.matrix(), None)
        if eval_set is not None and not is_source(eval_set):
            valid: Any = self._valid_source(eval_set)
            others = gather(valid, kinds=source.kinds)
            columns = np.arange(matrix.shape[1]) if seen is None else seen
            eval_set = (others.matrix_of(columns), others.labels)
        self.fit(matrix, y, sample_weight, eval_set, names=run.names, **run.of_fit())
        self._frame_options = X.reading, X.columns
        return self.take(of_source(self._fitted, source, seen, run.names))


def label_check(task: Task, loss: str, classes: Any) -> Callable[[Block], Any]:
    """Return a function that raises an error, with its place, for a label not in `classes`.

    Parameters
    ----------
    task : {"classifier", "regressor"}
    loss : str
    classes : array, "binary", "arriving" or None
        As for `fit`.
    """
    low = LOSSES[loss].low
    if task == "regressor":
        return NumericLabels(loss).targets
    if isinstance(classes, str) and classes == "binary":
        return TwoClasses(low).targets
    if classes is None or isinstance(classes, str):
        arriving = ArrivingClasses(low)  # refuses rows without label, and text mixed with numbers
        return lambda block: arriving.arrivals(block, None)
    return ManyClasses(classes, low).targets


def of_source(
    state: FittedState, source: Source, seen: NDArray[np.uint64] | None, names: bool
) -> FittedState:
    """Return the state of a fit to the rows of a source that were read into memory.

    Parameters
    ----------
    state : FittedState
        The state of the fit to the matrix.
    source : Source
    seen : array of uint64 or None
        The feature of each column of the matrix; None: columns are features.
    names : bool
        Whether to look up the names of features, if the source has names.
    """
    state = replace(state, reading=source.described(), kinds=source.kinds or None)
    if seen is not None:
        state = _renumbered(state, seen, 2**64 if source.bits is None else 1 << source.bits)
    if names and source.named and source.rereadable:
        keys = np.unique(np.concatenate([output.keys for output in state.learned()]))
        state.names = source.names(keys.tolist(), state.kinds) or None
    return unscaled(state, source)


def _renumbered(state: FittedState, features: NDArray[np.uint64], width: int) -> FittedState:
    """Return a state whose columns are these features; its training cannot continue."""
    weights = [o._replace(keys=features[o.keys.astype(np.intp)]) for o in state.learned()]
    extras = dict(state.all_extras())
    if (evidence := extras.get("evidence")) is not None:
        known = features[evidence.features.astype(np.intp)]
        extras["evidence"] = replace(evidence, features=known)
    why = f"the rule {state.rule} needs all rows at once"
    state = replace(state, outputs=None, refit=None, final=True, obstacle=why)
    return replace(state, weights=weights, extras=extras, width=width)


class MatrixEstimator(WholeMatrixEstimator):
    """Base of estimators that iterate over the whole matrix; they have no partial_fit."""

    def _keep(
        self,
        params: dict[str, Any],
        shape: tuple[int, int],
        found: list[Output],
        run: SolverRun,
        extras: dict[str, Any] | None = None,
    ) -> Self:
        """Set the fitted attributes from the result of a fit."""
        return self.take(
            FittedState(
                rule=self.rule,
                params=params,
                requested=params,
                rows=shape[0],
                width=shape[1],
                history=run.history,
                passes=len(run.history),
                weights=found,
                extras=extras or {},
                classes=getattr(self, "classes_", None),
            )
        )

    def _standardised(
        self, targets: Targets, weights: NDArray[np.float64] | None
    ) -> tuple[TargetScale | None, Targets]:
        """Return the scale of the targets, and the targets in it; None: they stay as they are."""
        params = self._own_params()
        if not core_args.standardises(self.rule, self.task, params):
            return None, targets
        degree, centred = LOSSES[self._loss()].degree, bool(params["fit_intercept"])
        scale = TargetScale.of(degree, centred, targets[0], weights)
        labels = scale.standardise(targets[0], weights).labels.ravel()
        return scale, Targets.of_values(labels)

    def _record(
        self,
        run: SolverRun,
        evaluation: Any,
        objective: float,
        rate: float,
        weights: Sequence[NDArray[np.float64]],
        intercepts: Sequence[float],
        scale: TargetScale | None = None,
        nonzeros: int | None = None,
        duality_gap: float | None = None,
    ) -> None:
        """Record a pass, with the weights and intercepts of the outputs at its end.

        `scale` is that of the targets, if they are standardised. If `nonzeros` is given, the
        weights are needed only for an evaluation set.
        """
        if scale is not None:
            objective *= scale.unit
            duality_gap = None if duality_gap is None else duality_gap * scale.unit
            weights = [scale.sd * w for w in weights]
            intercepts = [scale.mean + scale.sd * b for b in intercepts]
        run.record(
            examples=(len(run.history) + 1) * int(run.rows[0].shape[0]),
            loss=objective,
            nonzeros=(
                int(sum(np.count_nonzero(w) for w in weights)) if nonzeros is None else nonzeros
            ),
            rate=rate,
            valid_loss=self._valid_loss(evaluation, weights, intercepts, scale),
            duality_gap=duality_gap,
        )

    def _valid_loss(
        self,
        evaluation: Any,
        weights: Sequence[NDArray[np.float64]],
        intercepts: Sequence[float],
        scale: TargetScale | None,
    ) -> float | None:
        if evaluation is None:
            return None
        X, targets = evaluation
        params = self._own_params()
        loss = self._loss(), core_args.epsilon_of(self.rule, params, scale is not None), 0.5

        def losses(raw: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
            return _core.loss_values(*loss, raw, y)[0]

        of_rows = losses if scale is None else scale.losses(losses)
        outputs = zip(weights, intercepts, targets, strict=True)
        return float(np.mean([of_rows(X @ w + b, y).mean() for w, b, y in outputs]))


def output(
    weights: NDArray[np.float64], intercept: float, scale: TargetScale | None = None
) -> Output:
    """Return an output from an array of all weights, including zeros.

    `scale` is that of the targets, if they are standardised.
    """
    keys = np.flatnonzero(weights)
    found = Output(keys.astype(np.uint64), weights[keys], intercept)
    return found if scale is None else scale.output(found)
