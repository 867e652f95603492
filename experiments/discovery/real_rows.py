"""Rows of data sets, with labels that are drawn from known features, or permuted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from experiments.discovery import rows
from experiments.discovery.rows import Drawn, Generator
from thresher import datasets

MOST = 5000  # rows of a data set with permuted labels


@lru_cache(maxsize=4)
def _all_rows(name: str) -> tuple[Any, NDArray[Any]]:
    """Return all rows of a data set; training and test rows together."""
    data = datasets.load(name)
    if data.X_test is None:
        return data.X_train, np.asarray(data.y_train)
    stack = sp.vstack if sp.issparse(data.X_train) else np.vstack
    X = stack([data.X_train, data.X_test])
    X = sp.csr_matrix(X) if sp.issparse(X) else X
    return X, np.concatenate([np.asarray(data.y_train), np.asarray(data.y_test)])


def rows_of(name: str, values: str) -> Any:
    """Return the rows of a set, with its own values ("own") or 0 and 1 ("binary").

    Parameters
    ----------
    name : str
        Of a data set.
    values : {"own", "binary"}
    """
    X, _ = _all_rows(name)
    return rows.binary(X) if values == "binary" else X


def with_effects(rng: Generator, name: str, values: str, share: float = 0.5) -> Drawn:
    """Return the rows of a set with labels drawn from 50 features, or half of all features."""
    X = rows_of(name, values)
    if X.shape[0] > 2 * MOST:
        X = X[np.sort(rng.choice(X.shape[0], 8000, replace=False))]
    score, true = rows.effect(rng, X, low=0.7 if X.shape[0] < 4000 else 0.4, high=2.0)
    return Drawn(X, rows.labels(rng, score, share), true)


def permuted(rng: Generator, name: str) -> Drawn:
    """Return the rows of a set, at most 5,000, with permuted labels."""
    X, y = _all_rows(name)
    if X.shape[0] > MOST:
        some = np.sort(rng.choice(X.shape[0], MOST, replace=False))
        X, y = X[some], y[some]
    return Drawn(X, rng.permutation(y), np.zeros(X.shape[1], bool))
