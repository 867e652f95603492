"""Scaling of sparse columns before learning."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.atomic import all_or_nothing
from thresher.errors import DataError, ParameterError
from thresher.sparse_checks import refuse_malformed

__all__ = ["UnitVarianceScaler"]

_BLOCK = 1 << 22  # values of an array that are processed at a time
_UNSEEN = -(1 << 14)  # exponent of a column without values: smaller than of any float


class UnitVarianceScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Divide columns by their root mean square about zero; zeros stay zeros.

    Column j of n training rows is divided by ::

        scale_j = sqrt(sum_i x_ij^2 / (n - 1))

    which is the standard deviation of a column whose mean is zero (with one row, n - 1 counts as
    1). Data are not centred, so sparse data stay sparse. If the mean of a column is far from zero,
    its variance is then below 1; its sum of squares is n - 1.

    A column with few nonzeros has a tiny scale: after the division its values grow up to sqrt(n)
    and dominate every row in which they occur. So columns with fewer than `min_count` nonzeros are
    scaled as if they had `min_count` nonzeros with the same mean square. A column of zeros has
    scale 1.

    Parameters
    ----------
    min_count : int, default=20
        Columns with fewer nonzeros are scaled as if they had this many; at most the number of
        rows. 1 is the plain formula. On Dexter (200 training rows, mean of 6 splits), the error of
        hinge SGD is 18% with 1, 11% with 5, and 8% with 20 and with 50.
    copy : bool, default=True
        False scales float32 and float64 CSR matrices and arrays in place. Data that cannot be
        scaled are not changed.

    Attributes
    ----------
    scale_ : array of shape (features,)
        What columns are divided by.
    nonzero_counts_ : array of shape (features,)
        Number of nonzeros of each column in the training rows.
    n_samples_seen_ : int
        Number of training rows.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X has names.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.preprocessing import UnitVarianceScaler
    >>> X = np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 2.0], [4.0, 0.0, 2.0]])
    >>> scaler = UnitVarianceScaler(min_count=1).fit(X)
    >>> scaler.scale_.round(3).tolist()
    [3.536, 1.0, 2.121]
    >>> (scaler.transform(X) ** 2).sum(axis=0).round(12).tolist()
    [2.0, 0.0, 2.0]
    """

    # Set by fit and partial_fit. The sum of squares of column j is _sums[j] * 4^_exponents[j], so
    # squares of any finite values can be added without overflow.
    scale_: NDArray[np.float64]
    n_samples_seen_: int
    nonzero_counts_: NDArray[np.int64]
    _exponents: NDArray[np.int32]
    _sums: NDArray[np.float64]

    def __init__(self, *, min_count: int = 20, copy: bool = True) -> None:
        self.min_count = min_count
        self.copy = copy

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the scales of the columns from these rows only; an error changes nothing.

        Parameters
        ----------
        X : CSR or CSC matrix, array or DataFrame of shape (rows, features)
        y : ignored

        Returns
        -------
        self
        """
        return self._learn(X, reset=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn the scales from these rows and all earlier rows; an error changes nothing.

        Parameters
        ----------
        X : CSR or CSC matrix, array or DataFrame of shape (rows, features)
        y : ignored

        Returns
        -------
        self
        """
        return self._learn(X, reset=not hasattr(self, "n_samples_seen_"))

    def transform(self, X: Any) -> Any:
        """Divide the columns by their scales.

        Parameters
        ----------
        X : CSR or CSC matrix, array or DataFrame of shape (rows, features)

        Returns
        -------
        CSR matrix or array of shape (rows, features)
            The type is float32 if X has that type, else float64.
        """
        return self._rescaled(X, np.divide)

    def inverse_transform(self, X: Any) -> Any:
        """Multiply the columns by their scales.

        Parameters
        ----------
        X : CSR or CSC matrix, array or DataFrame of shape (rows, features)

        Returns
        -------
        CSR matrix or array of shape (rows, features)
            The type is float32 if X has that type, else float64.
        """
        return self._rescaled(X, np.multiply)

    def _learn(self, X: Any, reset: bool) -> Self:
        with all_or_nothing(self):
            self._add_rows(X, reset)
        return self

    def _add_rows(self, X: Any, reset: bool) -> None:
        min_count = _checked_min_count(self.min_count)
        X = self._validated(X, reset, copy=False)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        _refuse_infinite(X)
        if reset:
            self.n_samples_seen_ = 0
            self.nonzero_counts_ = np.zeros(X.shape[1], np.int64)
            self._exponents = np.full(X.shape[1], _UNSEEN, np.int32)
            self._sums = np.zeros(X.shape[1])
        else:  # changed in place below; the originals are restored after an error
            self.nonzero_counts_ = self.nonzero_counts_.copy()
            self._exponents, self._sums = self._exponents.copy(), self._sums.copy()
        self.n_samples_seen_ += X.shape[0]
        if sp.issparse(X):
            self._add(X.indices, X.data)
        else:
            step = max(1, _BLOCK // max(1, X.shape[1]))
            for start in range(0, X.shape[0], step):
                rows = sp.csr_matrix(X[start : start + step])
                self._add(rows.indices, rows.data)
        self.scale_ = self._scales(min_count)

    def _scales(self, min_count: int) -> NDArray[np.float64]:
        rows, counts = self.n_samples_seen_, self.nonzero_counts_
        raised = np.maximum(counts, min(min_count, rows))
        squares = self._sums / np.maximum(counts, 1) * raised / max(rows - 1, 1)
        with np.errstate(over="ignore"):
            scales = np.ldexp(np.sqrt(squares), self._exponents)
        floats = np.finfo(np.float64)  # dividing by less than tiny would lose digits
        return np.where(counts > 0, np.clip(scales, floats.tiny, floats.max), 1.0)

    def _add(self, columns: NDArray[Any], values: NDArray[Any]) -> None:
        """Add the squares of values to the sums of their columns, in the given order."""
        stored = values != 0
        columns, sizes = columns[stored], np.abs(values[stored]).astype(np.float64, copy=False)
        width = len(self._sums)
        touched: Any = slice(None)
        if len(columns) < width:  # few values of a wide matrix: update only their columns
            touched, columns = np.unique(columns, return_inverse=True)
            width = len(touched)
        largest = np.zeros(width)
        np.maximum.at(largest, columns, sizes)
        before = self._exponents[touched]
        after = np.maximum(before, np.where(largest > 0, np.frexp(largest)[1], _UNSEEN))
        sums = np.ldexp(self._sums[touched], 2 * (before - after))
        np.add.at(sums, columns, np.ldexp(sizes, -after[columns]) ** 2)
        self._sums[touched], self._exponents[touched] = sums, after
        self.nonzero_counts_[touched] += np.bincount(columns, minlength=width)

    def _rescaled(self, X: Any, operation: np.ufunc) -> Any:
        check_is_fitted(self, "scale_")
        X = self._validated(X, reset=False, copy=self.copy)
        _refuse_infinite(X, "is")
        values, factors = (X.data, self.scale_[X.indices]) if sp.issparse(X) else (X, self.scale_)
        verb = f"scaled, in {values.dtype}, becomes"
        with np.errstate(over="ignore"):
            if not self.copy:  # check the caller's values before changing them
                step = _BLOCK if sp.issparse(X) else max(1, _BLOCK // max(1, X.shape[1]))
                for start in range(0, len(values), step):
                    part = slice(start, start + step)
                    by = factors[part] if sp.issparse(X) else factors
                    scaled = np.empty_like(values[part])
                    operation(values[part], by, out=scaled, casting="same_kind")
                    _refuse_infinite(X, verb, scaled, start)
            operation(values, factors, out=values, casting="same_kind")
        if self.copy:
            _refuse_infinite(X, verb)
        return X

    def _validated(self, X: Any, reset: bool, copy: bool) -> Any:
        refuse_malformed(X)
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            copy=copy,
            force_writeable=not self.copy,
            ensure_all_finite=False,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _checked_min_count(min_count: Any) -> int:
    whole = isinstance(min_count, numbers.Integral) and not isinstance(min_count, bool)
    if not whole or min_count < 1:
        raise ParameterError(
            owner="UnitVarianceScaler",
            parameter="min_count",
            value=min_count,
            allowed="a whole number >= 1",
        )
    return int(min_count)


def _refuse_infinite(
    X: Any, verb: str = "is", values: NDArray[Any] | None = None, start: int = 0
) -> None:
    """Raise DataError for the first value that is NaN or infinite.

    If `values` is given, it is checked instead of the values of X: scaled values of a sparse X, or
    scaled rows of an array, from number `start` on.
    """
    if values is None:
        values = X.data if sp.issparse(X) else X
    finite = np.isfinite(values)
    if finite.all():
        return
    place = int(np.argmin(finite))
    if sp.issparse(X):
        at = start + place
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, X.indices[at]
    else:
        row, column = divmod(place, X.shape[1])
        row += start
    value = values.flat[place]
    name = "NaN" if np.isnan(value) else str(float(value))
    raise DataError(f"row {row}, column {column}: the value {verb} {name}; values must be finite")
