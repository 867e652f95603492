"""Complementary halves of a stream: which rows each half learns from, told row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORD = 64  # coins of one hash


class HalfAssigner:
    """Deal the rows of a stream to complementary halves, for many pairs of them at once.

    Rows of a stratum are dealt in twos: for each pair of halves, a coin decides which of the two
    rows goes to the first half; the other goes to the second. So the halves of a pair have no row
    in common, lack none, and have equally many rows of each stratum, to within one, although
    nobody knows how many rows will come. The coin is a hash of the seed, the pair, the stratum and
    the row's number in it: it depends neither on how rows are cut into blocks nor on how many pairs
    there are.

    Parameters
    ----------
    pairs : int
        Pairs of halves.
    seed : int
        From 0 to 2^63 - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.stability.stream_halves import Dealer
    >>> dealer, strata = Dealer(pairs=3, seed=0), np.zeros(4, np.int64)
    >>> dealer.halves(strata, dealer.numbered(strata))
    array([[1, 0, 1, 0, 1, 0],
           [0, 1, 0, 1, 0, 1],
           [1, 0, 0, 1, 1, 0],
           [0, 1, 1, 0, 0, 1]], dtype=uint8)
    """

    def __init__(self, pairs: int, seed: int) -> None:
        self.pairs = pairs
        words = np.arange(-(-pairs // _WORD), dtype=np.uint64)
        self._keys = _mixed(words + _mixed(np.array([seed], np.uint64)))
        self.dealt: dict[int, int] = {}  # rows of each stratum so far

    def numbered(self, strata: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the numbers of the next rows, each in its stratum.

        Parameters
        ----------
        strata : array of int of shape (rows,)
            The stratum of each row.
        """
        numbers = np.zeros(len(strata), np.uint64)
        for stratum, count in zip(*np.unique(strata, return_counts=True), strict=True):
            first = self.dealt.get(int(stratum), 0)
            numbers[strata == stratum] = np.arange(first, first + count, dtype=np.uint64)
            self.dealt[int(stratum)] = first + int(count)
        return numbers

    def halves(self, strata: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return 1 where a half has a row: rows x halves, those of a pair side by side.

        Parameters
        ----------
        strata, numbers : array of int of shape (rows,)
            The stratum of each row, and its number in it.
        """
        places = _mixed(_mixed(strata.astype(np.uint64)) + numbers // 2)
        hashes = _mixed(places[:, None] ^ self._keys).astype("<u8")
        coins = np.unpackbits(hashes.view(np.uint8), axis=1, count=self.pairs, bitorder="little")
        coins ^= (numbers % 2).astype(np.uint8)[:, None]
        return np.stack([coins, 1 - coins], axis=2).reshape(len(strata), 2 * self.pairs)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes of 64-bit words (SplitMix64)."""
    z = words + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
