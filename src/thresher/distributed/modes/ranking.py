"""The cutoff between the features that stay and those that go, over all ranges.

The driver asks ranges for counts of ranks. The ranks themselves are not sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.modes.robust_messages import AskRankCounts

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor

LAST_KEY = 2**64 - 1
_BITS = 11  # bits of a rank that one question decides


def find_cutoff(executor: Executor, size: int) -> tuple[int, int]:
    """Return the lowest rank that stays, and the last key that stays among features of that rank.

    More than `size` features have ranks; `size` of them stay.
    """

    def counts(tied: int) -> Callable[[int, int, int], NDArray[np.int64]]:
        def ask(prefix: int, shift: int, bits: int) -> NDArray[np.int64]:
            found = executor.ask_ranges(AskRankCounts(tied, prefix, shift, bits))
            total: NDArray[np.int64] = np.sum(found, axis=0, dtype=np.int64)
            return total

        return ask

    rank, tied = kth_largest(counts(tied=0), size)
    if tied is None:
        return rank, LAST_KEY
    # The lowest keys stay: those with the largest complement.
    return rank, LAST_KEY - kth_largest(counts(tied=rank), tied)[0]


def kth_largest(
    counts: Callable[[int, int, int], NDArray[np.int64]], size: int
) -> tuple[int, int | None]:
    """Find a bound such that the `size` largest of many 64-bit numbers are at or above it.

    Parameters
    ----------
    counts : callable
        Takes a prefix, a shift and a number of bits. Among the numbers whose leading bits are the
        prefix, it counts each value of the next bits, above the lowest `shift` bits.
    size : int
        At least 1, and less than the number of numbers.

    Returns
    -------
    bound : int
    tied : int or None
        None if exactly `size` numbers are at or above the bound. Otherwise several numbers are
        equal to the bound, and only this many of them are among the `size` largest.

    Examples
    --------
    >>> numbers = np.array([5, 9, 9, 9, 12])
    >>> def counts(prefix, shift, bits):
    ...     near = numbers[numbers >> shift >> bits == prefix] >> shift
    ...     return np.bincount(near % 2**bits, minlength=2**bits)
    >>> kth_largest(counts, 4)
    (9, None)
    >>> kth_largest(counts, 3)
    (9, 2)
    """
    prefix, shift = 0, 64
    while shift > 0:
        bits = min(_BITS, shift)
        shift -= bits
        from_top = np.cumsum(counts(prefix, shift, bits)[::-1])
        at = int(np.searchsorted(from_top, size))
        prefix = (prefix << bits) + len(from_top) - 1 - at
        if from_top[at] == size:
            return prefix << shift, None
        size -= int(from_top[at - 1]) if at else 0
    return prefix, size
