"""Predictions of the model of the selected features."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from thresher.data import is_source
from thresher.data.frames import is_frame
from thresher.discovery.inputs import validated
from thresher.errors import ParameterError
from thresher.model.model import Model


class _NeedsRefit:
    """A method that an estimator has with ``refit=True`` only.

    `available_if` of scikit-learn does the same, but its message does not say what is needed.

    Parameters
    ----------
    method : function
    classifies : bool
        Whether a regression does not have it either.
    """

    def __init__(self, method: Callable[..., Any], classifies: bool) -> None:
        self.method, self.classifies = method, classifies
        self.__doc__ = method.__doc__

    def __get__(self, own: Any, owner: type | None = None) -> Any:
        if own is None:
            return self.method
        name = self.method.__name__
        numeric = own.task == "regression" or (
            hasattr(own, "n_rows_") and not hasattr(own, "classes_")
        )
        if self.classifies and numeric:
            raise AttributeError(f"{type(own).__name__}: a regression has no {name}")
        if not own.refit:
            raise AttributeError(
                f"{type(own).__name__}: {name} needs refit=True, which fits a model of the "
                f"selected features"
            )
        return MethodType(self.method, own)


def _needs_refit(method: Callable[..., Any]) -> Any:
    return _NeedsRefit(method, classifies=False)


def _needs_classes(method: Callable[..., Any]) -> Any:
    return _NeedsRefit(method, classifies=True)


class RefittedPredictions:
    """The methods of `FeatureDiscovery` that predict, if `refit` is true."""

    refit: bool
    task: str

    if TYPE_CHECKING:  # `FeatureDiscovery` has it

        @property
        def model_(self) -> Model:
            """Model of the selected features."""

    def _input_of(self, X: Any) -> Any:
        check_is_fitted(self)
        if is_source(X) or (is_frame(X) and self.model_.parameters.get("frame_columns")):
            return X
        return validated(
            self, X, reset=False, accept_sparse="csr", accept_large_sparse=True,
            dtype=[np.float64, np.float32], order="C",
        )  # fmt: skip

    @_needs_refit
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the model of the selected features.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return self.model_.predict(self._input_of(X))

    @_needs_classes
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the model of the selected features.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return self.model_.decision_function(self._input_of(X))

    @_needs_classes
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        """
        return self.model_.predict_proba(self._input_of(X))

    @_needs_refit
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
