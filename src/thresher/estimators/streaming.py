"""What estimators that learn row by row share: one way from rows to a fitted state."""

from __future__ import annotations

from contextlib import nullcontext
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher.atomic import all_or_nothing
from thresher.data import as_batch, is_source, nonzeros
from thresher.data.matrix_source import MatrixSource
from thresher.data.reading import Stopped
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.estimators.linear import LinearEstimator
from thresher.estimators.tasks import LinearRegressor, no_rows_besides
from thresher.health.watch import DivergenceWatch
from thresher.rules import RULES
from thresher.training.fitted import FittedState
from thresher.training.hooks import Hooks
from thresher.training.labels import Labels
from thresher.training.plan import TrainingPlan
from thresher.training.records import Records
from thresher.training.room import Room
from thresher.training.run_options import RunOptions
from thresher.training.seeds import stream_seed
from thresher.training.trainer import Trainer

Rows = Source | MatrixSource


class StreamingEstimator(LinearEstimator):
    """Base of all estimators that learn one row at a time.

    What the outputs owe is paid in every answer they give.
    """

    def _hooks(self, **prepare: Any) -> Hooks:
        """Return what the rule does besides learning rows."""
        return Hooks()

    # ---- fitting -------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, run: RunOptions) -> Self:
        rows = MatrixSource(X, y, self._checked_weights(sample_weight, X))
        return self._train(rows, eval_set, getattr(self, "classes_", None), run)

    def _fit_source(self, source: Source, eval_set: Any, classes: Any, run: RunOptions) -> Self:
        if source.multilabel and getattr(self, "class_weight", None) is not None:
            raise ParameterError(
                f"{type(self).__name__}: class_weight needs rows of one class each, and these have "
                f"any number of labels"
            )
        return self._train(source, eval_set, classes, run)

    def _train(self, source: Rows, eval_set: Any, classes: Any, run: RunOptions) -> Self:
        """Learn in passes, and become what was learned."""
        before = self._fitted if self.warm_start and not self._is_new() else None
        requested = self._checked_params(going_on=before is not None)
        plan = self._plan(source, classes, self._seed_for(source, run), before)
        trainer = Trainer(
            plan,
            source,
            run,
            outputs=None if before is None else self._continued(before, plan),
            hooks=self._hooks() if before is None else copy(before.hooks),
            records=self._records(plan, before),
            room=self._room(plan, before),
            valid=self._valid_source(eval_set),
        )
        if run.resume and not trainer.resume():
            run.observer.tell(
                "note", message=f"no checkpoint {run.checkpoint}: starting from the beginning"
            )
        trainer.run()
        passes = trainer.number + (0 if before is None else before.passes)
        try:
            trainer.hooks.conclude(trainer, before is None, trainer.complete)
            self._keep(trainer, requested, passes, None, named=run.names)
        except Stopped:  # while rows were read once more
            trainer.interrupt()
        self._warn_of_zeros(trainer)
        return self

    def _plan(
        self, source: Rows, classes: Any, seed: int, before: FittedState | None, **given: Any
    ) -> TrainingPlan:
        params: dict[str, Any] = self.get_params(deep=False)
        params |= {} if before is None else before.params
        owner = type(self).__name__
        return TrainingPlan.resolve(
            self.rule, self.task, params, source, owner=owner, classes=classes, seed=seed, **given
        )

    def _seed_for(self, source: Rows, run: RunOptions) -> int:
        """Return the seed of the shuffling."""
        if isinstance(source, MatrixSource):
            return self._seed()
        given = self.random_state, type(self).__name__
        return stream_seed(*given) if run.seed is None else run.seed

    def _continued(self, before: FittedState, plan: TrainingPlan) -> Any:
        """Return copies of the outputs of a fit, which go on in further passes."""
        outputs = before.copied_outputs()
        classes: Any = plan.labels.classes
        known = before.classes is None or np.array_equal(before.classes, classes)
        if not known or (plan.in_memory and plan.width != before.width):
            raise ParameterError(
                f"{type(self).__name__}: warm_start=True needs the features and classes of the "
                f"fit before"
            )
        outputs.next_pass()
        return outputs

    def _records(self, plan: TrainingPlan, before: FittedState | None) -> Records:
        watch: DivergenceWatch | None = None
        if RULES[self.rule].diverges:
            examples = 0 if before is None else before.outputs_steps
            watch = DivergenceWatch(examples=examples)
        told = plan.average, plan.target, watch, self.callback
        if before is None:
            return Records(*told)
        return Records(*told, before.history or (), before.recorded)

    def _room(self, plan: TrainingPlan, before: FittedState | None) -> Room:
        room = Room(plan)
        if before is not None and before.width < 2**64:
            room.size = max(room.size, before.width) if room.size else 0
            room.width = max(room.width, before.width)
        return room

    def _keep(
        self,
        trainer: Trainer,
        requested: dict[str, Any],
        passes: int,
        before: FittedState | None,
        named: bool = True,
    ) -> None:
        """Become what a trainer has learned, after what was learned before."""
        plan, source, records = trainer.plan, trainer.source, trainer.records
        state = FittedState(
            rule=self.rule,
            params=plan.learner_params,
            requested=requested,
            rows=plan.rows if before is None else before.rows,
            width=trainer.room.width or 2**64,
            history=records.history,
            passes=passes,
            outputs=trainer.outputs,
            hooks=trainer.hooks,
            recorded=records.recorded,
            watch=records.watch or DivergenceWatch(),
            classes=plan.labels.classes,
            multilabel=self._how_multilabel(source),
            names=None if before is None else before.names,
            kinds=dict(trainer.kinds) or None,
            reading=source.described(),
        )
        if named:
            state.names = {**(state.names or {}), **self._names_of(trainer, state)} or None
        self.take(state)

    def _how_multilabel(self, source: Rows) -> str:
        return ""

    def _names_of(self, trainer: Trainer, state: FittedState) -> dict[int, str]:
        """Return the names of features with nonzero weights, where the source has names."""
        if not trainer.source.named:
            return {}
        keys = np.unique(np.concatenate([output.keys for output in state.learned()])).tolist()
        if trainer.names is not None:
            known = trainer.names.names()
            return {key: known[key] for key in keys if key in known}
        return trainer.source.names(keys, trainer.kinds)

    def _warn_of_zeros(self, trainer: Trainer) -> None:
        source, history = trainer.source, self.history_
        empty = isinstance(source, MatrixSource) and nonzeros(source.block.X) == 0
        if history and history[-1].nonzeros == 0 and not empty:
            trainer.options.observer.warn(self.without_weights())

    def without_weights(self) -> str:
        """Return what a warning says where no weight is left."""
        return (
            f"{type(self).__name__}: all weights are zero; lower the penalty, or scale the rows "
            f"(thresher.health.check looks at them)"
        )

    # ---- learning more -------------------------------------------------------------------------

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, **prepare: Any) -> Self:
        rows = MatrixSource(X, y, self._checked_weights(sample_weight, X))
        return self._learn_once(rows, getattr(self, "classes_", None), **prepare)

    def _learn_once(self, source: Rows, classes: Any, **prepare: Any) -> Self:
        """Learn rows once, after those learned before."""
        before = None if self._is_new() else self._fitted
        sparse = before is not None and self._sparse_coef
        requested = self._checked_params(going_on=before is not None)
        known = None if before is None else self._known_labels(source, before)
        plan = self._plan(source, classes, 0, before, known=known, once=True)
        room, outputs = self._room(plan, before), None
        if before is not None:
            outputs = before.outputs
            assert outputs is not None
            if plan.store != "dense" and room.size == 0:
                outputs.widen(0)  # those of a matrix took its columns alone
        trainer = Trainer(
            plan,
            source,
            RunOptions(),
            outputs=outputs,
            hooks=self._hooks(**prepare) if before is None else before.hooks,
            records=self._records(plan, before),
            room=room,
        )
        if before is not None:
            trainer.records.watch = before.watch if RULES[self.rule].diverges else None
            if before.kinds:
                trainer.kinds = {**source.kinds, **before.kinds}
        passes = max(1, 0 if before is None else before.passes)
        complete = False
        try:
            trainer.once()
            complete = True
        finally:  # what was learned before a bad row counts
            if complete or before is not None:
                trainer.hooks.conclude(trainer, first=False, complete=False)
                self._keep(trainer, requested, passes, before, named=complete)
                self._sparse_coef = self._sparse_coef or sparse
        return self

    def _known_labels(self, source: Rows, before: FittedState) -> Labels:
        """Return what is known of the labels from rows that were learned before."""
        return self._labels()

    # ---- answers -------------------------------------------------------------------------------

    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Return raw predictions, one column for each output."""
        if is_source(X):
            return self.model_.raw(X)
        known = None if self._is_new() else self._fitted.known
        if known is not None and X is known[0]:
            return known[1]
        X = self._checked_rows(X)
        state = self._fitted
        if state.target is not None or state.final or state.outputs is None:
            return self.model_.raw(X)  # learners may have more weights than the model, or be gone
        return state.outputs.predict(as_batch(X), state.average)


class StreamingRegressor(LinearRegressor, StreamingEstimator):
    """A regressor that learns row by row."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from these rows, once, in the order in which they lie.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        self
        """
        return self._learn_more(X, y, sample_weight)

    def _learn_more(self, X: Any, y: Any, sample_weight: Any, **prepare: Any) -> Self:
        first = self._is_new()
        with all_or_nothing(self) if first else nullcontext():
            if is_source(X):
                no_rows_besides(self, y, sample_weight)
                return self._learn_once(X, None, **prepare)
            X, y = self._checked(X, y, reset=first)
            return self._partial_fit(X, y, sample_weight, **prepare)
