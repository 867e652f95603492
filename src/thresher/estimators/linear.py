"""What all estimators share: checking input, the model, and answers from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cache
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from thresher.atomic import all_or_nothing
from thresher.data import is_source
from thresher.data.labels import Labels
from thresher.data.matrix_source import LabelArray, MatrixSource
from thresher.data.source import Source
from thresher.data.targets import Targets
from thresher.errors import ParameterError, setting
from thresher.estimators.coefficients import Coefficients
from thresher.estimators.pickles import Elsewhere as Elsewhere  # where 0.1.0 pickled it
from thresher.estimators.pickles import upgraded
from thresher.losses import Task
from thresher.model.model import Model, Output, Progress
from thresher.rules import RULES, core_args
from thresher.training.fitted import FittedState
from thresher.training.fitting import Specification
from thresher.training.observer import Observer
from thresher.training.run_options import RunOptions


def no_rows_besides(estimator: Any, y: Any, sample_weight: Any) -> None:
    """Raise ParameterError where labels or weights are given beside a source, which has its own."""
    if y is not None or sample_weight is not None:
        raise ParameterError(
            "a source has its own labels and weights; give it alone",
            owner=type(estimator).__name__,
        )


class LinearEstimator(Coefficients, BaseEstimator, ABC):
    """Base of all estimators: one output for two classes or a regression, else one a class.

    Attributes
    ----------
    rule : str
        A key of ``thresher.rules.RULES``.
    task : {"classifier", "regressor"}
    """

    rule: ClassVar[str]
    task: ClassVar[Task]
    _layout: ClassVar[str] = "csr"  # of sparse rows to learn from

    # what fitting leaves behind
    history_: list[Progress]
    n_iter_: int
    _fitted: FittedState
    _answers: dict[str, Any]  # model and weights made so far, forgotten when learning goes on

    @classmethod
    @cache
    def _parameter_names(cls) -> tuple[str, ...]:
        """Return the names of all parameters: inspecting a signature takes long."""
        return tuple(cls._get_param_names())

    def _set(self, given: dict[str, Any]) -> None:
        """Set the parameters of a constructor, given as its ``locals()``."""
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        *,
        classes: Any = None,
        observer: Observer | None = None,
        checkpoint: str | PathLike[str] | None = None,
        every: float = 60.0,
        resume: bool = False,
        names: bool = True,
        seed: int | None = None,
    ) -> Self:
        """Learn from all rows, in `passes` passes.

        If it fails or is interrupted, all is as it was before.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels, of at least two classes; values of a regression.
        sample_weight : array of shape (rows,), optional
            A row of weight s makes a step s times as long; for rules that see all rows at once it
            counts s times.
        eval_set : pair (X, y) or source, optional
            Rows to compute ``valid_loss`` on after each pass; rules that learn row by row can stop
            early by it.
        classes : array, "binary" or "arriving", optional
            Labels of a source, which is else read once more for them. "binary": they are -1 and 1,
            or 0 and 1. "arriving": each becomes known when it comes, in a source that can be read
            only once.
        observer : thresher.Observer, optional
            Is told of progress, and may stop the run.
        checkpoint : path, optional
            File to write the state of the run to, now and then and when the observer stops it.
        every : float
            Seconds between two checkpoints.
        resume : bool
            Continue from the checkpoint, to the same model bit for bit; without one, start from the
            beginning.
        names : bool
            Whether names of features are looked up, where a source has names.
        seed : int, optional
            Seed of the shuffling of a source; by default `random_state` decides it.

        Returns
        -------
        self
        """
        options = RunOptions.of(observer, checkpoint, every, resume, names, seed)
        with all_or_nothing(self):
            self.__dict__.pop("_sparse_coef", None)
            if classes is not None and (not is_source(X) or self.task == "regressor"):
                why = "a regression has none" if self.task == "regressor" else "y has them"
                raise ParameterError(
                    f"classes= is for classifiers on sources; {why}",
                    owner=type(self).__name__,
                    parameter="classes",
                    value=classes,
                )
            if seed is not None and not (is_source(X) and RULES[self.rule].streams):
                raise ParameterError(
                    ("seed= is for sources of rules that learn row by row; ",
                     setting("random_state"), " decides here"),
                    owner=type(self).__name__,
                    parameter="seed",
                    value=seed,
                )  # fmt: skip
            if is_source(X):
                no_rows_besides(self, y, sample_weight)
                return self._fit_source(X, eval_set, classes, options)
            before = getattr(self, "classes_", None)
            X, y = self._checked(X, y, reset=True)
            self._know_classes(y, before)
            return self._fit(X, y, sample_weight, eval_set, options)

    def _know_classes(self, y: Any, before: NDArray[Any] | None) -> None:
        """Take the classes of the rows; of a classifier."""

    # ---- what the two tasks define -------------------------------------------------------------

    @abstractmethod
    def _labels(self) -> Labels:
        """Return what the outputs are told of the labels that are known."""

    # ---- what the ways of learning define ------------------------------------------------------

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, run: RunOptions) -> Self:
        """Learn from checked rows."""

    @abstractmethod
    def _fit_source(self, source: Source, eval_set: Any, classes: Any, run: RunOptions) -> Self:
        """Learn from a source."""

    # ---- checking ------------------------------------------------------------------------------

    def _is_multilabel(self) -> bool:
        """Tell whether rows have any number of labels; of rules that learn row by row alone."""
        return False

    def _is_new(self) -> bool:
        return not hasattr(self, "_fitted")

    def _specification(self) -> Specification:
        params = {name: getattr(self, name) for name in self._parameter_names()}
        return Specification(self.rule, self.task, params, type(self).__name__)

    def _checked_params(self, going_on: bool = False) -> dict[str, Any]:
        """Check all parameters; when learning goes on, also that the learners' are the same."""
        return self._specification().checked(self._fitted if going_on else None)

    def _learned(self, name: str) -> Any:
        """Return a parameter as the learners have it; before fitting, as it is set."""
        return getattr(self, name, None) if self._is_new() else self._fitted.params.get(name)

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
            y_numeric=self.task == "regressor",
        )
        return X, y

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """Return rows and labels, checked."""
        return self._validated(X, y, reset)

    def source_of(self, X: Any, y: Any, sample_weight: Any = None) -> MatrixSource:
        """Check rows in memory as `fit` does, and return them as a source; nothing is learned.

        Sets ``n_features_in_``, the names of columns and the classes, as `fit` does.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        MatrixSource
        """
        X, y = self._checked(X, y, reset=True)
        self._know_classes(y, None)
        return MatrixSource(X, y, self._checked_weights(sample_weight, X))

    def _valid_source(self, eval_set: Any, beside: bool = False) -> Source | MatrixSource | None:
        """Return the rows to compute the loss on after each pass, as a source.

        `beside`: those to learn from are a source, so nothing is known of these yet.
        """
        if eval_set is None or is_source(eval_set):
            source: Source | MatrixSource | None = eval_set
            return source
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        if not (isinstance(eval_set, tuple) and len(eval_set) == 2):
            raise ParameterError(
                (setting("eval_set"), " must be a pair (X, y), or a source"),
                owner=type(self).__name__,
                parameter="eval_set",
                value=eval_set,
                allowed="a pair (X, y), or a source",
            )
        if beside:
            checked: MatrixSource = clone(self).source_of(*eval_set)
            return checked
        return MatrixSource(*self._checked(eval_set[0], eval_set[1], reset=False))

    def _checked_eval_set(self, eval_set: Any) -> tuple[Any, Targets] | None:
        """Return rows in memory to compute a loss on, and the labels of each output."""
        if eval_set is None:
            return None
        source = self._valid_source(eval_set)
        if not isinstance(source, MatrixSource):
            raise ParameterError(
                (setting("eval_set"), " must be a pair (X, y)"),
                owner=type(self).__name__,
                parameter="eval_set",
                value=eval_set,
                allowed="a pair (X, y)",
            )
        return source.block.X, self._labels().targets(source.block)

    # ---- targets and weights of rows in memory -------------------------------------------------

    def _targets(self, y: Any) -> Targets:
        """Return the labels as each output's learner sees them."""
        return self._labels().targets(LabelArray(y))

    def _row_weights(
        self, y: Any, sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of the rows, those of their classes included."""
        return sample_weight

    # ---- answers -------------------------------------------------------------------------------

    def take(self, state: FittedState) -> Self:
        """Set all fitted attributes from a state. All code that fits an estimator calls this.

        Parameters
        ----------
        state : FittedState
            What a trainer, a search or a cluster has learned.
        """
        self._fitted, self.n_iter_ = state, state.passes
        self.__dict__.pop("history_", None)
        if state.history is not None:
            self.history_ = state.history
        if state.classes is not None:
            self.classes_ = state.classes
        if state.reading:  # of a source, which has no columns
            self.n_features_in_ = state.width
            self.__dict__.pop("feature_names_in_", None)
        if not hasattr(self, "_sparse_coef"):  # else sparsify or densify has decided
            self._sparse_coef = state.params.get("store", "dense") != "dense"
        self._forget_answers()
        return self

    def amend(self, **parts: Any) -> Self:
        """Replace parts of the fitted state; the others stay.

        Parameters
        ----------
        **parts
            Attributes of `FittedState`, such as ``names`` or ``place``.
        """
        check_is_fitted(self, "_fitted")
        return self.take(replace(self._fitted, **parts))

    def _checked_rows(self, X: Any) -> Any:
        """Check rows to predict on."""
        check_is_fitted(self, "_fitted")
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
        check_is_fitted(self, "_fitted")
        if "model" not in self._answers:
            self._answers["model"] = self._model_of(None)
        model: Model = self._answers["model"]
        return model

    def _model_of(self, outputs: list[Output] | None) -> Model:
        """Return the model of these outputs; None: of those learned last."""
        columns = getattr(self, "feature_names_in_", None)
        names = None if columns is None else {k: str(name) for k, name in enumerate(columns)}
        return self._fitted.model(self.get_params(deep=False), outputs, names)

    def _loss(self) -> str:
        """Return the loss as it is set; a rule with a single one has no such parameter."""
        return core_args.loss_of(self.rule, self.get_params(deep=False))

    def _learned_loss(self) -> str:
        """Return the loss as the outputs have it; before fitting, as it is set."""
        return str(self._learned("loss") or self._loss())

    def _forget_answers(self) -> None:
        self._answers = {}

    # ---- pickling ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_fitted" in state:
            state["_answers"] = {}  # made again when asked for
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(upgraded(type(self), state))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
