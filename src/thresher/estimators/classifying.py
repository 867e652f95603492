"""Classifiers that learn row by row: new classes on the way, and rows with any number of labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_consistent_length

from thresher.answers import independent
from thresher.data import is_source, is_sparse
from thresher.errors import ParameterError
from thresher.estimators.sources import learn_source
from thresher.estimators.streaming import StreamingEstimator
from thresher.estimators.tasks import LinearClassifier, PartialClassifier, no_rows_besides
from thresher.training.targets import Targets
from thresher.training.together import Together

_CELLS = 1 << 22  # scores held at a time
_TINY = float(np.finfo(np.float64).tiny)  # no logistic score stands for a probability of 0 or 1


class StreamingClassifier(PartialClassifier, StreamingEstimator):
    """A classifier that learns row by row.

    Where `y` has several columns, of 0 and 1, each is a label that a row has or has not, and
    `predict` answers in the same form: a CSR matrix where `y` was sparse or came from a source.
    """

    _multilabel: str = ""  # "dense" or "sparse", where rows have any number of labels

    # ---- labels --------------------------------------------------------------------------------

    def _is_multilabel(self) -> bool:
        return bool(self._multilabel)

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        several = getattr(y, "ndim", np.ndim(y) if isinstance(y, list | tuple) else 1) == 2
        several = several and np.shape(y)[1] > 1
        if not reset and several != self._is_multilabel():
            raise ValueError(
                f"y has {'several columns' if several else 'one label a row'}, and had "
                f"{'one label a row' if several else 'several columns'} when learning began"
            )
        if not several:
            self._multilabel = ""
            return super()._checked(X, y, reset)
        if self.class_weight is not None:
            raise ParameterError(
                f"{type(self).__name__}: class_weight needs rows of one class each; y has several "
                f"columns"
            )
        X, _ = self._validated(X, np.zeros(np.shape(y)[0]), reset)
        name = {"input_name": "y", "estimator": self}
        Y = check_array(y, accept_sparse="csr", ensure_min_features=2, **name)
        check_consistent_length(X, Y)
        values = Y.data if is_sparse(Y) else Y
        if not ((values == 0) | (values == 1)).all():
            raise ValueError(
                f"{type(self).__name__}: y with several columns must hold 0 and 1 alone: which "
                f"labels a row has"
            )
        if not reset and Y.shape[1] != len(self.classes_):
            raise ValueError(f"y has {Y.shape[1]} columns, and had {len(self.classes_)} before")
        self._multilabel = "sparse" if is_sparse(Y) else "dense"
        return X, Y

    def _targets(self, y: Any) -> Targets:
        if not self._is_multilabel():
            return super()._targets(y)
        if np.ndim(y) != 2 or y.shape[1] != len(self.classes_):
            raise ValueError(f"y must have {len(self.classes_)} columns, one for each label")
        table = sp.csr_matrix(y)
        table.eliminate_zeros()
        starts, numbers = table.indptr.astype(np.int64), table.indices.astype(np.int32)
        low = 0.0 if self._loss() == "clipped_square" else -1.0
        return Targets(y.shape[1], None, starts, numbers, low)

    def _arrivals(self, y: Any) -> list[int]:
        if self._is_new() or self._is_multilabel() or not isinstance(self._learners, Together):
            return []
        found, first = np.unique(y, return_index=True)
        words = self.classes_.dtype.kind in "UO"
        new = ~np.isin(found, self.classes_)
        if not new.any() or words != (found.dtype.kind in "UO"):
            return []
        order = np.argsort(first[new])
        came = np.empty(len(self.classes_), self.classes_.dtype)
        came[self._learners.lane_of] = self.classes_
        came = np.concatenate([came, found[new][order]])
        lane_of = np.argsort(came, kind="stable")
        self.classes_ = came[lane_of]
        self._learners.expect(lane_of)
        arrivals: list[int] = first[new][order].tolist()
        return arrivals

    def _settle(self) -> None:
        if isinstance(self._learners, Together):
            self.classes_ = self.classes_[self._learners.settle()]

    def _learn_more_checked(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool, **prepare: Any
    ) -> Self:
        if is_source(X):
            no_rows_besides(self, y, sample_weight)
            learn_source(self, X, classes)
            return self
        return super()._learn_more_checked(X, y, classes, sample_weight, first, **prepare)

    # ---- answers -------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Return labels; a score of exactly 0 counts as the second class.

        Where `y` had several columns, it is a table of 0 and 1, one column for each label.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        if not self._is_multilabel():
            return super().predict(X)
        if self._multilabel == "dense" or is_source(X):
            table = (self.decision_function(X) >= 0).astype(np.int64)
            return table if self._multilabel == "dense" else sp.csr_matrix(table)
        X = self._checked_rows(X)
        step = max(1, _CELLS // len(self.classes_))  # the scores of all rows may be too many
        return sp.vstack(
            [
                sp.csr_matrix((self.decision_function(X[i : i + step]) >= 0).astype(np.int64))
                for i in range(0, X.shape[0], step)
            ],
            format="csr",
        )

    @available_if(LinearClassifier._has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities of the classes, for the losses logistic and clipped_square.

        Those of one row add up to one, but where `y` had several columns: there each is that of
        having the label.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        if self._is_multilabel():
            loss = self._learned_loss()
            low, high = (_TINY, 1.0 - 2.0**-53) if loss == "logistic" else (0.0, 1.0)
            return np.clip(independent(self.decision_function(X), loss), low, high)
        return np.asarray(super().predict_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
