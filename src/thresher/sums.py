"""Sums with the same bits on every machine.

NumPy's ``a @ b`` calls BLAS, which chooses its order of additions by the processor. A result that
ends in a model, or decides which model is taken, is added here instead.
"""

from __future__ import annotations

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
