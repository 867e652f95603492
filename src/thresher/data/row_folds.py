"""Folds of the rows of a source, by a hash of the row's number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def fold_numbers(first: int, rows: int, folds: int) -> NDArray[np.int64]:
    """Return the folds of consecutive rows of a source, by a hash of the row's number.

    The fold of row n is the n-th number of SplitMix64 with seed 0, modulo the number of folds. It
    is the same on any machine, in any version, and for any size of blocks.

    Parameters
    ----------
    first : int
        Number of the first row, counted from 0 over all files.
    rows : int
        Number of rows.
    folds : int

    Examples
    --------
    >>> fold_numbers(0, 10, 5).tolist()
    [0, 0, 4, 4, 2, 0, 3, 0, 4, 0]
    """
    with np.errstate(over="ignore"):
        z = np.arange(first, first + rows, dtype=np.uint64) * _GOLDEN
    return (mixed(z) % np.uint64(folds)).astype(np.int64)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes of 64-bit words (SplitMix64).

    Parameters
    ----------
    words : array of uint64

    Examples
    --------
    >>> mixed(np.zeros(1, np.uint64)).tolist()
    [16294208416658607535]
    """
    with np.errstate(over="ignore"):
        z = words + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
