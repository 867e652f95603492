"""Arrays in as few bytes as hold them, for the way between pieces and for checkpoints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.pieces import Arrays

_KINDS = (np.uint8, np.uint16, np.uint32, np.uint64)


def narrow(values: NDArray[np.integer]) -> NDArray[np.unsignedinteger]:
    """Return whole numbers, none below 0, in the narrowest type that holds them all.

    Examples
    --------
    >>> narrow(np.array([3, 300])).dtype
    dtype('uint16')
    """
    largest = int(values.max()) if len(values) else 0
    kind = next(kind for kind in _KINDS if largest <= np.iinfo(kind).max)
    return values.astype(kind)


def packed_keys(keys: NDArray[np.uint64]) -> Arrays:
    """Return increasing keys as the first of them, and the distance of each from the one before."""
    return {"first": keys[:1].astype(np.uint64), "gaps": narrow(np.diff(keys))}


def unpacked_keys(arrays: Arrays) -> NDArray[np.uint64]:
    """Return the keys that `packed_keys` has packed."""
    steps = np.concatenate([arrays["first"], arrays["gaps"].astype(np.uint64)])
    return np.cumsum(steps, dtype=np.uint64)


def looked_up(
    wanted: NDArray[np.uint64], keys: NDArray[np.uint64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the values of the wanted keys, 0 of those that are not among the (sorted) keys."""
    at = np.searchsorted(keys, wanted)
    known = at < len(keys)
    known[known] = keys[at[known]] == wanted[known]
    found = np.zeros(len(wanted))
    found[known] = values[at[known]]
    return found
