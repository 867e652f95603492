"""The check of columns that go along with a selected column.

If two columns are strongly correlated, a model learns a part of the effect of one for the other.
Redraws do not show this, so far more of the selected features than stated may be false.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.arrays import is_sparse, nonzeros
from thresher.data.matrix_source import MatrixSource
from thresher.discovery.row_checks import Check

_NAME = "correlated columns"
_STRONG = 0.8  # absolute correlation of columns that are hard to tell apart
_SHARE = 0.1  # of the selected features, with a strong correlation
_WIDEST = 2000  # columns that are compared
_WORK = 10**11  # products at most
_PART = 1 << 22  # values that are centred at a time


def correlated_columns(
    source: MatrixSource | None, selected: ArrayLike, groups: Any = None
) -> Check:
    """Return the check of correlations of selected columns with all other columns.

    Parameters
    ----------
    source : MatrixSource or None
        The rows; None: they are not in memory.
    selected : array of int
        Selected columns.
    groups : array of shape (columns,), optional
        Groups of columns; columns of the same group are not compared.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.data.matrix_source import MatrixSource
    >>> from thresher.discovery.correlated import correlated_columns
    >>> a, b, c = np.random.default_rng(0).normal(size=(3, 500))
    >>> rows = MatrixSource(np.stack([a, b, c, b + 0.2 * c], axis=1), a > 0)
    >>> correlated_columns(rows, [0]).fine
    True
    >>> check = correlated_columns(rows, [0, 1])
    >>> check.fine, check.value
    (False, 0.5)
    """
    at = np.asarray(selected, np.intp)
    if source is None:
        return _not_checked("the rows are not in memory")
    if source.width() > _WIDEST:
        return _not_checked(f"there are more than {_WIDEST:,} columns")
    if not len(at):
        return Check(_NAME, 0.0, True, "no feature is selected")
    X, weights = source.block.X, source.block.weights
    if weights is not None and not (weights > 0).all():
        X = X[weights > 0]
    if nonzeros(X) * len(at) > _WORK:
        return _not_checked("there are too many rows and columns")
    size = np.abs(correlations(X, at))
    size[np.arange(len(at)), at] = 0.0
    if groups is not None:
        labels = np.asarray(groups)
        size[labels[at][:, None] == labels] = 0.0
    strong = size.max(axis=1) > _STRONG
    share = float(strong.mean())
    message = (
        f"{strong.sum():,} of {len(at):,} selected features have a correlation above {_STRONG} "
        f"with another column"
    )
    if share <= _SHARE:
        return Check(_NAME, share, True, message)
    one, other = np.unravel_index(int(size.argmax()), size.shape)
    message += (
        f" (for example columns {at[one]} and {other}: {size[one, other]:.2f}). Far more of the "
        f"selected features than stated may be false; for a few dozen such columns, ordinary "
        f"regression or knockoffs are better, or drop columns, or select groups of columns "
        f"(feature_groups)"
    )
    return Check(_NAME, share, False, message)


def _not_checked(why: str) -> Check:
    return Check(_NAME, np.nan, True, why, checked=False)


def correlations(X: Any, at: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the correlations of some columns with all columns; 0 with a constant column.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, columns)
    at : array of int
        The columns.
    """
    rows, width = X.shape
    if is_sparse(X):
        X = X.astype(np.float64)
        mean = np.asarray(X.sum(axis=0)).ravel() / rows
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
        products = np.asarray((X[:, at].T @ X).todense()) - rows * np.outer(mean[at], mean)
        spread = squares - rows * mean**2
    else:
        mean = X.mean(axis=0, dtype=np.float64)
        squares, products, spread = np.zeros(width), np.zeros((len(at), width)), np.zeros(width)
        step = max(1, _PART // max(width, 1))
        for first in range(0, rows, step):
            part = X[first : first + step].astype(np.float64)
            squares += (part * part).sum(axis=0)
            part -= mean
            products += part[:, at].T @ part
            spread += (part * part).sum(axis=0)
    constant = spread <= 1e-10 * squares
    sd = np.sqrt(np.where(constant, 1.0, spread))
    found = products / np.outer(sd[at], sd)
    found[:, constant] = 0.0
    found[constant[at]] = 0.0
    return np.asarray(found)
