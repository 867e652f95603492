"""A control: the mean of several runs of one rule, each with its own random order."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from thresher.model import links


class MeanOfRuns(BaseEstimator):  # type: ignore[misc]
    """The mean of the raw scores of several runs that differ only in their seeds.

    The stabilized rule averages over its paths. This control shows the effect of averaging without
    feature selection (A-37).

    Parameters
    ----------
    estimator : estimator
        Cloned for each run.
    runs : int
    random_state : int
        Run i has the seed random_state * runs + i.

    Examples
    --------
    >>> from thresher import TruncatedGradientClassifier
    >>> from thresher.comparison.controls import MeanOfRuns
    >>> mean = MeanOfRuns(TruncatedGradientClassifier(gravity=0.0), 4)
    >>> mean.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]).decision_function([[1.0, 0.0]]) > 0
    array([ True])
    """

    def __init__(self, estimator: Any, runs: int = 16, random_state: int = 0) -> None:
        self.estimator = estimator
        self.runs = runs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the runs one after the other.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features)
        y : array of shape (rows,)
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        self
        """
        first = self.random_state * self.runs
        fitted = [
            clone(self.estimator)
            .set_params(random_state=(first + i) % 2**32)
            .fit(X, y, sample_weight)
            for i in range(self.runs)
        ]
        self._models = [one.model_ for one in fitted]
        if hasattr(fitted[0], "classes_"):
            self.classes_ = fitted[0].classes_
        self.coef_ = np.mean([one.coef_ for one in fitted], axis=0)
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows: one per row, or one per row and class.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features)
        """
        return links.scores(self._raw(X), self.estimator.loss)

    def predict(self, X: Any) -> Any:
        """Return predictions of a regression, or labels.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features)
        """
        if hasattr(self, "classes_"):
            return links.labels(self.decision_function(X), self.classes_)
        return links.values(self._raw(X)[:, 0], self.estimator.loss)

    def _raw(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(np.mean([model.raw(X) for model in self._models], axis=0))
