"""Folds of the rows: dealt at random within strata, or by group."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.row_folds import mixed


class FoldDealer:
    """Deals the rows of a stream to folds.

    Rows of a stratum are dealt in turns: of each `folds` consecutive rows of a stratum, every fold
    gets one, in a random order. So the folds have the same share of every stratum, up to one row.
    The order is a hash of the seed, the stratum and the turn; it does not depend on the size of
    blocks. With groups, whole groups are dealt, the largest first, each to the fold with the fewest
    rows; groups of the same size are dealt in a random order.

    Parameters
    ----------
    folds : int
    seed : int
        From 0 to 2^63 - 1.

    Attributes
    ----------
    counts : dict
        Number of rows so far, by stratum.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.folds import FoldDealer
    >>> dealer = FoldDealer(folds=3, seed=0)
    >>> sorted(dealer.deal(np.zeros(3, np.int64)).tolist())
    [0, 1, 2]
    >>> same = dealer.deal(np.zeros(2, np.int64), groups=np.array([7, 7]))
    >>> bool(same[0] == same[1])
    True
    """

    def __init__(self, folds: int, seed: int) -> None:
        self.folds = folds
        self.counts: dict[int, int] = {}
        self._key = mixed(np.array([seed], np.uint64))

    def deal(
        self, strata: NDArray[np.int64], groups: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Return the folds of the next rows.

        Parameters
        ----------
        strata : array of int of shape (rows,)
            The stratum of each row; 0 for all if there are no strata.
        groups : array of int of shape (rows,), optional
            The group of each row. All rows must be given at once.
        """
        if groups is not None:
            return self._deal_groups(groups)
        found = np.zeros(len(strata), np.int64)
        for stratum in np.unique(strata).tolist():
            rows = np.flatnonzero(strata == stratum)
            first = self.counts.get(stratum, 0)
            numbers = np.arange(first, first + len(rows))
            found[rows] = self._order(stratum, numbers // self.folds)[
                np.arange(len(rows)), numbers % self.folds
            ]
            self.counts[stratum] = first + len(rows)
        return found

    def _deal_groups(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return folds of about the same size that divide no group."""
        labels, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        hashes = mixed(mixed(labels.astype(np.uint64)) ^ self._key)
        of_groups = np.zeros(len(labels), np.int64)
        loads = [(0, fold) for fold in range(self.folds)]  # a heap
        for group in np.lexsort((hashes, -sizes)).tolist():
            load, fold = loads[0]
            of_groups[group] = fold
            heapq.heapreplace(loads, (load + int(sizes[group]), fold))
        return of_groups[members]

    def _order(self, stratum: int, turns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return an order of the folds for each turn."""
        places = mixed(
            mixed(np.array([stratum], np.int64).astype(np.uint64)) + turns.astype(np.uint64)
        )
        numbers = mixed(np.arange(self.folds, dtype=np.uint64)) ^ self._key
        return np.argsort(mixed(places[:, None] ^ numbers), axis=1, kind="stable")

    def restart(self) -> None:
        """Start again with the first row: a second reading deals the same folds."""
        self.counts = {}

    @property
    def state(self) -> dict[str, int]:
        """The counts, in types that JSON has."""
        return {str(stratum): count for stratum, count in self.counts.items()}

    @state.setter
    def state(self, saved: Mapping[str, Any]) -> None:
        self.counts = {int(stratum): int(count) for stratum, count in saved.items()}


def order_of(order: NDArray[np.int64] | None, fold: int, folds: int) -> NDArray[np.int64] | None:
    """Return the order in which the model of a fold learns rows in memory.

    Each model begins at another place of the same random order. The last rows move a model most; if
    they were the same rows, the errors of all models would add up.

    Parameters
    ----------
    order : array of int of shape (rows,) or None
        The random order; None: rows are read in their stored order.
    fold, folds : int

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.folds import order_of
    >>> order_of(np.array([3, 0, 2, 1]), fold=1, folds=2).tolist()
    [2, 1, 3, 0]
    """
    if order is None:
        return None
    return np.asarray(np.roll(order, -(fold * len(order) // folds)))
