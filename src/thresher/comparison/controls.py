"""A control: the mean of several runs of one rule, in orders of their own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone


class MeanOfRuns(BaseEstimator):  # type: ignore[misc]
    """The mean of the weights of several runs that differ in their seeds alone.

    The stabilized rule averages over its paths, and what averaging does must not be taken for what
    selection does (A-37).

    Parameters
    ----------
    estimator : estimator
        Of the runs.
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

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the runs one after the other, and take their mean.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features)
        y : array of shape (rows,)

        Returns
        -------
        self
        """
        weights: Any = 0.0
        intercepts: Any = 0.0
        for i in range(self.runs):
            one = clone(self.estimator)
            one.set_params(random_state=(self.random_state * self.runs + i) % 2**32).fit(X, y)
            weights = weights + np.asarray(one.coef_, np.float64)
            intercepts = intercepts + np.asarray(one.intercept_, np.float64)
        self.coef_, self.intercept_ = weights / self.runs, intercepts / self.runs
        return self

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows: one each, or one for each class.

        Parameters
        ----------
        X : CSR matrix or array of shape (rows, features)
        """
        scores = X @ np.atleast_2d(self.coef_).T + self.intercept_
        return np.asarray(scores).ravel() if scores.shape[1] == 1 else np.asarray(scores)

    predict = decision_function  # of a regression
