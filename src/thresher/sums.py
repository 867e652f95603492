"""Sums with the same bits on every machine, and with every version of Python.

A result that ends in a model, or decides which model is taken, is added here. NumPy's ``a @ b``
calls BLAS, which chooses its order of additions by the processor. From Python 3.12 on, ``sum``
corrects the rounding of floats.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray


def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the sum of the products of two arrays of one dimension.

    Parameters
    ----------
    a, b : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.multiply(a, b).sum())


def ordered_sum(values: Iterable[float]) -> float:
    """Return the sum of numbers, added from left to right, each step rounded.

    Parameters
    ----------
    values : iterable of float

    Examples
    --------
    >>> ordered_sum([1e16, 1.0, -1e16])
    0.0
    """
    return reduce(operator.add, values, 0.0)
