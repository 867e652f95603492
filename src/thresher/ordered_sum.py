"""Sums of floats that have the same bits with every version of Python."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce


def ordered_sum(values: Iterable[float]) -> float:
    """Return the sum of numbers, added from left to right, each step rounded.

    From Python 3.12 on, the function `sum` corrects the rounding of floats: its results have other
    bits than in Python 3.11.

    Parameters
    ----------
    values : iterable of float

    Examples
    --------
    >>> ordered_sum([1e16, 1.0, -1e16])
    0.0
    """
    return reduce(operator.add, values, 0.0)
