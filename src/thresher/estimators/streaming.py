"""What estimators that learn row by row share: passes, early stopping, state, partial_fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from thresher import _core
from thresher.atomic import all_or_nothing
from thresher.data import as_batch, is_source, nonzeros
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.estimators.linear import LinearEstimator
from thresher.estimators.sources import fit_source, learn_source
from thresher.estimators.tasks import LinearRegressor, no_rows_besides
from thresher.estimators.training import Run
from thresher.health.watch import DivergenceWatch
from thresher.model import Output
from thresher.training.alone import Alone
from thresher.data.orders import orders
from thresher.training.outputs import Outputs
from thresher.training.passes import Run as SourceRun
from thresher.training.recipe import Recipe
from thresher.training.together import OnlyNonzero


class StreamingEstimator(LinearEstimator):
    """Base of all estimators that learn one row at a time.

    What the outputs owe is paid in every answer they give.
    """

    _diverges: ClassVar[bool] = True  # a rising loss is a bad sign
    _learners: Outputs
    _recorded: tuple[float, float]  # sums of losses and weights at the last record
    _watch: DivergenceWatch  # of the last fit, and of the calls of partial_fit since

    # ---- fitting -------------------------------------------------------------------------------

    def _fit(self, X: Any, y: NDArray[Any], sample_weight: Any, eval_set: Any) -> Self:
        going_on = self.warm_start and not self._is_new()
        params = self._checked_params(going_on)
        weights = self._row_weights(y, self._checked_weights(sample_weight, X))
        targets = self._targets(y)
        held_out = self._checked_eval_set(eval_set)
        evaluation = None if held_out is None else (as_batch(held_out[0]), held_out[1])
        if going_on:
            learners, history, passes = self._copied_learners(), self.history_, self.n_iter_
            if len(learners) != len(targets) or self._width != X.shape[1]:
                raise ParameterError(
                    f"{type(self).__name__}: warm_start=True needs the features and classes of the "
                    f"fit before"
                )
            learners.next_pass()
        else:
            self._made_of, self._recorded = (params, X.shape[0]), (0.0, 0.0)
            learners, history, passes = self._new_learners(len(targets), X.shape[1]), [], 0
            self._begin(learners, X)
            if isinstance(learners, OnlyNonzero):
                learners.plant(targets.counts(), targets.rows)
        self._width, self.history_ = X.shape[1], history
        self._watch = DivergenceWatch(examples=learners.steps)
        run = Run(self, learners, X, targets, weights, history, self._recorded, self._watch)
        rng = self._generator()
        best, best_pass, best_states, stale = np.inf, 0, None, 0
        best_visits, complete = run.visits, True
        for number, order in enumerate(self._orders(X.shape[0], rng)):
            if number:
                learners.next_pass()
            loss = run.one_pass(order, evaluation)
            passes += 1
            if run.stopped or self._converged(learners):
                complete = not run.stopped or len(learners.full) == len(learners)
                break
            if self.tol is not None:
                stale = 0 if loss < best - self.tol else stale + 1
                if loss < best:
                    best, best_pass = loss, passes
                    if evaluation is not None:
                        best_states = learners.states()
                        best_visits = None if run.visits is None else run.visits.copy()
                if stale >= self.patience:
                    complete = False
                    break
        if best_states is not None and best_pass != passes:
            run.visits, complete = best_visits, False
            learners.restore(best_states)
        self._learners, self.history_, self.n_iter_ = learners, run.history, passes
        if self._rule == "ftrl" and isinstance(learners, Alone) and self._target() is not None:
            for learner in learners:  # its l1 acts whenever a weight is read
                learner.steer()
        self._recorded = run.recorded
        self._width, self._sparse_coef = X.shape[1], params.get("store", "dense") != "dense"
        self._forget_answers()
        self._conclude(run, first=not going_on, complete=complete)
        if run.history and run.history[-1].nonzeros == 0 and nonzeros(X) > 0:
            warnings.warn(self._without_weights(), stacklevel=3)
        return self

    def _without_weights(self) -> str:
        """Return what a warning says where nothing is left."""
        return (
            f"{type(self).__name__}: all weights are zero; lower the penalty, or scale the rows "
            f"(thresher.health.check looks at them)"
        )

    def _partial_fit(self, X: Any, y: NDArray[Any], sample_weight: Any, **prepare: Any) -> Self:
        params = self._checked_params(going_on=not self._is_new())
        weights = self._row_weights(y, self._checked_weights(sample_weight, X))
        arrivals = self._arrivals(y)
        targets = self._targets(y)
        if self._is_new():
            self._made_of, self._recorded = (params, None), (0.0, 0.0)
            learners = self._new_learners(len(targets), X.shape[1])
            self._begin(learners, X, **prepare)
            self._learners, self.history_, self.n_iter_ = learners, [], 0
            self._width, self._sparse_coef = X.shape[1], params.get("store", "dense") != "dense"
            self._watch = DivergenceWatch()
        self._forget_answers()
        so_far = self.history_, self._recorded, self._watch
        run = Run(self, self._learners, X, targets, weights, *so_far)
        try:
            run.one_pass(None, None, record_end=False, arrivals=arrivals)
        finally:
            self._settle()
            self.history_, self._recorded = run.history, run.recorded
            self._conclude(run, first=False, complete=False)
        self.n_iter_ = max(self.n_iter_, 1)
        return self

    def _arrivals(self, y: NDArray[Any]) -> list[int]:
        """Take new classes of rows that go on; return when each comes."""
        return []

    def _settle(self) -> None:
        """Forget new classes whose first row was not reached."""

    def _begin(self, learners: Outputs, X: Any, **prepare: Any) -> None:
        if isinstance(learners, Alone):
            self._prepare(learners, X, **prepare)

    def _prepare(self, learners: Alone, X: Any) -> None:
        """Give learners that stand alone what they need before the first row."""

    def _conclude(self, run: Run, first: bool, complete: bool) -> None:
        """Take from the rows of a fit, or of a call of partial_fit, what certificates need.

        `first`: all rows ever learned from are those of this run. `complete`: the rule itself ended
        the fit, or the number of passes did; neither `tol` nor a callback.
        """

    def _conclude_source(self, run: SourceRun) -> None:
        """Do the same after rows of a source, which are not at hand any more."""

    def _paused(self, output: int, learner: _core.Learner) -> bool:
        """Decide, when the rule of an output has paused, whether that output stops learning."""
        return True

    def _is_full(self, learner: _core.Learner) -> bool:
        """Tell whether an output has stopped learning for good."""
        return False

    def _converged(self, learners: Outputs) -> bool:
        """Tell, after a pass, whether more passes would change nothing."""
        return False

    def _recipe(self, width: int) -> Recipe:
        room = 0 if width == 2**64 else width  # 0: any feature number
        return Recipe(self._rule, *self._made_of, room, width)

    def _new_learners(self, count: int, width: int) -> Outputs:
        params = self._made_of[0]
        try:
            return self._recipe(width).make(count)
        except MemoryError:
            raise MemoryError(
                f"{type(self).__name__}: no memory for {count} x {width} weights in a dense store"
                + "; store='hashed' needs memory for the features seen alone" * ("store" in params)
            ) from None

    def _orders(self, rows: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64] | None]:
        """Return the order of rows in each pass; None is the order in which they lie."""
        return islice(orders(self.shuffle, rows, rng), self.passes)

    # ---- sources -------------------------------------------------------------------------------

    def _fit_source(self, source: Source, eval_set: Any) -> None:
        if self.warm_start and not self._is_new():
            raise ParameterError(
                f"{type(self).__name__}: warm_start=True needs rows in memory; partial_fit goes on "
                f"with a source"
            )
        fit_source(self, source, eval_set)

    # ---- answers -------------------------------------------------------------------------------

    @property
    def _average(self) -> bool:
        return bool(self._made_of[0].get("average", False))

    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Return raw predictions, one column for each output."""
        if is_source(X):
            return self.model_.raw(X)
        X = self._checked_rows(X)
        if self._target() is not None or self._elsewhere is not None:
            return self.model_.raw(X)  # learners may have more weights than the model, or be gone
        batch = as_batch(X)
        return self._learners.predict(batch, self._average)

    def _outputs(self) -> list[Output]:
        return self._learners.outputs(self._average, self._target())

    def _target(self) -> int | None:
        target: int | None = self._made_of[0].get("target_nnz")
        return target

    def _copied_learners(self) -> Outputs:
        learners = self._learners
        return self._recipe(self._width).restore(learners.states(), len(learners))

    # ---- pickling ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_learners" in state:
            state["_learners"] = len(self._learners), self._learners.states()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.get("_learners")
        super().__setstate__(state)
        if saved is not None:
            self._learners = self._recipe(self._width).restore(saved[1], saved[0])


class StreamingRegressor(LinearRegressor, StreamingEstimator):
    """A regressor that learns row by row."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from these rows, once, in the order in which they lie.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
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
                learn_source(self, X, None)
                return self
            X, y = self._validated(X, y, reset=first)
            return self._partial_fit(X, column_or_1d(y, warn=True), sample_weight, **prepare)
