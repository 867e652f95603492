"""SciPy CSR matrices and NumPy arrays -> batches, without copying them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core

_VALUES = (np.float32, np.float64)


def is_sparse(X: Any) -> bool:
    """Tell whether X is a sparse matrix or array, without importing SciPy."""
    return hasattr(X, "tocsr")


def as_batch(
    X: Any,
    y: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> _core.Batch:
    """Borrow the rows of X.

    CSR with int32 or int64 indices and float32 or float64 values, and C-contiguous arrays of these
    values, are used where they lie, and must not change meanwhile; of anything else a copy is made.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    y : array of shape (rows,), optional
        Labels; a batch without them can be predicted on.
    weights : array of shape (rows,), optional
        Weights of the rows.
    """
    if is_sparse(X):
        X = X.tocsr()
        values = X.data if X.data.dtype in _VALUES else X.data.astype(np.float64)
        starts, keys, values = map(np.ascontiguousarray, (X.indptr, X.indices, values))
        return _core.sparse_batch(starts, keys, values, X.shape[1], y, weights)
    X = np.asarray(X)
    if X.dtype not in _VALUES:
        X = X.astype(np.float64)
    return _core.dense_batch(np.ascontiguousarray(X), y, weights)


def nonzeros(X: Any) -> int:
    """Count the stored values; of a dense array, all."""
    return int(X.indptr[-1]) if is_sparse(X) else int(X.shape[0] * X.shape[1])
