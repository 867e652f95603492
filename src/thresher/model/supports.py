"""Supports (sets of selected features), and their agreement: Cohen's kappa."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from thresher.errors import ParameterError
from thresher.model.model import Model

_BLOCK = 1024  # rows of the matrix of pairs at a time


def kappa(one: Any, other: Any, n_features: int) -> float:
    """Return Cohen's kappa of two supports: 1 if they are equal, about 0 if they are random.

    If one support has a of the p features, the other has b, and both have c in common, then ::

        kappa = 2 (p c - a b) / (p (a + b) - 2 a b)

    which is (qo - qe) / (1 - qe) with the observed and the expected agreement; the sums are exact.
    If both supports are empty, or both have all features, kappa is 1.

    Parameters
    ----------
    one, other : collection of int, boolean mask of shape (n_features,), or Model
        Selected features; duplicates count once. For a model, the features with a nonzero weight
        in any output.
    n_features : int
        Number of all features, p.

    Examples
    --------
    >>> from thresher.stability import kappa
    >>> round(kappa({1, 2, 3}, [2, 3, 4], n_features=100), 4)
    0.6564
    >>> kappa([], [], n_features=100)
    1.0
    """
    p = checked_n_features(n_features)
    first, second = feature_numbers(one, p, "one"), feature_numbers(other, p, "other")
    a, b = len(first), len(second)
    c = len(np.intersect1d(first, second, assume_unique=True))
    apart = p * (a + b) - 2 * a * b
    return 2 * (p * c - a * b) / apart if apart else 1.0


def stability_score(supports: Iterable[Any], n_features: int) -> float:
    """Return the mean of Cohen's kappa over all pairs of supports.

    Parameters
    ----------
    supports : iterable of at least two supports
        Each a collection of feature numbers, a boolean mask of shape (n_features,), or a Model.
    n_features : int
        Number of all features.

    Examples
    --------
    >>> from thresher.stability import stability_score
    >>> round(stability_score([[0, 1], [0, 1], [0, 2]], n_features=1000), 4)
    0.666
    """
    p = checked_n_features(n_features)
    if not isinstance(supports, Iterable):
        raise ParameterError(f"supports must have at least 2 supports; got {supports!r}")
    found = [feature_numbers(support, p, f"supports[{i}]") for i, support in enumerate(supports)]
    if len(found) < 2:
        raise ParameterError(f"supports must have at least 2 supports; got {len(found)}")
    number = np.int64 if p < 2**31 else object  # exact: products of counts are below 2 p^2
    sizes = np.array([len(support) for support in found], number)
    distinct, columns = np.unique(np.concatenate(found), return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])
    ones = np.ones(len(columns), np.int64)
    incidence = sp.csr_matrix((ones, columns, starts), shape=(len(found), len(distinct)))
    transposed = incidence.T.tocsr()
    total = 0.0
    for start in range(0, len(found), _BLOCK):
        block = slice(start, start + _BLOCK)
        c = (incidence[block] @ transposed).toarray().astype(number)
        a, b = sizes[block, None], sizes[None, :]
        apart = p * (a + b) - 2 * a * b
        agree = np.where(apart == 0, 1, 2 * (p * c - a * b))
        values = (agree / np.where(apart == 0, 1, apart)).astype(np.float64)
        total += math.fsum(values[np.triu_indices_from(values, start + 1)])
    return total / (len(found) * (len(found) - 1) / 2)


def checked_n_features(n_features: Any) -> int:
    """Check the number of features, and return it."""
    if not is_whole(n_features) or n_features < 1:
        raise ParameterError(
            parameter="n_features", value=n_features, allowed="a whole number >= 1"
        )
    return int(n_features)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def feature_numbers(support: Any, n_features: int, name: str) -> NDArray[np.int64]:
    """Return a support as sorted feature numbers without duplicates."""
    if isinstance(support, Model):
        if support.n_features != n_features:
            raise ParameterError(
                f"{name} is a model of {support.n_features} features; n_features is {n_features}"
            )
        support = support.indices
    if not hasattr(support, "dtype"):
        if not isinstance(support, Iterable):
            raise ParameterError(
                parameter=name, value=support, allowed="feature numbers, a boolean mask or a Model"
            )
        support = list(support)
    array = np.asarray(support)
    if array.ndim != 1:
        raise ParameterError(f"{name} must have one dimension; its shape is {array.shape}")
    if array.dtype == bool:
        if len(array) != n_features:
            raise ParameterError(
                f"{name} is a boolean mask and must have a length of n_features = {n_features}; "
                f"its length is {len(array)}"
            )
        return np.flatnonzero(array)
    if not len(array):
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise ParameterError(
            f"{name} must have whole numbers or be a boolean mask; it has {array.dtype}"
        )
    for value in (int(array.min()), int(array.max())):
        if not 0 <= value < n_features:
            raise ParameterError(
                f"{name} must have feature numbers in 0..{n_features - 1}; it has {value}"
            )
    return np.unique(array.astype(np.int64))
