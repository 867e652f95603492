"""Rows in memory without the columns that are empty: the other columns are numbered anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import is_sparse, nonzeros
from thresher.data.matrix_source import MatrixBlock
from thresher.threads import threads_for

_WIDE = 1 << 16  # columns of a matrix whose stores do not fit into a cache
_EMPTY = 0.25  # share of empty columns that is worth a copy of the column numbers
_PER_EMPTY = 16  # nonzeros to copy for each empty column, at most
_ENOUGH = 1 << 19  # nonzeros for each thread


@dataclass(frozen=True)
class UsedColumns:
    """The rows of a matrix, with the columns that occur numbered from 0 in their order.

    Attributes
    ----------
    block : MatrixBlock
        The rows; values are not copied.
    numbers : array of uint64
        For each of its columns, the number of this column in the matrix.
    """

    block: MatrixBlock
    numbers: NDArray[np.uint64]


def used_columns(block: MatrixBlock) -> UsedColumns | None:
    """Return the rows of a block without its empty columns; None if this does not pay.

    It pays for wide sparse matrices with many empty columns. Rows that cannot be learned keep their
    column numbers, because errors name them.

    Parameters
    ----------
    block : MatrixBlock

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from thresher.data.matrix_source import MatrixBlock
    >>> X = sp.csr_array((np.ones(3), [7, 999_999, 7], [0, 2, 3]), shape=(2, 1_000_000))
    >>> used = used_columns(MatrixBlock(X, np.zeros(2)))
    >>> used.numbers.tolist(), used.block.X.toarray().tolist()
    ([7, 999999], [[1.0, 1.0], [1.0, 0.0]])
    """
    X, width = block.X, block.width
    if not is_sparse(X) or width < _WIDE:
        return None
    values = nonzeros(X)
    empty = max(int(_EMPTY * width), values // _PER_EMPTY)
    if empty >= width:
        return None
    found = _core.used_columns(block.batch, width - empty, threads_for(values, _ENOUGH))
    if found is None:
        return None
    numbers, keys = found
    shape = X.shape[0], max(len(numbers), 1)
    renumbered = type(X)((X.data[: len(keys)], keys, X.indptr), shape=shape)
    return UsedColumns(MatrixBlock(renumbered, block.y, block.weights), numbers)
