"""Data and estimators of the tests of stability."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from thresher import FTRLClassifier

RNG = np.random.default_rng(11)
X = RNG.normal(size=(301, 40))
Y = np.where(X[:, 4] - X[:, 9] + 0.5 * RNG.normal(size=301) > 0, "spam", "ham")
SPARSE = FTRLClassifier(l1=60.0, passes=5)


class StrongestColumns(RegressorMixin, BaseEstimator):
    """Selects the columns with the largest covariance with y: simple and fast."""

    def __init__(self, count: int = 10) -> None:
        self.count = count

    def fit(self, X: Any, y: Any) -> StrongestColumns:
        strength = np.abs((y - y.mean()) @ X)
        self.coef_ = np.zeros(X.shape[1])
        self.coef_[np.argpartition(-strength, self.count)[: self.count]] = 1.0
        return self
