"""Scaling of columns before learning; the learned weights are for the columns as given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from thresher.data.arrays import is_sparse, nonzeros
from thresher.model.model import Output
from thresher.preprocessing import UnitVarianceScaler
from thresher.sums import dot

DENSE = 0.25  # share of stored values from which a sparse matrix is scaled as an array
_MOST_CELLS = 1 << 26  # but at most this many values


@dataclass(frozen=True)
class ColumnScale:
    """The mean and the scale of each column.

    Columns of an array have their mean and their standard deviation. Columns of a sparse matrix
    stay sparse: their mean counts as 0, and their scale is that of `UnitVarianceScaler`. A matrix
    with many stored values is scaled as an array.

    Attributes
    ----------
    centre : array of shape (features,) or None
        None: columns are not centred.
    scale : array of shape (features,)
        1 for columns that are constant.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 50.0], [3.0, 250.0]])
    >>> ColumnScale.of(X).applied(X).round(2).tolist()
    [[-0.71, -0.71], [0.71, 0.71]]
    """

    centre: NDArray[np.float64] | None
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any) -> ColumnScale:
        """Return the scales of the columns of X.

        Parameters
        ----------
        X : CSR matrix or array
        """
        if not _is_dense(X):
            return cls(None, UnitVarianceScaler().fit(X).scale_)
        X = _array(X)
        with np.errstate(over="ignore", invalid="ignore"):
            centre = X.mean(axis=0)
            centred = X - centre
        if not np.isfinite(centred).all():  # values near the largest number
            return cls(None, UnitVarianceScaler(min_count=1).fit(X).scale_)
        scale = UnitVarianceScaler(min_count=1).fit(centred).scale_
        rounding = 8 * np.finfo(np.float64).eps * np.abs(centre)
        return cls(centre, np.where(scale > rounding, scale, 1.0))

    @property
    def spread(self) -> float:
        """The largest scale divided by the smallest."""
        with np.errstate(over="ignore"):
            return float(self.scale.max() / self.scale.min()) if len(self.scale) else 1.0

    def applied(self, X: Any) -> Any:
        """Return X with scaled columns.

        Parameters
        ----------
        X : CSR matrix or array
        """
        if self.centre is not None:
            return (_array(X) - self.centre) / self.scale
        if not is_sparse(X):
            return X / self.scale
        X = sp.csr_matrix(X, dtype=np.float64)  # a copy, if the type differs
        return sp.csr_matrix((X.data / self.scale[X.indices], X.indices, X.indptr), shape=X.shape)

    def undone(self, estimator: Any) -> Any:
        """Change the weights of an estimator to those for columns as given; return it.

        Parameters
        ----------
        estimator : estimator
            Fitted to scaled columns; its training cannot continue.
        """
        outputs = []
        for output in estimator.state_.learned():
            columns = output.keys.astype(np.intp)
            weights = output.weights / self.scale[columns]
            shift = 0.0 if self.centre is None else dot(self.centre[columns], weights)
            kept = weights != 0  # a weight may be too small for a number
            outputs.append(
                output._replace(
                    keys=output.keys[kept],
                    weights=weights[kept],
                    intercept=output.intercept - shift,
                )
            )
        return _with_weights(estimator, outputs)


def multiplied(estimator: Any, slope: float, shift: float = 0.0) -> Any:
    """Multiply the weights and intercepts of an estimator, and shift the intercepts; return it.

    Parameters
    ----------
    estimator : estimator
        Its training cannot continue, unless nothing changes.
    slope, shift : float
    """
    if slope == 1.0 and shift == 0.0:
        return estimator
    outputs = [
        output._replace(weights=slope * output.weights, intercept=slope * output.intercept + shift)
        for output in estimator.state_.learned()
    ]
    return _with_weights(estimator, outputs)


def _with_weights(estimator: Any, outputs: list[Output]) -> Any:
    state = estimator.state_
    extras = state.all_extras()
    why = "the race scaled its columns or its weights after training"
    return estimator.take(
        replace(
            state, weights=outputs, outputs=None, refit=None, extras=extras, final=True,
            obstacle=why,
        )
    )  # fmt: skip


def _is_dense(X: Any) -> bool:
    cells = int(X.shape[0]) * int(X.shape[1])
    return not is_sparse(X) or (nonzeros(X) > DENSE * cells and cells <= _MOST_CELLS)


def _array(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if is_sparse(X) else X, np.float64)
