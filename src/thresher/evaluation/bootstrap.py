"""The Poisson bootstrap: random counts of rows, which need no random access to the rows.

In a bootstrap sample of n rows each row occurs a number of times that is nearly Poisson(1). Counts
that are drawn for each row separately need only one pass over the rows (Chamandy, Muralidharan,
Najmi and Naidu: Estimating Uncertainty for Massive Data Streams, 2012). Here the count of a row in
a replicate is a function of the seed, the number of the row and the number of the replicate. So
results do not depend on how rows are divided into blocks, and two models that are evaluated on the
same rows have the same replicates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Floats = NDArray[np.float64]

CHUNK = 4096  # rows whose counts are in memory at the same time
_GOLDEN, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


def _counts_of_words() -> Floats:
    """Return the Poisson(1) count for each 16-bit number; probabilities are rounded to 2^-16."""
    shares = np.cumsum([math.exp(-1.0) / math.factorial(k) for k in range(12)])
    ends = np.rint(shares * 65536).astype(np.int64)
    return np.searchsorted(ends, np.arange(65536), side="right").astype(np.float64)


class PoissonCounts:
    """How often each row occurs in each replicate.

    Parameters
    ----------
    replicates : int
    seed : int

    Examples
    --------
    >>> counts = PoissonCounts(200, seed=0).of(np.arange(1000))
    >>> counts.shape, bool(abs(counts.mean() - 1) < 0.01), bool(abs(counts.var() - 1) < 0.02)
    ((1000, 200), True, True)
    """

    def __init__(self, replicates: int, seed: int) -> None:
        self.replicates = replicates
        self._words = np.uint64(-(-replicates // 4))  # of 64 bits for each row
        start = np.array([seed], np.uint64) * _GOLDEN + _GOLDEN
        self._start = _mixed(start)[0]
        self._table = _counts_of_words()

    def of(self, rows: NDArray[Any]) -> Floats:
        """Return the counts of some rows.

        Parameters
        ----------
        rows : array of int
            Numbers of the rows, from 0.

        Returns
        -------
        array of shape (rows, replicates)
        """
        words = np.arange(self._words, dtype=np.uint64)
        places = rows.astype(np.uint64)[:, None] * self._words + words
        bits = _mixed(places * _GOLDEN + self._start).view(np.uint16)
        found: Floats = self._table[bits[:, : self.replicates]]
        return found


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x ^= x >> np.uint64(30)
    x *= _FIRST
    x ^= x >> np.uint64(27)
    x *= _SECOND
    x ^= x >> np.uint64(31)
    return x


class CellSums:
    """Sums over rows in cells, and the same sums in each replicate.

    Attributes
    ----------
    total : array of longdouble, of shape (cells,)
    replicates : array of shape (cells, replicates), or None without a bootstrap
    """

    def __init__(self, cells: int, counts: PoissonCounts | None) -> None:
        self.cells = cells
        self.total = np.zeros(cells, np.longdouble)
        self.replicates = None if counts is None else np.zeros((cells, counts.replicates))

    def add(
        self, rows: NDArray[Any], cells: NDArray[Any], values: Floats, counts: Floats | None
    ) -> None:
        """Add values to cells.

        Parameters
        ----------
        rows : array of int
            The row of each value, counted from the first row of `counts`.
        cells : array of int
            The cell of each value.
        values : array of float64
        counts : array of shape (rows, replicates), or None
        """
        self.total += np.bincount(cells, values, self.cells)
        if self.replicates is not None and counts is not None:
            shape = (self.cells, len(counts))
            self.replicates += csr_matrix((values, (cells, rows)), shape) @ counts


def interval(replicates: Floats | None, level: float) -> tuple[float, float] | None:
    """Return the percentile interval of replicates; None if half of them are undefined.

    Parameters
    ----------
    replicates : array of float64 or None
        NaN: undefined.
    level : float
        The share of replicates in the interval.

    Examples
    --------
    >>> interval(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    if replicates is None:
        return None
    known = replicates[np.isfinite(replicates)]
    if len(known) < 2 or 2 * len(known) < len(replicates):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
