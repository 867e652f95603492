"""What all streaming estimators share: checking input, passes, early stopping, answers, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from thresher import _core, rules
from thresher.data import as_batch
from thresher.errors import ParameterError
from thresher.estimators.training import Run
from thresher.model import Model, Progress

_BLOCK = 2000  # rows of a block of shuffle="blocks"


class StreamingEstimator(BaseEstimator, ABC):
    """Base of all estimators that learn one row at a time.

    A fitted estimator holds one core learner for each output: one for two classes or a regression,
    else one for each class against the rest. What a learner owes is paid in every answer it gives.
    """

    _rule: ClassVar[str]
    _task: ClassVar[rules.Task]

    # what fit and partial_fit leave behind
    history_: list[Progress]
    n_iter_: int
    _learners: list[_core.Learner]
    _width: int
    _made_of: tuple[dict[str, Any], int | None]  # parameters and rows the learners were made for
    _recorded: tuple[float, float]  # sums of losses and weights at the last record
    _sparse_coef: bool  # coef_ is asked for as CSR
    _model: Model | None  # answers made so far, forgotten when learning goes on
    _coef: Any

    # ---- what the two tasks define -------------------------------------------------------------

    @abstractmethod
    def _targets(self, y: NDArray[Any]) -> list[NDArray[np.float64]]:
        """Return the labels as each output's learner sees them."""

    @abstractmethod
    def _row_weights(
        self, y: NDArray[Any], sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of the rows, those of their classes included."""

    # ---- fitting -------------------------------------------------------------------------------

    def _fit(self, X: Any, y: NDArray[Any], sample_weight: Any, eval_set: Any) -> Self:
        params = self._checked_params(going_on=self.warm_start and not self._is_new())
        weights = self._row_weights(y, self._checked_weights(sample_weight, X))
        targets = self._targets(y)
        evaluation = self._checked_eval_set(eval_set)
        if self.warm_start and not self._is_new():
            learners, history, passes = self._copied_learners(), self.history_, self.n_iter_
            if len(learners) != len(targets) or self._width != X.shape[1]:
                raise ParameterError(
                    f"{type(self).__name__}: warm_start=True needs the features and classes of the "
                    f"fit before"
                )
            for learner in learners:
                learner.next_pass()
        else:
            self._made_of, self._recorded = (params, X.shape[0]), (0.0, 0.0)
            learners, history, passes = self._new_learners(len(targets), X.shape[1]), [], 0
            self._prepare(learners, X)
        run = Run(self, learners, X, targets, weights, history, self._recorded)
        rng = self._generator()
        best, best_pass, best_states, stale = np.inf, 0, None, 0
        for number, order in enumerate(self._orders(X.shape[0], rng)):
            if number:
                for learner in learners:
                    learner.next_pass()
            loss = run.one_pass(order, evaluation)
            passes += 1
            if run.stopped:
                break
            if self.tol is not None:
                stale = 0 if loss < best - self.tol else stale + 1
                if loss < best:
                    best, best_pass = loss, passes
                    if evaluation is not None:
                        best_states = [learner.state() for learner in learners]
                if stale >= self.patience:
                    break
        if best_states is not None and best_pass != passes:
            for learner, state in zip(learners, best_states, strict=True):
                learner.restore(state)
        self._learners, self.history_, self.n_iter_ = learners, run.history, passes
        self._recorded = run.recorded
        self._width, self._sparse_coef = X.shape[1], self.store == "hashed"
        self._forget_answers()
        return self

    def _partial_fit(self, X: Any, y: NDArray[Any], sample_weight: Any, **prepare: Any) -> Self:
        params = self._checked_params(going_on=not self._is_new())
        weights = self._row_weights(y, self._checked_weights(sample_weight, X))
        targets = self._targets(y)
        if self._is_new():
            self._made_of, self._recorded = (params, None), (0.0, 0.0)
            learners = self._new_learners(len(targets), X.shape[1])
            self._prepare(learners, X, **prepare)
            self._learners, self.history_, self.n_iter_ = learners, [], 0
            self._width, self._sparse_coef = X.shape[1], self.store == "hashed"
        self._forget_answers()
        run = Run(self, self._learners, X, targets, weights, self.history_, self._recorded)
        try:
            run.one_pass(None, None, record_end=False)
        finally:
            self.history_, self._recorded = run.history, run.recorded
        self.n_iter_ = max(self.n_iter_, 1)
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the estimator as it was if what is done inside fails."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _prepare(self, learners: Sequence[_core.Learner], X: Any) -> None:
        """Give learners what they need before the first row."""

    def _is_new(self) -> bool:
        return not hasattr(self, "_learners")

    def _checked_params(self, going_on: bool = False) -> dict[str, Any]:
        """Check all parameters; when learning goes on, also that the learners' are the same."""
        params: dict[str, Any] = self.get_params(deep=False)
        rules.check(self._rule, self._task, params, type(self).__name__)
        made_of = rules.learner_parameters(self._rule, params)
        if going_on:
            for name, before in self._made_of[0].items():
                if made_of[name] != before:
                    raise ParameterError(
                        f"{type(self).__name__}: {name} was {before!r} when learning began and "
                        f"cannot become {made_of[name]!r}; fit anew without warm_start"
                    )
        return made_of

    def _learned(self, name: str) -> Any:
        """Return a parameter as the learners have it; before fitting, as it is set."""
        return getattr(self, name) if self._is_new() else self._made_of[0].get(name)

    def _checked_weights(self, sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
        if sample_weight is None:
            return None
        return np.ascontiguousarray(
            _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        )

    def _checked_eval_set(self, eval_set: Any) -> tuple[Any, list[NDArray[np.float64]]] | None:
        if eval_set is None:
            return None
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        if not (isinstance(eval_set, tuple) and len(eval_set) == 2):
            raise ParameterError(f"{type(self).__name__}: eval_set must be a pair (X, y)")
        X, y = self._validated(eval_set[0], eval_set[1], reset=False)
        return as_batch(X), self._targets(y)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            y_numeric=self._task == "regressor",
        )
        return X, y

    def _new_learners(self, count: int, width: int) -> list[_core.Learner]:
        params, rows = self._made_of
        numbers, words = rules.core_parameters(self._rule, params, rows)
        core = rules.RULES[self._rule].core
        try:
            return [
                _core.make_learner(core, params["store"], params["dtype"], width, numbers, words)
                for _ in range(count)
            ]
        except MemoryError:
            raise MemoryError(
                f"{type(self).__name__}: no memory for {count} x {width} weights in a dense store; "
                f"store='hashed' needs memory for the features seen alone"
            ) from None

    def _generator(self) -> np.random.Generator:
        try:
            return np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        except ValueError as error:
            raise ParameterError(f"{type(self).__name__}: random_state: {error}") from error

    def _orders(self, rows: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64] | None]:
        """Yield the order of rows in each pass; None is the order in which they lie."""
        once = rng.permutation(rows) if self.shuffle == "once" else None
        for _ in range(self.passes):
            if self.shuffle == "each":
                yield rng.permutation(rows)
            elif self.shuffle == "replace":
                yield rng.integers(0, rows, rows)
            elif self.shuffle == "blocks":
                starts = rng.permutation(np.arange(0, rows, _BLOCK))
                yield np.concatenate([s + rng.permutation(min(_BLOCK, rows - s)) for s in starts])
            else:
                yield once

    # ---- answers -------------------------------------------------------------------------------

    @property
    def _average(self) -> bool:
        return bool(self._made_of[0].get("average", False))

    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Return raw predictions, one column for each output."""
        check_is_fitted(self, "_learners")
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
        batch = as_batch(X)
        return np.column_stack(
            [learner.predict(batch, self._average) for learner in self._learners]
        )

    @property
    def model_(self) -> Model:
        """The model as it stands now: sparse weights, and how they came about."""
        check_is_fitted(self, "_learners")
        if self._model is None:
            found = [learner.weights(self._average) for learner in self._learners]
            names = getattr(self, "feature_names_in_", None)
            indices = np.concatenate([keys for keys, _ in found])
            self._model = Model(
                indptr=np.cumsum([0] + [len(keys) for keys, _ in found], dtype=np.int64),
                indices=indices,
                weights=np.concatenate([weights for _, weights in found]),
                intercept=np.array([m.intercept(self._average) for m in self._learners]),
                n_features=self._width,
                classes=getattr(self, "classes_", None),
                loss=self._learned("loss"),
                parameters={"rule": self._rule, **self.get_params(deep=False), **self._made_of[0]},
                history=tuple(self.history_),
                names=None
                if names is None
                else {int(i): str(names[int(i)]) for i in np.unique(indices)},
            )
        return self._model

    @property
    def coef_(self) -> Any:
        """Weights of shape (outputs, features): an array; CSR after sparsify() or when hashed."""
        model = self.model_
        if self._coef is None:
            shape = (len(model.intercept), model.n_features)
            if self._sparse_coef:
                parts = (model.weights.copy(), model.indices.astype(np.int64), model.indptr)
                self._coef = sp.csr_matrix(parts, shape=shape)
            else:
                self._coef = np.zeros(shape)
                rows = np.repeat(np.arange(shape[0]), np.diff(model.indptr))
                self._coef[rows, model.indices.astype(np.intp)] = model.weights
                self._coef.setflags(write=False)
        return self._coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Intercepts of shape (outputs,)."""
        return self.model_.intercept

    def sparsify(self) -> Self:
        """Make coef_ a CSR matrix from now on. Learning goes on as before."""
        check_is_fitted(self, "_learners")
        self._sparse_coef, self._coef = True, None
        return self

    def densify(self) -> Self:
        """Make coef_ an array from now on. Learning goes on as before."""
        check_is_fitted(self, "_learners")
        self._sparse_coef, self._coef = False, None
        return self

    def _forget_answers(self) -> None:
        self._model, self._coef = None, None

    def _restored_learners(self, saved: Sequence[bytes]) -> list[_core.Learner]:
        learners = self._new_learners(len(saved), self._width)
        for learner, content in zip(learners, saved, strict=True):
            learner.restore(content)
        return learners

    def _copied_learners(self) -> list[_core.Learner]:
        return self._restored_learners([learner.state() for learner in self._learners])

    # ---- pickling ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_learners" in state:
            state["_model"], state["_coef"] = None, None  # made again when asked for
            state["_learners"] = [learner.state() for learner in self._learners]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.get("_learners")
        super().__setstate__(state)
        if saved is not None:
            self._learners = self._restored_learners(saved)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
