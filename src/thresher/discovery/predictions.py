"""Predictions of the model of the selected features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.data import is_source
from thresher.errors import ParameterError
from thresher.model.model import Model


def _refits(self: RefittedPredictions) -> bool:
    if not self.refit:
        raise AttributeError("predictions need refit=True")
    return True


def _classifies(self: RefittedPredictions) -> bool:
    if self.task == "regression" or (hasattr(self, "n_rows_") and not hasattr(self, "classes_")):
        raise AttributeError("a regression has no probabilities")
    return _refits(self)


class RefittedPredictions:
    """The methods of `FeatureDiscovery` that predict, if `refit` is true."""

    refit: bool
    task: str

    @property
    def model_(self) -> Model:
        """Model of the selected features."""
        raise NotImplementedError

    def _input_of(self, X: Any) -> Any:
        check_is_fitted(self)
        if is_source(X):
            return X
        return validate_data(
            self, X, reset=False, accept_sparse="csr", accept_large_sparse=True,
            dtype=[np.float64, np.float32], order="C",
        )  # fmt: skip

    @available_if(_refits)
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the model of the selected features.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return self.model_.predict(self._input_of(X))

    @available_if(_classifies)
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the model of the selected features.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return self.model_.decision_function(self._input_of(X))

    @available_if(_classifies)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return self.model_.predict_proba(self._input_of(X))

    @available_if(_refits)
    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy, or R2 of a regression.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)
        """
        if is_source(X):
            raise ParameterError("score takes rows in memory", owner=type(self).__name__)
        judge = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(judge(y, self.predict(X)))
