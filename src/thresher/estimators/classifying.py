"""Classifiers that learn row by row, with classes added later and with multilabel rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_consistent_length

from thresher.data import is_source, is_sparse
from thresher.data.dict_rows import is_dict_rows
from thresher.data.labels import LabelColumns, Labels
from thresher.data.matrix_source import MatrixSource
from thresher.data.source import Source
from thresher.errors import ParameterError, setting
from thresher.estimators.fit_arguments import check_source_alone
from thresher.estimators.streaming import StreamingEstimator
from thresher.estimators.tasks import LinearClassifier, PartialClassifier
from thresher.losses import LOSSES
from thresher.model.links import label_probabilities
from thresher.sparse_checks import refuse_malformed
from thresher.training.fitted import FittedState
from thresher.training.fitting import Specification

_CELLS = 1 << 22  # scores in memory at a time


class MultilabelClassifier(LinearClassifier):
    """Base of classifiers whose rows may have any number of labels.

    If `y` has several columns of 0 and 1, each column is a label that a row may have. `predict`
    then returns the same form: a CSR matrix if `y` was sparse or came from a source.
    """

    _multilabel: str = ""  # "dense" or "sparse" if rows have any number of labels

    def take(self, state: FittedState) -> Self:
        """Set all fitted attributes from a state.

        Parameters
        ----------
        state : FittedState
        """
        self._multilabel = state.multilabel
        return super().take(state)

    # ---- labels --------------------------------------------------------------------------------

    def _is_multilabel(self) -> bool:
        return bool(self._multilabel)

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        several = getattr(y, "ndim", np.ndim(y) if isinstance(y, list | tuple) else 1) == 2
        several = several and np.shape(y)[1] > 1
        if not reset and several != self._is_multilabel():
            raise ValueError(
                f"y has {'several columns' if several else 'one label per row'}, and had "
                f"{'one label per row' if several else 'several columns'} when training started"
            )
        if not several:
            self._multilabel = ""
            return super()._checked(X, y, reset)
        if self.class_weight is not None:
            raise ParameterError(
                (setting("class_weight"), " needs rows with one class each; y has several columns"),
                owner=type(self).__name__,
                parameter="class_weight",
                value=self.class_weight,
            )
        X, _ = self._validated(X, np.zeros(np.shape(y)[0]), reset)
        refuse_malformed(y)
        name = {"input_name": "y", "estimator": self}
        Y = check_array(y, accept_sparse="csr", ensure_min_features=2, **name)
        check_consistent_length(X, Y)
        values = Y.data if is_sparse(Y) else Y
        if not ((values == 0) | (values == 1)).all():
            raise ValueError(
                f"{type(self).__name__}: y with several columns must have only the values 0 and 1"
            )
        if not reset and Y.shape[1] != len(self.classes_):
            raise ValueError(f"y has {Y.shape[1]} columns, and had {len(self.classes_)} before")
        self._multilabel = "sparse" if is_sparse(Y) else "dense"
        table = sp.csr_matrix(Y)
        table.eliminate_zeros()
        return X, table

    def _labels(self) -> Labels:
        if not self._is_multilabel():
            return super()._labels()
        return LabelColumns(self.classes_, LOSSES[self._loss()].low)

    # ---- predictions ---------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Return labels; a score of exactly 0 counts as the second class.

        If `y` had several columns, the result is a table of 0 and 1, one column for each label.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        if not self._is_multilabel():
            return super().predict(X)
        if self._multilabel == "dense" or is_source(X) or is_dict_rows(X):
            table = (self.decision_function(X) >= 0).astype(np.int64)
            return table if self._multilabel == "dense" else sp.csr_matrix(table)
        X = self._checked_rows(X)
        if is_source(X):  # of a frame with words
            return self.predict(X)
        step = max(1, _CELLS // len(self.classes_))  # not all scores may fit in memory
        return sp.vstack(
            [
                sp.csr_matrix((self.decision_function(X[i : i + step]) >= 0).astype(np.int64))
                for i in range(0, X.shape[0], step)
            ],
            format="csr",
        )

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities of the classes, for the losses logistic and clipped_square.

        The probabilities of one row add up to one. If `y` had several columns, each is instead
        the probability that the row has the label.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        if self._is_multilabel():
            return label_probabilities(self.decision_function(X), self._learned_loss())
        return np.asarray(super().predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class StreamingClassifier(MultilabelClassifier, PartialClassifier, StreamingEstimator):
    """A classifier that learns row by row."""

    def _label_format(self, source: Source | MatrixSource) -> str:
        if source.labels_given:
            return self._multilabel
        return "sparse" if source.multilabel else ""

    def _known_labels(self, spec: Specification, source: Source | MatrixSource) -> Labels:
        if self._is_multilabel() and source.labels_given and source.multilabel:
            return self._labels()
        return super()._known_labels(spec, source)

    def _learn_more(self, X: Any, y: Any, classes: Any, sample_weight: Any, **prepare: Any) -> Self:
        plain = classes is None and sample_weight is None and not prepare
        if plain and self._learned_one_row(X, y):
            return self
        return super()._learn_more(X, y, classes, sample_weight, **prepare)

    def _learn_more_checked(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool, **prepare: Any
    ) -> Self:
        if is_dict_rows(X):
            return self._learn_dicts(X, y, sample_weight, classes)
        if is_source(X):
            check_source_alone(self, y, sample_weight)
            return self._learn_once(X, classes=classes, **prepare)
        return super()._learn_more_checked(X, y, classes, sample_weight, first, **prepare)
