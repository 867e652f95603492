"""Dense columns whose mean is far from 0 are centred before their evidence is measured.

A column with a large mean is almost an intercept: its product with the residuals says more about
their mean than about the column, and the model learns it slowly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.arrays import is_sparse
from thresher.data.matrix_source import MatrixSource

_CONSTANT = 1e-10  # sd in units of the mean, of a column that is constant up to rounding


class CentredRows(MatrixSource):
    """Rows in memory; dense columns with a mean larger than their sd are centred.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
        Sparse matrices are not centred: their zeros stay zeros.
    y : array of shape (rows,)
    weights : array of shape (rows,), optional

    Attributes
    ----------
    offsets : array of shape (features,) or None
        What was subtracted from each column; None: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.centring import CentredRows
    >>> rows = CentredRows(np.array([[1.0, 11.0, 7.0], [-1.0, 9.0, 7.0]]), np.array([0, 1]))
    >>> rows.block.X.tolist(), rows.offsets.tolist()
    ([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]], [0.0, 10.0, 7.0])
    """

    def __init__(self, X: Any, y: NDArray[Any], weights: NDArray[np.float64] | None = None) -> None:
        self.offsets: NDArray[np.float64] | None = None
        if not is_sparse(X) and len(X):
            used = X if weights is None or (weights > 0).all() else X[weights > 0]
            mean = used.mean(axis=0, dtype=np.float64) if len(used) else np.zeros(X.shape[1])
            sd = used.std(axis=0, dtype=np.float64) if len(used) else mean
            far = np.abs(mean) > sd
            if far.any():
                self.offsets = np.where(far, mean, 0.0)
                X = X - self.offsets.astype(X.dtype)
                X[:, far & (sd <= _CONSTANT * np.abs(mean))] = 0.0
        super().__init__(X, y, weights)
