"""Answers of the estimator that is fitted on the selected columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.stability.halves import columns_of


def _refitted(method: str) -> Callable[[RefitMixin], bool]:
    """Tell whether the refitted estimator has a method."""

    def check(self: RefitMixin) -> bool:
        if not self.refit:
            raise AttributeError(f"{method} needs refit=True")
        getattr(self.estimator, method)  # an AttributeError says what is missing
        return True

    return check


class RefitMixin:
    """What `StabilitySelection` predicts, where `refit` is true."""

    estimator: Any
    estimator_: Any
    refit: bool
    threshold: float
    selected_: NDArray[np.int64]
    n_selected_mean_: float

    def _answer(self, method: str, X: Any, *more: Any) -> Any:
        """Ask the refitted estimator, about the selected columns."""
        check_is_fitted(self, "selected_")
        if not len(self.selected_):
            raise ValueError(
                f"no feature was selected, so there is nothing to predict with: none has a "
                f"selection probability of threshold = {self.threshold}; a fit selects "
                f"{self.n_selected_mean_:.3g} features on average"
            )
        check_is_fitted(self, "estimator_")
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
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("predict", X))

    @available_if(_refitted("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return scores of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("decision_function", X))

    @available_if(_refitted("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities by the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("predict_proba", X))

    @available_if(_refitted("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return logarithms of `predict_proba`.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("predict_log_proba", X))

    @available_if(_refitted("score"))
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        y : array of shape (rows,)
        """
        return float(self._answer("score", X, y))
