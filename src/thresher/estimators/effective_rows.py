"""The number of rows on which the relation of a feature to the label depends."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class EffectiveRows:
    """Sums over rows that give the effective number of rows of each feature.

    For a feature with values x of mean m it is (sum (x - m)^2)^2 / sum (x - m)^4: about the number
    of rows that have it if all have the same value, fewer if some values are much larger than
    others, also if the column was centred. Unequal weights h of rows make it smaller, by the factor
    (sum h^2)^2 / (rows * sum h^4).

    Parameters
    ----------
    width : int
        Number of features.

    Examples
    --------
    >>> rows = EffectiveRows(2)
    >>> rows.add(np.array([[1.0, 1.0], [1.0, 9.0], *[[0.0, 0.0]] * 998]), None)
    >>> rows.numbers().round(1).tolist()
    [2.0, 1.0]
    """

    def __init__(self, width: int) -> None:
        self._sums = np.zeros((4, width))  # of x, x^2, x^3, x^4
        self._rows, self._h2, self._h4 = 0, 0.0, 0.0

    def add(self, X: Any, weights: NDArray[np.float64] | None) -> None:
        """Add rows; rows of weight 0 do not count."""
        if weights is None:
            weights = np.ones(X.shape[0])
        elif not weights.all():
            X, weights = X[weights > 0], weights[weights > 0]
        if sp.issparse(X) and not (X.format == "csr" and X.has_canonical_format):
            X = sp.csr_matrix(X, copy=True)
            X.sum_duplicates()
        with np.errstate(over="ignore", invalid="ignore"):
            added = [_power_sums(X, exponent) for exponent in (1, 2, 3, 4)]
            self._sums = self._sums + added
        self._rows += len(weights)
        self._h2 += float((weights**2).sum())
        self._h4 += float((weights**4).sum())

    def evenness(self) -> float:
        """Return the factor of the weights: 1 if all are equal."""
        return self._h2**2 / (self._rows * self._h4) if self._h4 > 0 else 1.0

    def numbers(self) -> NDArray[np.float64]:
        """Return the number of each feature; NaN if rounding does not allow to tell."""
        one, two, three, four = self._sums
        n = max(1, self._rows)
        with np.errstate(all="ignore"):
            mean = one / n
            squares = two - n * mean**2
            fourth = four - 4 * mean * three + 6 * mean**2 * two - 3 * n * mean**4
            found = squares**2 / fourth * self.evenness()
            found[~(fourth > 1e-12 * four)] = np.nan
        return np.clip(found, 1.0, n)


def _power_sums(X: Any, exponent: int) -> NDArray[np.float64]:
    """Return the sum over rows of each column to a power."""
    if sp.issparse(X):
        powers = X.data.astype(np.float64) ** exponent
        return np.bincount(X.indices, weights=powers, minlength=X.shape[1]).astype(np.float64)
    return np.asarray((np.asarray(X, np.float64) ** exponent).sum(axis=0))
