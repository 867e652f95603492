"""Base classes of estimators that learn row by row."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher.atomic import all_or_nothing
from thresher.data import as_batch, is_source
from thresher.data.arrays import nonzeros
from thresher.data.dict_rows import is_dict_rows
from thresher.data.labels import Labels
from thresher.data.matrix_source import LabelArray, MatrixSource
from thresher.data.source import Source
from thresher.estimators.fit_arguments import check_source_alone
from thresher.estimators.learn_row import MatrixRowLearning
from thresher.estimators.locks import lock_of
from thresher.estimators.tasks import LinearRegressor
from thresher.training.fitting import Specification, fit, learn_once
from thresher.training.run_options import RunOptions
from thresher.training.source_labels import known_labels

_WEIGHTS = 8  # weights that are copied to a model in the time of one product


class StreamingEstimator(MatrixRowLearning):
    """Base of all estimators that learn row by row.

    Pending shrink events of the learners are applied in everything they return.
    """

    _core_checks_rows = True
    _learns_on: bool = False  # whether the last training was a partial_fit or learn_one

    # ---- fitting -------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, run: RunOptions) -> Self:
        self._checked_params()
        rows, known = self._rows(X, y, self._checked_weights(sample_weight, X)), self._labels()
        if not isinstance(rows, MatrixSource):
            known.count(LabelArray(y))  # for balanced classes
        return self._train(rows, eval_set, run, known=known)

    def _fit_source(self, source: Source, eval_set: Any, classes: Any, run: RunOptions) -> Self:
        return self._train(source, eval_set, run, classes=classes)

    def _train(
        self, source: Source | MatrixSource, eval_set: Any, run: RunOptions, **labels: Any
    ) -> Self:
        state = fit(
            self._specification(),
            source,
            run,
            valid=self._valid_source(eval_set, separate=not source.labels_given),
            before=self._fitted if self.warm_start and not self._is_new() else None,
            multilabel=self._label_format(source),
            **labels,
        )
        self._learns_on = False
        return self.take(state)

    def _label_format(self, source: Source | MatrixSource) -> str:
        """Return the format of multilabel rows, "dense" or "sparse"; empty: one label per row."""
        return ""

    # ---- partial_fit ---------------------------------------------------------------------------

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, **prepare: Any) -> Self:
        known = None
        if self._is_new():
            self._checked_params()
            known = self._labels()
        rows = self._rows(X, y, self._checked_weights(sample_weight, X))
        self._learn_once(rows, known=known, **prepare)
        if X.shape[0] == 1:
            self._prepare_one_row()
        return self

    def _learn_once(
        self,
        source: Source | MatrixSource,
        classes: Any = None,
        known: Labels | None = None,
        **prepare: Any,
    ) -> Self:
        """Learn rows once, after those of earlier calls."""
        with lock_of(self):  # else two threads would continue from the same state
            self._learns_on = True
            spec, before = self._specification(), None if self._is_new() else self._fitted
            if before is not None:
                known = self._known_labels(spec, source)
            given = {"classes": classes, "known": known, "multilabel": self._label_format(source)}
            state, failure = learn_once(spec, source, before, **given, **prepare)
            if state is not None:
                self.take(state)
        if failure is not None:
            raise failure
        return self

    def _known_labels(self, spec: Specification, source: Source | MatrixSource) -> Labels:
        return known_labels(spec, source, self._fitted)

    # ---- predictions ---------------------------------------------------------------------------

    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Return raw predictions, one column for each output."""
        if is_dict_rows(X):
            return self._raw_of_dicts(X)
        if is_source(X):
            return self.model_.raw(X)
        known = None if self._is_new() else self._fitted.known
        if known is not None and X is known[0]:
            return known[1]
        X = self._checked_rows(X)
        if is_source(X):  # of a frame with words
            return self.model_.raw(X)
        state = self._fitted
        if state.target is not None or state.final or state.outputs is None or state.standardised:
            # Learners may have more weights than the model, or other units, or be lost.
            return self.model_.raw(X)
        if not self._learns_on or nonzeros(X) * _WEIGHTS >= state.width * len(state.outputs):
            return self.model_.raw(X)
        # A few rows between steps of learning: to make a model would take longer.
        return state.outputs.predict(as_batch(X), state.average)


class StreamingRegressor(LinearRegressor, StreamingEstimator):
    """A regressor that learns row by row."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from these rows once, in their order.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), dict, list of dicts, or source
        y : array of shape (rows,)
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        self
        """
        return self._learn_more(X, y, sample_weight)

    def _learn_more(self, X: Any, y: Any, sample_weight: Any, **prepare: Any) -> Self:
        if sample_weight is None and not prepare and self._learned_one_row(X, y):
            return self
        if is_dict_rows(X):
            return self._learn_dicts(X, y, sample_weight)
        first = self._is_new()
        with all_or_nothing(self) if first else nullcontext():
            if is_source(X):
                check_source_alone(self, y, sample_weight)
                return self._learn_once(X, **prepare)
            X, y = self._checked(X, y, reset=first)
            return self._partial_fit(X, y, sample_weight, **prepare)
