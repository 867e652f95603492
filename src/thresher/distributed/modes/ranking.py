"""Which features rank highest over all ranges, found without gathering their ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor

LAST_KEY = 2**64 - 1
_BITS = 11  # of ranks, that one round of questions settles


def cut(executor: Executor, size: int) -> tuple[int, int]:
    """Return the lowest rank that stays, and of the features of that rank the last that does.

    More than `size` features have ranks; as many stay.
    """

    def counts(tied: int) -> Callable[[int, int, int], NDArray[np.int64]]:
        def ask(prefix: int, shift: int, bits: int) -> NDArray[np.int64]:
            question = {"ask": "counts", "tied": tied}
            found = executor.ask_ranges(question | {"prefix": prefix, "shift": shift, "bits": bits})
            total: NDArray[np.int64] = np.sum(found, axis=0, dtype=np.int64)
            return total

        return ask

    rank, still = kth_largest(counts(tied=0), size)
    if still is None:
        return rank, LAST_KEY
    # The lowest keys stay: those of highest complement.
    return rank, LAST_KEY - kth_largest(counts(tied=rank), still)[0]


def kth_largest(
    counts: Callable[[int, int, int], NDArray[np.int64]], size: int
) -> tuple[int, int | None]:
    """Find a bound at or above which `size` of many 64-bit numbers are.

    Parameters
    ----------
    counts : callable
        Takes a prefix, a shift and a number of bits: of the numbers whose leading bits are the
        prefix, how many have each value of the next bits, above the lowest `shift`.
    size : int
        Fewer than there are numbers, and at least 1.

    Returns
    -------
    bound : int
    still : int or None
        Where numbers are equal to the bound, and not all of them can be among the highest: how many
        of them are.

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
