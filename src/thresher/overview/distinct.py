"""Counts different values: exactly up to a bound, then by a sketch.

The sketch keeps the `bound` smallest hashes (k minimum values: Bar-Yossef et al. 2002). Up to the
bound, these are all hashes, so the count is exact. Above it, the largest one that is kept tells how
dense the hashes lie; the relative standard error is 1 / sqrt(bound).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["DistinctCount"]


class DistinctCount:
    """The number of different values, given by their hashes.

    Parameters
    ----------
    bound : int
        Up to this number, the count is exact. Memory is 16 bytes times the bound at most.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.data.row_folds import mixed
    >>> count = DistinctCount(bound=1000)
    >>> count.add(mixed(np.arange(500, dtype=np.uint64) % np.uint64(100)))
    >>> count.count, count.exact
    (100, True)
    >>> count.add(mixed(np.arange(100_000, dtype=np.uint64)))
    >>> 95_000 < count.count < 105_000, count.exact
    (True, False)
    """

    def __init__(self, bound: int = 1 << 14) -> None:
        self.bound = bound
        self._kept = np.zeros(0, np.uint64)
        self._new: list[NDArray[np.uint64]] = []
        self._waiting = 0
        self._full = False

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Add values by their hashes, which must be well mixed in all bits."""
        if self._full:
            hashes = hashes[hashes < self._kept[-1]]
        if len(hashes):
            self._new.append(hashes)
            self._waiting += len(hashes)
        if self._waiting > self.bound:
            self._merge()

    def _merge(self) -> None:
        if self._new:
            every = np.sort(np.concatenate([self._kept, *self._new]))  # faster than np.unique
            kept = every[np.concatenate([[True], every[1:] != every[:-1]])]
            self._full = self._full or len(kept) > self.bound
            self._kept = kept[: self.bound].copy()
            self._new, self._waiting = [], 0

    @property
    def exact(self) -> bool:
        """Whether the count is exact."""
        self._merge()
        return not self._full

    @property
    def count(self) -> int:
        """Number of different values."""
        self._merge()
        if not self._full:
            return len(self._kept)
        return round((self.bound - 1) / ((float(self._kept[-1]) + 1) / 2.0**64))
