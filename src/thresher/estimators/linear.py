"""What all estimators share: checking input, the model, and answers from it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from thresher import rules
from thresher.data import is_source
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.frontier import Place
from thresher.losses import Task
from thresher.model import Model, Output, Progress
from thresher.rules import core_args, validate
from thresher.training.targets import Targets


class Elsewhere(NamedTuple):
    """What was learned on a cluster: outputs, and what else the model says of itself."""

    outputs: list[Output]
    extras: dict[str, Any]


class LinearEstimator(BaseEstimator, ABC):
    """Base of all estimators: one output for two classes or a regression, else one a class."""

    _rule: ClassVar[str]
    _task: ClassVar[Task]
    _layout: ClassVar[str] = "csr"  # of sparse rows to learn from

    # what fitting leaves behind
    history_: list[Progress]
    n_iter_: int
    _width: int
    _made_of: tuple[dict[str, Any], int | None]  # parameters and rows the outputs were made for
    _sparse_coef: bool  # coef_ is asked for as CSR
    _model: Model | None  # answers made so far, forgotten when learning goes on
    _coef: Any
    _names: dict[int, str] | None = None  # of features of a source
    _kinds: dict[str, str] | None = None  # of columns of a source
    _place: Place | None = None  # in the search that chose it
    _elsewhere: Elsewhere | None = None  # what was learned by others, and cannot go on here

    # ---- what the two tasks define -------------------------------------------------------------

    @abstractmethod
    def _targets(self, y: NDArray[Any]) -> Targets:
        """Return the labels as each output's learner sees them."""

    @abstractmethod
    def _row_weights(
        self, y: NDArray[Any], sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of the rows, those of their classes included."""

    # ---- what the ways of learning define ------------------------------------------------------

    @abstractmethod
    def _fit(self, X: Any, y: NDArray[Any], sample_weight: Any, eval_set: Any) -> Self:
        """Learn from checked rows."""

    def _fit_source(self, source: Source, eval_set: Any) -> None:
        """Learn from a source: here, by reading all its rows into memory."""
        if eval_set is not None or source.reading.multilabel or source.named:
            raise ParameterError(
                f"{type(self).__name__}: needs all rows at once; a source without names, lists of "
                f"labels and eval_set can be read into memory (or give names numbers: bits=)"
            )
        rows = source.gather()
        self.fit(rows.matrix(), rows.labels, rows.weights)

    @abstractmethod
    def _outputs(self) -> list[Output]:
        """Return what has been learned."""

    def _extras(self) -> dict[str, Any]:
        """Return what else the model says of itself."""
        return {}

    # ---- checking ------------------------------------------------------------------------------

    def _is_multilabel(self) -> bool:
        """Tell whether rows have any number of labels; of rules that learn row by row alone."""
        return False

    def _is_new(self) -> bool:
        return not hasattr(self, "_made_of")

    def _checked_params(self, going_on: bool = False) -> dict[str, Any]:
        """Check all parameters; when learning goes on, also that the learners' are the same."""
        params: dict[str, Any] = self.get_params(deep=False)
        validate.check(self._rule, self._task, params, type(self).__name__)
        made_of = core_args.learner_parameters(self._rule, params)
        if going_on:
            if self._elsewhere is not None:
                raise ParameterError(
                    f"{type(self).__name__}: was learned on a cluster, and cannot go on from "
                    f"there; fit anew without warm_start"
                )
            for name, before in self._made_of[0].items():
                if made_of[name] != before:
                    raise ParameterError(
                        f"{type(self).__name__}: {name} was {before!r} when learning began and "
                        f"cannot become {made_of[name]!r}; fit anew without warm_start"
                    )
        return made_of

    def _learned(self, name: str) -> Any:
        """Return a parameter as the learners have it; before fitting, as it is set."""
        return getattr(self, name, None) if self._is_new() else self._made_of[0].get(name)

    def _checked_weights(self, sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
        if sample_weight is None:
            return None
        return np.ascontiguousarray(
            _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        )

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse=self._layout,
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
            y_numeric=self._task == "regressor",
        )
        return X, y

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """Return rows and labels, checked."""
        return self._validated(X, y, reset)

    def _checked_eval_set(self, eval_set: Any) -> tuple[Any, Targets] | None:
        """Return the rows to compute the loss on after each pass, and the labels of each output."""
        if eval_set is None:
            return None
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        if not (isinstance(eval_set, tuple) and len(eval_set) == 2):
            raise ParameterError(f"{type(self).__name__}: eval_set must be a pair (X, y)")
        X, y = self._checked(eval_set[0], eval_set[1], reset=False)
        return X, self._targets(y)

    def _generator(self) -> np.random.Generator:
        try:
            return np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        except ValueError as error:
            raise ParameterError(f"{type(self).__name__}: random_state: {error}") from error

    # ---- answers -------------------------------------------------------------------------------

    def _checked_rows(self, X: Any) -> Any:
        """Check rows to predict on."""
        check_is_fitted(self, "_made_of")
        return validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )

    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Return raw predictions, one column for each output."""
        return self.model_.raw(X if is_source(X) else self._checked_rows(X))

    @property
    def model_(self) -> Model:
        """The model as it stands now: sparse weights, and how they came about."""
        check_is_fitted(self, "_made_of")
        if self._model is None:
            learned = self._elsewhere or Elsewhere(self._outputs(), self._extras())
            self._model = self._model_of(learned.outputs, **learned.extras)
        return self._model

    def _model_of(self, outputs: list[Output], **extras: Any) -> Model:
        evidence = extras.get("evidence")  # why() may be asked of all features it has
        named = evidence.features if evidence else np.concatenate([o.keys for o in outputs])
        parameters = {"rule": self._rule, **self.get_params(deep=False), **self._made_of[0]}
        if self._is_multilabel():
            parameters["multilabel"] = True
        if self._kinds:
            parameters["kinds"] = json.dumps(self._kinds)
        return Model.of(
            outputs,
            n_features=self._width,
            classes=getattr(self, "classes_", None),
            loss=self._learned_loss(),
            parameters=parameters,
            history=tuple(self.history_),
            names=self._named(np.unique(named).tolist()),
            frontier=self._place,
            **extras,
        )

    def _named(self, features: list[int]) -> dict[int, str] | None:
        """Return the names of features, where they have any."""
        columns = getattr(self, "feature_names_in_", None)
        if columns is not None:
            return {feature: str(columns[feature]) for feature in features}
        if self._names is None:
            return None
        return {feature: self._names[feature] for feature in features if feature in self._names}

    def _loss(self) -> str:
        """Return the loss as it is set; a rule with a single one has no such parameter."""
        return str(getattr(self, "loss", rules.RULES[self._rule].losses[0]))

    def _learned_loss(self) -> str:
        """Return the loss as the outputs have it; before fitting, as it is set."""
        return str(self._learned("loss") or self._loss())

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
        check_is_fitted(self, "_made_of")
        self._sparse_coef, self._coef = True, None
        return self

    def densify(self) -> Self:
        """Make coef_ an array from now on. Learning goes on as before."""
        check_is_fitted(self, "_made_of")
        self._sparse_coef, self._coef = False, None
        return self

    def _forget_answers(self) -> None:
        self._model, self._coef, self._place, self._elsewhere = None, None, None, None

    # ---- pickling ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_made_of" in state:
            state["_model"], state["_coef"] = None, None  # made again when asked for
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
