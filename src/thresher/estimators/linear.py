"""Base class of all estimators: input checks, the model and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from thresher.atomic import all_or_nothing
from thresher.data import is_source, is_sparse
from thresher.data.dict_rows import is_dict_rows
from thresher.data.labels import Labels
from thresher.data.matrix_source import LabelArray, MatrixSource
from thresher.data.source import Source
from thresher.data.targets import Targets
from thresher.data.unseen_labels import evaluation_rows
from thresher.errors import ParameterError, setting
from thresher.estimators.coefficients import Coefficients
from thresher.estimators.fit_arguments import check_fit_arguments, check_source_alone
from thresher.estimators.frames import FrameInput, FrameRows
from thresher.estimators.one_row import OneRowPrediction
from thresher.estimators.pickles import Elsewhere as Elsewhere  # where 0.1.0 pickled it
from thresher.estimators.pickles import upgraded
from thresher.losses import Task
from thresher.model.model import Model, Output, Progress
from thresher.progress.verbose import shown
from thresher.rules import core_args
from thresher.training.fitted import FittedState
from thresher.training.fitting import Specification
from thresher.training.observer import Observer
from thresher.training.refit import Refit
from thresher.training.run_options import RunOptions


class LinearEstimator(FrameInput, OneRowPrediction, Coefficients, BaseEstimator, ABC):
    """Base of all estimators: one output for two classes or a regression, else one per class.

    Attributes
    ----------
    rule : str
        A key of ``thresher.rules.RULES``.
    task : {"classifier", "regressor"}
    """

    rule: ClassVar[str]
    task: ClassVar[Task]
    _layout: ClassVar[str] = "csr"  # format of sparse rows for training
    _core_checks_rows: ClassVar[bool] = False  # whether training gives CSR rows to the core only

    # set by fitting
    history_: list[Progress]
    n_iter_: int
    refit_: Refit
    _fitted: FittedState
    _cached: dict[str, Any]  # model and coef_, if computed; cleared by further training

    @classmethod
    @cache
    def _parameter_names(cls) -> tuple[str, ...]:
        """Return the names of all parameters; cached, because inspecting a signature is slow."""
        return tuple(super()._get_param_names())

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(cls._parameter_names())

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
        label: str | None = None,
        reading: Mapping[str, Any] | None = None,
        metric: str | None = None,
    ) -> Self:
        """Learn from all rows, in `passes` passes.

        If it fails or is interrupted, the estimator stays as it was before.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels of at least two classes, or values of a regression.
        sample_weight : array of shape (rows,), optional
            How often a row is repeated: a row of weight 3 is learned as three rows, one of weight
            0 is left out.
        eval_set : pair (X, y) or source, optional
            Rows to compute ``valid_loss`` on after each pass; rules that learn row by row can use
            it for early stopping.
        classes : array, "binary" or "arriving", optional
            Labels of a source; by default the source is read once to find them. "binary": they are
            -1 and 1, or 0 and 1. "arriving": each is added when it first occurs, in a source that
            can be read only once.
        observer : thresher.Observer, optional
            Receives progress, and may stop the run.
        checkpoint : path, optional
            File to write the state of the run to, at intervals and when the observer stops it.
        every : float
            Seconds between two checkpoints.
        resume : bool
            Continue from the checkpoint, to a bit-identical model; if there is none, start from
            the beginning.
        names : bool
            Whether to look up the names of features, if the source has names.
        seed : int, optional
            Seed of the shuffling of a source; by default it is drawn from `random_state`.
        label : str, optional
            The column of a frame that holds the labels, in place of y.
        reading : mapping, optional
            Options of `scan` for a frame, such as ``{"missing": "indicator", "text": ["review"]}``;
            `predict` uses them again.
        metric : str, optional
            What early stopping judges `eval_set` by, in place of the loss: a key of
            `thresher.evaluate`, such as "roc_auc". Only for rules that learn row by row.

        Returns
        -------
        self
        """
        options = RunOptions.of(observer, checkpoint, every, resume, names, seed, metric)
        with all_or_nothing(self), shown(options, self.verbose, self.passes) as options:
            self.__dict__.pop("_sparse_coef", None)
            X, y = self._frame_given(X, y, label, reading)
            check_fit_arguments(self, X, classes, seed, metric)
            if is_source(X):
                check_source_alone(self, y, sample_weight)
                return self._fit_source(X, eval_set, classes, options)
            before = getattr(self, "classes_", None)
            X, y = self._checked(X, y, reset=True)
            self._set_classes(y, before)
            if isinstance(X, FrameRows):
                return self._fit_frame(X, y, sample_weight, eval_set, options)
            return self._fit(X, y, sample_weight, eval_set, options)

    def _set_classes(self, y: Any, before: NDArray[Any] | None) -> None:
        """Set the classes of a classifier from its labels."""

    # ---- defined by the two tasks --------------------------------------------------------------

    @abstractmethod
    def _labels(self) -> Labels:
        """Return the object that converts known labels to targets."""

    # ---- defined by rules that learn row by row, and by rules that need all rows ---------------

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, run: RunOptions) -> Self:
        """Learn from checked rows."""

    def _fit_frame(
        self, X: FrameRows, y: Any, sample_weight: Any, eval_set: Any, run: RunOptions
    ) -> Self:
        """Learn from the checked rows of a frame with words."""
        return self._fit(X, y, sample_weight, eval_set, run)

    @abstractmethod
    def _fit_source(self, source: Source, eval_set: Any, classes: Any, run: RunOptions) -> Self:
        """Learn from a source."""

    # ---- checking ------------------------------------------------------------------------------

    def _is_multilabel(self) -> bool:
        """Return whether rows have any number of labels; only in rules that learn row by row."""
        return False

    def _is_new(self) -> bool:
        return not hasattr(self, "_fitted")

    def _specification(self) -> Specification:
        params = {name: getattr(self, name) for name in self._parameter_names()}
        return Specification(self.rule, self.task, params, type(self).__name__)

    def _own_params(self) -> dict[str, Any]:
        """Return all parameters; the loss has our name."""
        return core_args.canonical({name: getattr(self, name) for name in self._parameter_names()})

    def _checked_params(self, continuing: bool = False) -> dict[str, Any]:
        """Check all parameters; if training continues, learner parameters must be the same."""
        return self._specification().checked(self._fitted if continuing else None)

    def _learned(self, name: str) -> Any:
        """Return a parameter of the learners; before fitting, the parameter as set."""
        return getattr(self, name, None) if self._is_new() else self._fitted.params.get(name)

    def _checked_weights(self, sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
        if sample_weight is None:
            return None
        return np.ascontiguousarray(
            _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        )

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        """Check rows and labels, and return them."""
        return self._validated(X, y, reset)

    def source_of(self, X: Any, y: Any, sample_weight: Any = None) -> Source | MatrixSource:
        """Check rows in memory as `fit` does, and return them as a source, without training.

        Sets ``n_features_in_``, the names of columns and the classes, as `fit` does.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        MatrixSource, or Source for a frame with words
        """
        X, y = self._checked(X, y, reset=True)
        self._set_classes(y, None)
        rows = X.tocsr() if is_sparse(X) else X  # a rule may train on columns
        return self._rows(rows, y, self._checked_weights(sample_weight, X))

    def _valid_source(self, eval_set: Any, separate: bool = False) -> Source | MatrixSource | None:
        """Return the validation rows as a source.

        `separate`: the training rows are a source, so `eval_set` sets its own width and classes.
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
        if separate:
            checked: Source | MatrixSource = clone(self).source_of(*eval_set)
            return checked
        return self._rows(*self._checked(eval_set[0], eval_set[1], reset=False), None)

    def _checked_eval_set(self, eval_set: Any, run: RunOptions) -> tuple[Any, Targets] | None:
        """Return validation rows in memory, and their targets."""
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
        return evaluation_rows(self._labels(), source.block, run.observer.warn)

    def _column_name(self, column: int) -> str:
        """Return the name of a column for a message: quoted, or its number."""
        names = getattr(self, "feature_names_in_", None)
        return str(column) if names is None else repr(str(names[column]))

    # ---- targets and weights of rows in memory -------------------------------------------------

    def _targets(self, y: Any) -> Targets:
        """Return the targets of each output."""
        return self._labels().targets(LabelArray(y))

    def _row_weights(
        self, y: Any, sample_weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of the rows, including those of their classes."""
        return sample_weight

    # ---- fitted state and predictions ----------------------------------------------------------

    def take(self, state: FittedState) -> Self:
        """Set all fitted attributes from a state. All code that fits an estimator calls this.

        Parameters
        ----------
        state : FittedState
            The result of a trainer, a search or a cluster.
        """
        self._fitted, self.n_iter_ = state, state.passes
        for name in ("history_", "refit_"):
            self.__dict__.pop(name, None)
        if state.refit is not None:
            self.refit_ = state.refit
        if state.history is not None:
            self.history_ = state.history
        if state.classes is not None:
            self.classes_ = state.classes
        if state.reading:  # trained on a source, which has no columns
            self._set_columns(state)
        if not hasattr(self, "_sparse_coef"):  # else sparsify or densify has decided
            self._sparse_coef = state.params.get("store", "dense") != "dense"
        self._clear_cached()
        return self

    @property
    def state_(self) -> FittedState:
        """The result of training: all that is needed to predict and to train further."""
        check_is_fitted(self, "_fitted")
        return self._fitted

    def amend(self, **parts: Any) -> Self:
        """Replace some attributes of the fitted state.

        Parameters
        ----------
        **parts
            Attributes of `FittedState`, such as ``names`` or ``place``.
        """
        return self.take(replace(self.state_, **parts))

    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Return raw predictions, one column for each output."""
        if is_dict_rows(X):
            return self._raw_of_dicts(X)
        return self.model_.raw(X if is_source(X) else self._checked_rows(X))

    @property
    def model_(self) -> Model:
        """The current model: sparse weights, names and history."""
        check_is_fitted(self, "_fitted")
        if "model" not in self._cached:
            self._cached["model"] = self._model_of(None)
        model: Model = self._cached["model"]
        return model

    def _model_of(self, outputs: list[Output] | None) -> Model:
        """Return the model of these outputs; None: the current ones."""
        columns = None if self._fitted.reading else getattr(self, "feature_names_in_", None)
        names = None if columns is None else {k: str(name) for k, name in enumerate(columns)}
        params = self._own_params() | self._frame_facts()
        return self._fitted.model(params, outputs, names)

    def _loss(self) -> str:
        """Return the name of the loss; a rule with a single loss has no parameter `loss`."""
        return core_args.loss_of(self.rule, self._own_params())

    def _learned_loss(self) -> str:
        """Return the loss of the trained outputs; before fitting, the loss as set."""
        return str(self._learned("loss") or self._loss())

    def _clear_cached(self) -> None:
        self._cached = {}

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_fitted" in state:
            state["_cached"] = {}  # computed again when used
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(upgraded(type(self), state))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
