"""Predictions of the estimator that is fitted on the selected columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.sparse_checks import refuse_malformed
from thresher.stability.halves import columns_of


def _refitted(method: str) -> Callable[[RefitMixin], bool]:
    """Return a check for `available_if`: whether the refitted estimator has a method."""

    def check(self: RefitMixin) -> bool:
        if not self.refit:
            raise AttributeError(f"{method} needs refit=True")
        getattr(self.estimator, method)  # raises AttributeError if it is missing
        return True

    return check


class RefitMixin:
    """The methods of `StabilitySelection` that predict, if `refit` is true."""

    estimator: Any
    estimator_: Any
    refit: bool
    threshold: float
    selected_: NDArray[np.int64]
    n_selected_mean_: float

    def _call(self, method: str, X: Any, *more: Any) -> Any:
        """Call a method of the refitted estimator with the selected columns."""
        check_is_fitted(self, "selected_")
        if not len(self.selected_):
            raise ValueError(
                f"cannot predict, because no feature was selected: none has a selection "
                f"probability of at least threshold = {self.threshold}; a fit selects "
                f"{self.n_selected_mean_:.3g} features on average"
            )
        check_is_fitted(self, "estimator_")
        refuse_malformed(X)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            accept_large_sparse=True,
            ensure_all_finite=not get_tags(self).input_tags.allow_nan,
        )
        return getattr(self.estimator_, method)(columns_of(X, self.selected_), *more)

    @available_if(_refitted("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Return predictions of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; only the selected ones are used.
        """
        return np.asarray(self._call("predict", X))

    @available_if(_refitted("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return scores of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; only the selected ones are used.
        """
        return np.asarray(self._call("decision_function", X))

    @available_if(_refitted("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; only the selected ones are used.
        """
        return np.asarray(self._call("predict_proba", X))

    @available_if(_refitted("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return logarithms of `predict_proba`.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; only the selected ones are used.
        """
        return np.asarray(self._call("predict_log_proba", X))

    @available_if(_refitted("score"))
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; only the selected ones are used.
        y : array of shape (rows,)
        """
        return float(self._call("score", X, y))
