"""Counts of selected features by density, the share of rows that have a feature (R-15.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from thresher.errors import ParameterError
from thresher.model.supports import feature_numbers, is_whole
from thresher.sparse_checks import refuse_malformed


@dataclass(frozen=True, repr=False)
class DensityBins:
    """Numbers of features and of selected features, by density; see `selected_by_density`.

    Attributes
    ----------
    edges : array of shape (bins + 1,)
        Bin k holds features of density edges[k] <= d < edges[k + 1]; the last also d = edges[-1].
    features : array of int of shape (bins,)
        Number of features in each bin.
    selected : array of int of shape (bins,)
        Number of selected features in each bin.
    n_features : int
        Number of all features, in a bin or not.
    unseen : int
        Number of features that are zero in all rows; they are in the bin of density 0, if there is
        one.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.stability import DensityBins
    >>> bins = DensityBins(np.array([0.01, 0.1, 1.0]), np.array([90, 9]), np.array([3, 9]), 100, 1)
    >>> bins
             density   features    share   selected    share
        0.01 - 0.1           90   90.00%          3    3.33%
         0.1 - 1              9    9.00%          9  100.00%
    1 of 100 features in no row
    """

    edges: NDArray[np.float64]
    features: NDArray[np.int64]
    selected: NDArray[np.int64]
    n_features: int
    unseen: int

    @property
    def feature_share(self) -> NDArray[np.float64]:
        """Share of all features that are in each bin."""
        return np.asarray(self.features / self.n_features)

    @property
    def selected_share(self) -> NDArray[np.float64]:
        """Share of the features of each bin that are selected; NaN if the bin is empty."""
        share = np.full(len(self.features), np.nan)
        np.divide(self.selected, self.features, out=share, where=self.features > 0)
        return share

    def __repr__(self) -> str:
        """Return a table with one line per bin."""
        lines = [f"{'density':>16}   {'features':>8}    share   {'selected':>8}    share"]
        shares = zip(self.feature_share, self.selected_share, strict=True)
        for k, (of_all, chosen) in enumerate(shares):
            low, high = f"{self.edges[k]:.3g}", f"{self.edges[k + 1]:.3g}"
            percent = "-" if math.isnan(chosen) else f"{chosen:.2%}"
            lines.append(
                f"{low:>8} - {high:<8} {self.features[k]:>8,}  {of_all:>7.2%}   "
                f"{self.selected[k]:>8,}  {percent:>7}"
            )
        lines.append(f"{self.unseen:,} of {self.n_features:,} features in no row")
        return "\n".join(lines)


def selected_by_density(X: Any, support: Any, bins: int | ArrayLike = 10) -> DensityBins:
    """Count the selected features by density: the share of rows in which a feature is not zero.

    Truncation with equal shrinkage for all features selects dense features and drops rare ones,
    even informative ones: the selected share grows with density. For a rule that treats rare
    features fairly, the share is about the same in all bins.

    Parameters
    ----------
    X : sparse matrix or array of shape (rows, features)
        The training rows.
    support : collection of int, boolean mask of shape (features,), or Model
        Features selected.
    bins : int or increasing sequence of float, default=10
        Number of bins of equal width on a logarithmic scale, from the smallest density that occurs
        to the largest; or the edges of the bins. Densities of sparse data differ by orders of
        magnitude: on a linear scale, nearly all features would be in the first bin.

    Returns
    -------
    DensityBins

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from thresher.stability import selected_by_density
    >>> X = sp.csr_matrix([[1, 0, 0, 2], [1, 0, 0, 0], [1, 3, 0, 0], [1, 0, 0, 0]])
    >>> bins = selected_by_density(X, [0], bins=2)
    >>> bins.features.tolist(), bins.selected.tolist(), bins.unseen
    ([2, 1], [0, 1], 1)
    """
    X = X if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or not (X.shape[0] and X.shape[1]):
        raise ParameterError(f"X must have rows and columns; its shape is {X.shape}")
    n_rows, n_features = X.shape
    chosen = feature_numbers(support, n_features, "support")
    columns, counts = column_counts(X)
    density = counts / n_rows
    edges = _edges(bins, density)
    places = np.minimum(np.searchsorted(columns, chosen), max(len(columns) - 1, 0))
    seen = columns[places] == chosen if len(columns) else np.zeros(len(chosen), bool)
    features, selected = _histogram(density, edges), _histogram(density[places[seen]], edges)
    unseen = n_features - len(columns)
    if edges[0] == 0:
        features[0] += unseen
        selected[0] += len(chosen) - int(seen.sum())
    return DensityBins(edges, features, selected, n_features, unseen)


def column_counts(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns that are not all zero, and their numbers of nonzeros."""
    if not sp.issparse(X):
        counts = np.count_nonzero(X, axis=0)
        return np.flatnonzero(counts), counts[counts > 0]
    refuse_malformed(X)
    X = X if X.format in ("csr", "csc") else X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    columns = X.indices
    if X.format == "csc":
        columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    columns = columns[X.data != 0].astype(np.int64, copy=False)
    if len(columns) < X.shape[1]:
        return np.unique(columns, return_counts=True)
    counts = np.bincount(columns, minlength=X.shape[1])
    return np.flatnonzero(counts), counts[counts > 0]


def _edges(bins: Any, density: NDArray[np.float64]) -> NDArray[np.float64]:
    if np.ndim(bins) == 0:
        if not is_whole(bins) or bins < 1:
            raise ParameterError(
                parameter="bins", value=bins, allowed="a whole number >= 1, or edges"
            )
        low, high = (density.min(), density.max()) if len(density) else (0.0, 1.0)
        if low == high or not len(density):
            return np.array([low, high])
        edges = np.geomspace(low, high, int(bins) + 1)
        edges[0], edges[-1] = low, high
        return edges
    edges = np.array(bins, np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] < 0:
        raise ParameterError(
            parameter="bins", value=bins, allowed="at least 2 increasing edges >= 0"
        )
    return edges


def _histogram(density: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    places = np.searchsorted(edges, density, side="right") - 1
    places[density == edges[-1]] = len(edges) - 2
    inside = (places >= 0) & (places < len(edges) - 1)
    return np.bincount(places[inside], minlength=len(edges) - 1)
