"""Folds and samples of rows, stratified by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ALWAYS = -1  # the fold of rows that all models learn from


def strata_of(y: Any, classifies: bool) -> NDArray[np.int64]:
    """Return the number of the class of each row; 0 for all rows of other tasks.

    Parameters
    ----------
    y : array of labels, or CSR matrix of labels
    classifies : bool
        Whether each row has one class.
    """
    if not classifies:
        return np.zeros(y.shape[0], np.int64)
    return np.unique(y, return_inverse=True)[1].astype(np.int64)


def folds_of(strata: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each row, from 0; each class is spread evenly over the folds.

    The only row of a class is in no fold: a model that did not learn from it would not have the
    class.

    Parameters
    ----------
    strata : array of shape (rows,)
        The class of each row.
    count : int
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> folds = folds_of(np.array([0, 0, 0, 0, 1, 1, 2]), 2, np.random.default_rng(0))
    >>> np.bincount(folds[:4]).tolist(), np.sort(folds[4:6]).tolist(), folds[6]
    ([2, 2], [0, 1], np.int64(-1))
    """
    folds = np.full(len(strata), ALWAYS, np.int64)
    first = 0
    for rows in _members(strata):
        if len(rows) == 1:
            continue
        folds[rng.permutation(rows)] = (first + np.arange(len(rows))) % count
        first = (first + len(rows)) % count
    return folds


def sample_of(strata: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the numbers of about `count` rows, increasing; at least two rows of each class.

    Parameters
    ----------
    strata : array of shape (rows,)
        The class of each row.
    count : int
    rng : Generator

    Examples
    --------
    >>> import numpy as np
    >>> sample_of(np.repeat([0, 1], [98, 2]), 10, np.random.default_rng(0))[-2:].tolist()
    [98, 99]
    """
    if count >= len(strata):
        return np.arange(len(strata))
    share = count / len(strata)
    taken = [
        rng.permutation(rows)[: max(min(len(rows), 2), round(share * len(rows)))]
        for rows in _members(strata)
    ]
    return np.sort(np.concatenate(taken))


def _members(strata: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the rows of each class."""
    order = np.argsort(strata, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(strata[order])) + 1)
