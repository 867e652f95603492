"""How stable a selection of features is, and selection of features that are stable.

Supports are sets of features: collections of their numbers, or boolean masks. Nothing here makes a
dense matrix, and index input is never turned into masks.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.errors import ParameterError
from thresher.model import Model

__all__ = [
    "Bound",
    "DensityBins",
    "FeatureProbability",
    "PairsDone",
    "StabilitySelection",
    "false_selections_bound",
    "kappa",
    "selected_by_density",
    "stability_score",
]

# ---- supports ---------------------------------------------------------------------------------


def kappa(one: Any, other: Any, n_features: int) -> float:
    """Return Cohen's kappa of two supports: 1 if they are equal, about 0 if they are random.

    Of p features, one support holds a, the other b, and both hold c. Then ::

        kappa = 2 (p c - a b) / (p (a + b) - 2 a b)

    which is (qo - qe) / (1 - qe) with the observed and the expected agreement; the sums are exact.
    Two supports that are both empty or both full agree: kappa is 1.

    Parameters
    ----------
    one, other : collection of int, or boolean mask of shape (n_features,)
        Features selected; one given more than once counts once.
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
    p = _checked_n_features(n_features)
    first, second = _indices(one, p, "one"), _indices(other, p, "other")
    a, b = len(first), len(second)
    c = len(np.intersect1d(first, second, assume_unique=True))
    apart = p * (a + b) - 2 * a * b
    return 2 * (p * c - a * b) / apart if apart else 1.0


def stability_score(supports: Iterable[Any], n_features: int) -> float:
    """Return the mean of Cohen's kappa over all pairs of supports.

    Parameters
    ----------
    supports : iterable of at least two supports
        Each a collection of feature numbers or a boolean mask of shape (n_features,), for example
        ``[model.indices for model in models]``.
    n_features : int
        Number of all features.

    Examples
    --------
    >>> from thresher.stability import stability_score
    >>> round(stability_score([[0, 1], [0, 1], [0, 2]], n_features=1000), 4)
    0.666
    """
    p = _checked_n_features(n_features)
    found = [_indices(support, p, f"supports[{i}]") for i, support in enumerate(supports)]
    if len(found) < 2:
        raise ParameterError(f"supports must hold at least 2 supports; got {len(found)}")
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


_BLOCK = 1024  # rows of the matrix of pairs at a time


def _checked_n_features(n_features: Any) -> int:
    if not _is_whole(n_features) or n_features < 1:
        raise ParameterError(f"n_features must be a whole number >= 1; got {n_features!r}")
    return int(n_features)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _indices(support: Any, n_features: int, name: str) -> NDArray[np.int64]:
    """Return a support as sorted numbers of features, each once."""
    array = np.asarray(support if hasattr(support, "dtype") else list(support))
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
            f"{name} must hold whole numbers or be a boolean mask; it holds {array.dtype}"
        )
    for value in (int(array.min()), int(array.max())):
        if not 0 <= value < n_features:
            raise ParameterError(
                f"{name} must hold feature numbers in 0..{n_features - 1}; it holds {value}"
            )
    return np.unique(array.astype(np.int64))


