"""Complementary halves of a stream: assigns each row to one half of each pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.data.row_folds import mixed

_WORD = 64  # random bits per hash


class HalfAssigner:
    """Assigns the rows of a stream to complementary halves, for many pairs of halves at once.

    Rows of a stratum are assigned two at a time: for each pair of halves, a random bit decides
    which of the two rows goes to the first half; the other one goes to the second. So each row is
    in exactly one half of a pair, and the numbers of rows of a stratum in the two halves differ by
    at most one. The number of rows need not be known. The random bit is a hash of the seed, the
    pair, the stratum and the row's number in the stratum. It does not depend on the size of blocks
    or on the number of pairs.

    Parameters
    ----------
    pairs : int
        Number of pairs of halves.
    seed : int
        From 0 to 2^63 - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.stability.stream_halves import HalfAssigner
    >>> halves, strata = HalfAssigner(pairs=3, seed=0), np.zeros(4, np.int64)
    >>> halves.members(strata, halves.numbered(strata))
    array([[1, 0, 1, 0, 1, 0],
           [0, 1, 0, 1, 0, 1],
           [1, 0, 0, 1, 1, 0],
           [0, 1, 1, 0, 0, 1]], dtype=uint8)
    """

    def __init__(self, pairs: int, seed: int) -> None:
        self.pairs = pairs
        words = np.arange(-(-pairs // _WORD), dtype=np.uint64)
        self._keys = mixed(words + mixed(np.array([seed], np.uint64)))
        self.counts: dict[int, int] = {}  # number of rows so far, by stratum

    def numbered(self, strata: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the number of each of the next rows in its stratum.

        Parameters
        ----------
        strata : array of int of shape (rows,)
            The stratum of each row.
        """
        numbers = np.zeros(len(strata), np.uint64)
        for stratum, count in zip(*np.unique(strata, return_counts=True), strict=True):
            first = self.counts.get(int(stratum), 0)
            numbers[strata == stratum] = np.arange(first, first + count, dtype=np.uint64)
            self.counts[int(stratum)] = first + int(count)
        return numbers

    def members(self, strata: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return an array of shape (rows, halves): 1 if a half has a row, else 0.

        The two halves of a pair are adjacent columns.

        Parameters
        ----------
        strata, numbers : array of int of shape (rows,)
            The stratum of each row, and its number in the stratum.
        """
        places = mixed(mixed(strata.astype(np.uint64)) + numbers // 2)
        hashes = mixed(places[:, None] ^ self._keys).astype("<u8")
        bits = np.unpackbits(hashes.view(np.uint8), axis=1, count=self.pairs, bitorder="little")
        bits ^= (numbers % 2).astype(np.uint8)[:, None]
        return np.stack([bits, 1 - bits], axis=2).reshape(len(strata), 2 * self.pairs)
