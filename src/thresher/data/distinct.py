"""The distinct keys of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct(keys: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct keys, sorted: the same as `np.unique`.

    The keys of one output are sorted already, which takes 1 ms to see for a million keys.
    `np.unique` puts them into a hash table and takes 0.6 s.

    Examples
    --------
    >>> distinct(np.array([7, 3, 7]))
    array([3, 7])
    """
    if len(keys) == 0 or np.all(keys[1:] > keys[:-1]):
        return keys
    ordered = np.sort(keys)
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