# ---- selection by density ---------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class DensityBins:
    """How many features of which density are selected; `selected_by_density` makes it.

    Attributes
    ----------
    edges : array of shape (bins + 1,)
        Bin k holds features of density edges[k] <= d < edges[k + 1]; the last also d = edges[-1].
    features : array of int of shape (bins,)
        Features in the bins.
    selected : array of int of shape (bins,)
        Those of them that are selected.
    n_features : int
        All features, in a bin or not.
    unseen : int
        Features that are zero in all rows; in the bin of density 0, if there is one.

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
        """Share of all features that are in the bin."""
        return np.asarray(self.features / self.n_features)

    @property
    def selected_share(self) -> NDArray[np.float64]:
        """Share of the features in the bin that are selected; NaN where the bin is empty."""
        share = np.full(len(self.features), np.nan)
        np.divide(self.selected, self.features, out=share, where=self.features > 0)
        return share

    def __repr__(self) -> str:
        """Return a table, one line a bin."""
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

    Truncation that treats all features alike selects dense ones and drops rare ones, however
    informative: the share selected grows with density. A rule that is fair to rare features shows
    about the same share in all bins.

    Parameters
    ----------
    X : sparse matrix or array of shape (rows, features)
        The training rows.
    support : collection of int, or boolean mask of shape (features,)
        Features selected.
    bins : int or increasing sequence of float, default=10
        Number of bins, of equal width on a logarithmic scale from the smallest density that occurs
        to the largest; or the edges of the bins. Densities of sparse data lie orders of magnitude
        apart: bins of equal width would hold nearly all features in the first.

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
    chosen = _indices(support, n_features, "support")
    columns, counts = _column_counts(X)
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


def _column_counts(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns that are not all zero, and their numbers of nonzeros."""
    if not sp.issparse(X):
        counts = np.count_nonzero(X, axis=0)
        return np.flatnonzero(counts), counts[counts > 0]
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
        if not _is_whole(bins) or bins < 1:
            raise ParameterError(f"bins must be a whole number >= 1, or edges; got {bins!r}")
        low, high = (density.min(), density.max()) if len(density) else (0.0, 1.0)
        if low == high or not len(density):
            return np.array([low, high])
        edges = np.geomspace(low, high, int(bins) + 1)
        edges[0], edges[-1] = low, high
        return edges
    edges = np.array(bins, np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] < 0:
        raise ParameterError(f"bins must be at least 2 increasing edges >= 0; got {bins!r}")
    return edges


