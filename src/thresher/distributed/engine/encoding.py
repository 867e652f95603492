"""Compact encodings of arrays, for messages between pieces and for checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.pieces import Arrays

_UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)


def narrow_integers(values: NDArray[np.integer]) -> NDArray[np.unsignedinteger]:
    """Return whole numbers >= 0 in the narrowest type that can hold all of them.

    Examples
    --------
    >>> narrow_integers(np.array([3, 300])).dtype
    dtype('uint16')
    """
    largest = int(values.max()) if len(values) else 0
    return values.astype(next(kind for kind in _UNSIGNED if largest <= np.iinfo(kind).max))


def narrow_floats(values: NDArray[np.float64]) -> NDArray[np.floating]:
    """Return numbers in single precision if that is exact for all of them, else unchanged.

    Examples
    --------
    >>> narrow_floats(np.array([0.5, 2.0])).dtype, narrow_floats(np.array([0.1])).dtype
    (dtype('float32'), dtype('float64'))
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return rounded if np.array_equal(rounded, values) else values


def merge_keys(runs: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the distinct keys of several increasing arrays, in increasing order.

    Examples
    --------
    >>> merge_keys([np.array([1, 5], np.uint64), np.array([2, 5], np.uint64)]).tolist()
    [1, 2, 5]
    """
    keys = np.sort(np.concatenate(runs), kind="stable")  # fast for a few sorted runs
    first = np.concatenate([np.ones(min(len(keys), 1), bool), keys[1:] != keys[:-1]])
    found: NDArray[np.uint64] = keys[first]
    return found


def keys_found(wanted: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return, for each wanted key, whether it is among the increasing `keys`."""
    at = np.searchsorted(keys, wanted)
    found = at < len(keys)
    found[found] = keys[at[found]] == wanted[found]
    return found


def pack_keys(keys: NDArray[np.uint64]) -> Arrays:
    """Return increasing keys as the first key and the differences between neighbours."""
    return {"first": keys[:1].astype(np.uint64), "gaps": narrow_integers(np.diff(keys))}


def unpack_keys(arrays: Arrays) -> NDArray[np.uint64]:
    """Return the keys that `pack_keys` has packed."""
    steps = np.concatenate([arrays["first"], arrays["gaps"].astype(np.uint64)])
    return np.cumsum(steps, dtype=np.uint64)


def look_up(
    wanted: NDArray[np.uint64], keys: NDArray[np.uint64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the values of the wanted keys; 0 for those not among the increasing `keys`."""
    found = keys_found(wanted, keys)
    result = np.zeros(len(wanted))
    result[found] = values[np.searchsorted(keys, wanted[found])]
    return result
