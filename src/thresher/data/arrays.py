"""Makes batches of SciPy CSR matrices and NumPy arrays, without copying them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.errors import DataError, ParameterError
from thresher.sparse_checks import refuse_malformed

_VALUES = (np.float32, np.float64)


def is_sparse(X: Any) -> bool:
    """Tell whether X is a sparse matrix or array, without importing SciPy."""
    return hasattr(X, "tocsr")


def is_source(X: Any) -> bool:
    """Tell whether X is a source of blocks, without importing `Source`."""
    return hasattr(X, "blocks") and hasattr(X, "rereadable")


def refuse_texts(X: Any) -> None:
    """Raise ParameterError if X is a text, or a list or an array of one dimension of texts."""
    if not isinstance(X, str):
        if not isinstance(X, list | tuple) and getattr(X, "ndim", None) != 1:
            return
        first = next(iter(X), None)
        if not isinstance(first, str):
            return
    raise ParameterError(
        "rows are texts: use TfidfVectorizer of scikit-learn, or a DataFrame with "
        "reading={'text': ['column']}"
    )


def as_batch(
    X: Any,
    y: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> _core.Batch:
    """Return the rows of X as a batch.

    CSR matrices with int32 or int64 indices and float32 or float64 values, and C-contiguous arrays
    of these values, are not copied: do not change them while the batch is in use. Anything else is
    copied.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    y : array of shape (rows,), optional
        Labels. A batch without labels can be used to predict.
    weights : array of shape (rows,), optional
        Weights of the rows.
    """
    if is_sparse(X):
        refuse_malformed(X, rows_checked=True)
        X = X.tocsr()
        values = X.data if X.data.dtype in _VALUES else X.data.astype(np.float64)
        starts, keys, values = map(np.ascontiguousarray, (X.indptr, X.indices, values))
        return _core.sparse_batch(starts, keys, values, X.shape[1], y, weights)
    X = np.asarray(X)
    if X.dtype not in _VALUES:
        X = X.astype(np.float64)
    return _core.dense_batch(np.ascontiguousarray(X), y, weights)


def nonzeros(X: Any) -> int:
    """Count the stored values; a dense array stores all its values."""
    return int(X.indptr[-1]) if is_sparse(X) else int(X.shape[0] * X.shape[1])


def checked(X: Any) -> tuple[Any, NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return X as CSR matrix or array, and the rows, columns and values of its nonzeros.

    Raises DataError if a value is not finite.
    """
    if is_sparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        keep = X.data != 0
        rows, at = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[keep], X.indices[keep]
        values = X.data[keep].astype(np.float64)
    else:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ParameterError(f"X must have rows and columns; its shape is {X.shape}")
        rows, at = np.nonzero(X)
        values = X[rows, at]
    for i in np.flatnonzero(~np.isfinite(values))[:1]:
        raise DataError(f"row {rows[i]}, column {at[i]}: {values[i]} is not a finite number")
    return X, rows, at, values


def summed(
    at: NDArray[np.intp], values: NDArray[np.float64], size: int, power: int = 1
) -> NDArray[np.float64]:
    """Return the sum of ``values**power`` for each of `size` places; overflow gives inf."""
    with np.errstate(over="ignore"):
        return np.asarray(np.bincount(at, values**power, size), dtype=np.float64)