def _histogram(density: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    places = np.searchsorted(edges, density, side="right") - 1
    places[density == edges[-1]] = len(edges) - 2
    inside = (places >= 0) & (places < len(edges) - 1)
    return np.bincount(places[inside], minlength=len(edges) - 1)


# ---- bounds on false selections ---------------------------------------------------------------

_NOTHING = (
    "none, for features selected with a probability of at most q/p by a fit on half of the rows "
    "(Shah and Samworth 2013, Theorem 1); for all noise features, that these are exchangeable and "
    "that selection is no worse than guessing (Meinshausen and Buehlmann 2010, Theorem 1); q is "
    "the mean number of features selected, estimated from the same fits"
)
_UNIMODAL = (
    "for features selected with a probability of at most q/p by a fit on half of the rows, that "
    "the share of pairs that select them in both halves has a unimodal distribution (Shah and "
    "Samworth 2013, Theorem 2); q is the mean number of features selected, estimated from the "
    "same fits"
)


@dataclass(frozen=True)
class Bound:
    """A bound on the expected number of features selected falsely.

    Attributes
    ----------
    number : float or None
        The bound; None where there is none.
    assumptions : str
        What it rests on.
    reason : str or None
        Why there is no bound.

    Examples
    --------
    >>> from thresher.stability import Bound
    >>> print(Bound(2.5, "none"))
    at most 2.5 false selections are expected; assumptions: none
    """

    number: float | None
    assumptions: str
    reason: str | None = None

    def __str__(self) -> str:
        """Say it in words."""
        if self.number is None:
            return f"not available, because {self.reason}"
        return (
            f"at most {self.number:.3g} false selections are expected; "
            f"assumptions: {self.assumptions}"
        )


def false_selections_bound(
    n_selected: float,
    n_features: int,
    *,
    threshold: float = 0.6,
    pairs: int = 50,
    unimodal: bool = False,
) -> Bound:
    """Bound the expected number of features that stability selection selects falsely.

    With q features selected by a fit on half of the rows on average, p features in all, B
    complementary pairs, and features selected in a share of at least tau > 1/2 of the 2 B fits,
    the bound is C q^2 / p, where ::

        C = 1 / (2 tau - 1)                         in general
        C = 1 / (2 (2 tau - 1 - 1/(2B)))            if unimodal and tau <= 3/4
        C = 4 (1 - tau + 1/(2B)) / (1 + 1/B)        if unimodal and tau > 3/4

    The unimodal bound needs q/p <= 1/sqrt(3), tau >= 1/2 + 1/B and tau > 1/2 +
    min((q/p)^2, 1/(2B) + 3/4 (q/p)^2).

    Parameters
    ----------
    n_selected : float
        Mean number of features selected by a fit, q; with a grid of parameters, by the fits of
        all its values together.
    n_features : int
        Number of features that could be selected, p; leave out columns that are always zero.
    threshold : float, default=0.6
        Share of fits that must select a feature. Shares are multiples of 1/(2B), so tau is the
        smallest such multiple that is not below the threshold.
    pairs : int, default=50
        Number of complementary pairs, B.
    unimodal : bool, default=False
        Assume that the share of pairs that select a feature in both halves has a unimodal
        distribution.

    References
    ----------
    Meinshausen and Buehlmann, Stability selection, JRSS B 72, 2010.
    Shah and Samworth, Variable selection with error control: another look at stability selection,
    JRSS B 75, 2013.

    Examples
    --------
    >>> from thresher.stability import false_selections_bound
    >>> round(false_selections_bound(20, 1000, threshold=0.6).number, 3)
    2.0
    >>> round(false_selections_bound(20, 1000, threshold=0.9, unimodal=True).number, 3)
    0.173
    >>> false_selections_bound(20, 1000, threshold=0.5).reason
    'the threshold must be above 1/2'
    """
    p = _checked_n_features(n_features)
    _check_threshold(threshold, "threshold")
    _check_pairs(pairs, "pairs")
    if not 0 <= n_selected <= p:
        raise ParameterError(f"n_selected must be in 0..n_features = {p}; got {n_selected!r}")
    q, theta = float(n_selected), n_selected / p
    needed = _fits_needed(threshold, pairs)  # tau = needed / 2B
    assumptions = _UNIMODAL if unimodal else _NOTHING
    if needed <= pairs:
        return Bound(None, assumptions, "the threshold must be above 1/2")
    if not unimodal:
        return Bound(q * theta * pairs / (needed - pairs), assumptions)
    if theta > 1 / math.sqrt(3):
        return Bound(
            None, assumptions, f"q/p = {theta:.3g} is above 1/sqrt(3): fits select too many"
        )
    tau = needed / (2 * pairs)
    least = 0.5 + min(theta**2, 1 / (2 * pairs) + 0.75 * theta**2)
    if needed < pairs + 2 or (tau <= 0.75 and tau <= least):
        reason = (
            f"with {pairs} pairs and q/p = {theta:.3g} the threshold must be at least "
            f"{0.5 + 1 / pairs:.4g} and above {least:.4g}; it is {tau:.4g}"
        )
        return Bound(None, assumptions, reason)
    if tau <= 0.75:
        return Bound(q * theta * pairs / (2 * (needed - pairs) - 1), assumptions)
    return Bound(q * theta * 2 * (2 * pairs - needed + 1) / (pairs + 1), assumptions)


def _fits_needed(threshold: float, pairs: int) -> int:
    """Return the fewest fits, of 2 a pair, whose share is at least the threshold."""
    fits = round(threshold * 2 * pairs)
    return fits + 1 if fits / (2 * pairs) < threshold else fits


def _check_threshold(threshold: Any, name: str) -> None:
    real = isinstance(threshold, numbers.Real) and not isinstance(threshold, bool)
    if not real or not 0 < threshold <= 1:
        raise ParameterError(f"{name} must be a number in (0, 1]; got {threshold!r}")


def _check_pairs(pairs: Any, name: str) -> None:
    if not _is_whole(pairs) or pairs < 1:
        raise ParameterError(f"{name} must be a whole number >= 1; got {pairs!r}")


# ---- stability selection ----------------------------------------------------------------------


class PairsDone(NamedTuple):
    """How far stability selection is; what `StabilitySelection.callback` is given.

    Attributes
    ----------
    done : int
        Pairs fitted so far.
    pairs : int
        Pairs to fit.
    n_selected_mean : float
        Mean number of features selected by the fits so far.
    """

    done: int
    pairs: int
    n_selected_mean: float


class FeatureProbability(NamedTuple):
    """A feature and the share of fits that select it."""

    name: str | int
    probability: float


def _refitted(method: str) -> Callable[[StabilitySelection], bool]:
    """Tell whether the refitted estimator has a method."""

    def check(self: StabilitySelection) -> bool:
        if not self.refit:
            raise AttributeError(f"{method} needs refit=True")
        getattr(self.estimator, method)  # an AttributeError says what is missing
        return True

    return check


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Select the features that an estimator selects again and again, on random halves of the rows.

    The rows are split into two random halves `pairs` times, and the estimator is fitted on both.
    The share of these fits that give a feature a weight other than zero is its selection
    probability; features that reach `threshold` are selected. How many of them can be expected to
    be false is bounded whatever the estimator does (complementary pairs; Shah and Samworth 2013).

    With `param_name`, every half is fitted with each of `param_values`; a feature's probability is
    the largest over the values (Meinshausen and Buehlmann 2010).

    Parameters
    ----------
    estimator : estimator
        Any with a `coef_` that can be exactly zero, or a Pipeline that ends in one and keeps the
        columns; of others, `support_of` tells the support. It is cloned, never fitted itself. Where
        its random_state is None, it gets seeds that follow from `random_state`.
    param_name : str, optional
        Name of the parameter of the estimator to vary, such as "l1" or "ftrlclassifier__l1".
    param_values : sequence, optional
        Its values.
    pairs : int, default=50
        Number of complementary pairs of halves, B; there are 2 B fits for each value.
    threshold : float, default=0.6
        Share of fits that must select a feature, in (0, 1]. There are bounds above 1/2.
    support_of : callable, optional
        Takes a fitted estimator, returns its support: feature numbers or a boolean mask.
    stratify : bool, default=True
        Give both halves the same number of rows of each class, to within one row, where the
        estimator is a classifier.
    refit : bool, default=True
        Fit the estimator, with its own parameters, on all rows and the selected columns; needed by
        `predict` and `score`.
    n_jobs : int, optional
        Pairs to fit at a time, in threads; -1 is one a processor. Results do not depend on it.
    random_state : int, RandomState or None, default=None
    callback : callable, optional
        Called with a `PairsDone` after each pair, in order; a true answer ends the selection, with
        the pairs done so far.

    Attributes
    ----------
    selection_probabilities_ : CSR matrix of shape (values, features)
        Share of the fits that select a feature, for each value of the parameter; one row if none is
        varied. Features that no fit selects take no memory.
    selected_ : array of int
        Features selected, increasing; `get_support()` is the mask.
    n_selected_mean_ : float
        Mean number of features a fit selects, q; with several values, all of a half together.
    n_candidates_ : int
        Features that can be selected, p: columns that are not zero in all rows. Columns that never
        occur, of hashed features say, would make the bounds look better than they are.
    false_selections_bound_ : Bound
        Bound on the expected number of false selections, q^2 / ((2 threshold - 1) p).
    unimodal_bound_ : Bound
        A sharper bound under one more assumption; see `false_selections_bound`.
    n_pairs_ : int
        Pairs fitted.
    estimator_ : estimator
        Fitted on the selected columns, where `refit` is true and any are selected.
    classes_ : array
        Labels, of a classifier.
    n_features_in_ : int
    feature_names_in_ : array
        Where X has named columns.

    References
    ----------
    Meinshausen and Buehlmann, Stability selection, JRSS B 72, 2010.
    Shah and Samworth, Variable selection with error control: another look at stability selection,
    JRSS B 75, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLClassifier
    >>> from thresher.stability import StabilitySelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 100))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=500) > 0
    >>> estimator = FTRLClassifier(l1=100.0, passes=5)
    >>> selector = StabilitySelection(estimator, pairs=10, random_state=0).fit(X, y)
    >>> selector.selected_.tolist()
    [3, 7]
    >>> round(selector.false_selections_bound_.number, 2)
    0.23
    >>> selector.transform(X).shape
    (500, 2)
    >>> selector.top(1)[0].probability
    1.0
    """

    # what fit leaves behind
    selection_probabilities_: Any
    selected_: NDArray[np.int64]
    n_selected_mean_: float
    n_candidates_: int
    false_selections_bound_: Bound
    unimodal_bound_: Bound
    n_pairs_: int
    estimator_: Any
    classes_: NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        estimator: Any,
        *,
        param_name: str | None = None,
        param_values: Sequence[Any] | None = None,
        pairs: int = 50,
        threshold: float = 0.6,
        support_of: Callable[[Any], Any] | None = None,
        stratify: bool = True,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[PairsDone], Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_name = param_name
        self.param_values = param_values
        self.pairs = pairs
        self.threshold = threshold
        self.support_of = support_of
        self.stratify = stratify
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    # ---- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator on all halves and select.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)

        Returns
        -------
        self
        """
        settings = self._checked_settings()
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            accept_large_sparse=True,
            ensure_min_samples=2,
            ensure_all_finite=not get_tags(self).input_tags.allow_nan,
        )
        strata = np.zeros(len(y), np.int64)
        if is_classifier(self.estimator):
            strata = self._checked_classes(y)
        seeds = self._seeds()
        tallies = [_Tally() for _ in settings]
        sizes: list[int] = []  # features selected in each half, by any value
        for halves in self._supports(X, y, strata, settings, seeds[:-1]):
            for supports in halves:
                for tally, support in zip(tallies, supports, strict=True):
                    tally.add(support)
                sizes.append(len(np.unique(np.concatenate(supports))))
            done = PairsDone(len(sizes) // 2, self.pairs, float(np.mean(sizes)))
            if self.callback is not None and self.callback(done):
                break
        self.n_pairs_ = len(sizes) // 2
        self.n_selected_mean_ = float(np.mean(sizes))
        self._select(tallies, _column_counts(X)[0])
        if hasattr(self, "estimator_"):
            del self.estimator_
        if self.refit and len(self.selected_):
            self.estimator_ = _seeded(clone(self.estimator), seeds[-1])
            self.estimator_.fit(_columns(X, self.selected_), y)
        return self

    def _select(self, tallies: Sequence[_Tally], seen: NDArray[np.int64]) -> None:
        """Turn the counts of the fits into probabilities, a selection and bounds."""
        fits = 2 * self.n_pairs_
        starts = np.cumsum([0] + [len(tally.features) for tally in tallies])
        features = np.concatenate([tally.features for tally in tallies])
        counts = np.concatenate([tally.counts for tally in tallies])
        self.selection_probabilities_ = sp.csr_matrix(
            (counts / fits, features, starts), shape=(len(tallies), self.n_features_in_)
        )
        needed = _fits_needed(self.threshold, self.n_pairs_)
        self.selected_ = np.unique(features[counts >= needed])
        self.n_candidates_ = len(np.union1d(seen, features))
        self.false_selections_bound_, self.unimodal_bound_ = (
            false_selections_bound(
                self.n_selected_mean_,
                self.n_candidates_,
                threshold=self.threshold,
                pairs=self.n_pairs_,
                unimodal=unimodal,
            )
            for unimodal in (False, True)
        )

    def _supports(
        self,
        X: Any,
        y: NDArray[Any],
        strata: NDArray[np.int64],
        settings: Sequence[dict[str, Any]],
        seeds: Sequence[int],
    ) -> Iterable[list[list[NDArray[np.int64]]]]:
        """Yield the supports of each pair, by half and by value, in the order of the pairs."""
        jobs = max(1, effective_n_jobs(self.n_jobs))
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            for start in range(0, len(seeds), jobs):
                yield from parallel(
                    delayed(_fit_pair)(
                        self.estimator, X, y, strata, settings, self.support_of, seed
                    )
                    for seed in seeds[start : start + jobs]
                )

    def _checked_settings(self) -> list[dict[str, Any]]:
        """Check all parameters; return what to set in the estimator for each value."""
        _check_pairs(self.pairs, "StabilitySelection: pairs")
        _check_threshold(self.threshold, "StabilitySelection: threshold")
        if (self.param_name is None) != (self.param_values is None):
            raise ParameterError(
                "StabilitySelection: param_name and param_values must be given together"
            )
        if self.support_of is not None and not callable(self.support_of):
            raise ParameterError(
                f"StabilitySelection: support_of must be callable or None; got {self.support_of!r}"
            )
        if self.param_name is None or self.param_values is None:
            return [{}]
        names = sorted(self.estimator.get_params(deep=True))
        if self.param_name not in names:
            raise ParameterError(
                f"StabilitySelection: param_name must be a parameter of the estimator, one of "
                f"{', '.join(names)}; got {self.param_name!r}"
            )
        settings = [{self.param_name: value} for value in self.param_values]
        if not settings:
            raise ParameterError("StabilitySelection: param_values must hold at least one value")
        return settings

    def _checked_classes(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Keep the labels; return the number of each row's class, or 0 if it does not matter."""
        if y.dtype.kind not in "iubUS":  # whole numbers and words are labels
            check_classification_targets(y)
        self.classes_, numbers_of, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(counts) < 2:
            raise ValueError(
                f"StabilitySelection needs rows of at least 2 classes; y has one class, "
                f"{self.classes_.tolist()[0]!r}"
            )
        if not self.stratify:
            return np.zeros(len(y), np.int64)
        if counts.min() < 2:
            label = self.classes_[counts.argmin()].item()
            raise ValueError(
                f"StabilitySelection needs at least 2 rows of each class, one for each half; class "
                f"{label!r} has 1"
            )
        return np.asarray(numbers_of)

    def _seeds(self) -> list[int]:
        """Return a seed for each pair, and one for the refit."""
        try:
            random = check_random_state(self.random_state)
        except ValueError as error:
            raise ParameterError(f"StabilitySelection: random_state: {error}") from error
        return [int(seed) for seed in random.randint(2**31 - 1, size=self.pairs + 1)]

    # ---- answers -------------------------------------------------------------------------------

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Return the features selected.

        Parameters
        ----------
        indices : bool, default=False
            Their numbers, instead of a mask of all features.
        """
        check_is_fitted(self, "selected_")
        return self.selected_.copy() if indices else self._get_support_mask()

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "selected_")
        mask = np.zeros(self.n_features_in_, bool)
        mask[self.selected_] = True
        return mask

    def _transform(self, X: Any) -> Any:
        if sp.issparse(X) and len(self.selected_):
            return _columns(X, self.selected_)
        return super()._transform(X)

    def top(self, n: int = 20) -> list[FeatureProbability]:
        """Return the n features most often selected, by any value of the parameter.

        Parameters
        ----------
        n : int, default=20

        Returns
        -------
        list of FeatureProbability
            The most probable first; with equal probabilities, the lower feature number.
        """
        check_is_fitted(self, "selected_")
        if not _is_whole(n) or n < 0:
            raise ParameterError(f"n must be a whole number >= 0; got {n!r}")
        best = self.selection_probabilities_.tocoo()
        order = np.lexsort((best.col, -best.data))
        _, first = np.unique(best.col[order], return_index=True)
        names = getattr(self, "feature_names_in_", None)
        return [
            FeatureProbability(
                int(best.col[i]) if names is None else str(names[best.col[i]]),
                float(best.data[i]),
            )
            for i in order[np.sort(first)[:n]]
        ]

    def _answer(self, method: str, X: Any, *more: Any) -> Any:
        """Ask the refitted estimator, about the selected columns."""
        check_is_fitted(self, "selected_")
        if not len(self.selected_):
            raise ValueError(
                f"no feature was selected, so there is nothing to predict with: none has a "
                f"selection probability of threshold = {self.threshold}; a fit selects "
                f"{self.n_selected_mean_:.3g} features on average"
            )
        check_is_fitted(self, "estimator_")
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            accept_large_sparse=True,
            ensure_all_finite=not get_tags(self).input_tags.allow_nan,
        )
        return getattr(self.estimator_, method)(_columns(X, self.selected_), *more)

    @available_if(_refitted("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[Any]:
        """Return predictions of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("predict", X))

    @available_if(_refitted("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return scores of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("decision_function", X))

    @available_if(_refitted("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities by the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("predict_proba", X))

    @available_if(_refitted("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return logarithms of `predict_proba`.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        """
        return np.asarray(self._answer("predict_log_proba", X))

    @available_if(_refitted("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any) -> float:
        """Return the score of the estimator fitted on the selected columns.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
            All features; the selected ones are taken from it.
        y : array of shape (rows,)
        """
        return float(self._answer("score", X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.target_tags.required = True
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if self.refit:
            tags.estimator_type = inner.estimator_type
            tags.classifier_tags = deepcopy(inner.classifier_tags)
            tags.regressor_tags = deepcopy(inner.regressor_tags)
        return tags


class _Tally:
    """Counts of the features ever selected."""

    def __init__(self) -> None:
        self.features = np.zeros(0, np.int64)
        self.counts = np.zeros(0, np.int64)

    def add(self, support: NDArray[np.int64]) -> None:
        """Count one for each feature of a support."""
        features = np.union1d(self.features, support)
        counts = np.zeros(len(features), np.int64)
        counts[np.searchsorted(features, self.features)] = self.counts
        counts[np.searchsorted(features, support)] += 1
        self.features, self.counts = features, counts


def _fit_pair(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    strata: NDArray[np.int64],
    settings: Sequence[dict[str, Any]],
    support_of: Callable[[Any], Any] | None,
    seed: int,
) -> list[list[NDArray[np.int64]]]:
    """Fit the estimator on two complementary halves; return the supports by half and setting."""
    rng = np.random.default_rng(seed)
    halves = []
    for rows in _halves(strata, rng):
        half_X, half_y, half_seed = X[rows], y[rows], int(rng.integers(2**31 - 1))
        supports = []
        for setting in settings:
            fitted = _seeded(clone(estimator).set_params(**setting), half_seed)
            fitted.fit(half_X, half_y)
            supports.append(_support(fitted, X.shape[1], support_of))
        halves.append(supports)
    return halves


def _halves(
    strata: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows at random into two halves of equal size, those of each stratum to within one.

    Rows keep their order. Of an odd number of rows, one is left out.
    """
    turns = rng.permutation(int(strata.max()) + 1)  # the stratum that comes last may lose a row
    order = np.lexsort((rng.permutation(len(strata)), turns[strata]))
    order = order[: len(order) // 2 * 2]
    first, second = np.sort(order[::2]), np.sort(order[1::2])
    return (first, second) if rng.integers(2) else (second, first)


def _columns(X: Any, selected: NDArray[np.int64]) -> Any:
    """Return some columns of an array or CSR matrix, without looking at the others."""
    if not sp.issparse(X):
        return X[:, selected]
    places = np.minimum(np.searchsorted(selected, X.indices), len(selected) - 1)
    kept = selected[places] == X.indices
    starts = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    parts = (X.data[kept], places[kept].astype(X.indices.dtype), starts.astype(X.indptr.dtype))
    return type(X)(parts, shape=(X.shape[0], len(selected)))


def _seeded(estimator: Any, seed: int) -> Any:
    """Give the estimator a seed wherever its random_state is None."""
    random = np.random.default_rng(seed)
    for name, value in sorted(estimator.get_params(deep=True).items(), key=lambda item: item[0]):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            estimator.set_params(**{name: int(random.integers(2**31 - 1))})
    return estimator


def _support(
    fitted: Any, n_features: int, support_of: Callable[[Any], Any] | None
) -> NDArray[np.int64]:
    """Return the features a fitted estimator selects."""
    if support_of is not None:
        return _indices(support_of(fitted), n_features, "StabilitySelection: support_of(estimator)")
    if isinstance(fitted, Pipeline):
        fitted = fitted[-1]
    model = getattr(fitted, "model_", None)
    if isinstance(model, Model):
        width, support = model.n_features, np.unique(model.indices.astype(np.int64))
    else:
        coef = getattr(fitted, "coef_", None)
        if coef is None:
            raise ParameterError(
                f"StabilitySelection: estimator must have coef_ once it is fitted, and "
                f"{type(fitted).__name__} has none; support_of can tell its support"
            )
        coef = coef.tocoo() if sp.issparse(coef) else np.atleast_2d(coef)
        width = coef.shape[-1]
        support = np.unique(coef.nonzero()[-1]).astype(np.int64)
    if width != n_features:
        raise ParameterError(
            f"StabilitySelection: {type(fitted).__name__} has weights for {width} features, and X "
            f"has {n_features} columns; support_of can tell which columns they mean"
        )
    return support
