"""Rows, units and regressors for tests of standardised targets."""

import numpy as np
from sklearn.datasets import load_diabetes

import thresher
from thresher.losses import LOSSES
from thresher.rules import RULES

STREAMING = [
    spec.estimators["regressor"]
    for spec in RULES.values()
    if "regressor" in spec.estimators and spec.streams
]
SOLVERS = ["CoordinateDescentRegressor", "HardThresholdRegressor"]
SCALING = [name for name, loss in LOSSES.items() if loss.degree]


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X / X.std(axis=0), y


def housing_like():
    """Return rows of columns with other sizes, and skewed targets far from 0."""
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(300, 12)) * np.geomspace(0.1, 3.0, 12)
    y = 20.0 + X @ rng.normal(size=12) + rng.normal(size=300) ** 2
    return X, y


def units(y):
    sd = y.std()
    return {"thousands": y * 1e3, "thousandths": y * 1e-3, "shifted": y + 100 * sd}


def fitted(name, X, y, **params):
    made = getattr(thresher, name)(**params)
    if "random_state" in made.get_params():
        made.set_params(random_state=0)
    return made.fit(X, y)
