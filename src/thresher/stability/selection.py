"""Stability selection by complementary pairs of halves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from thresher.atomic import all_or_nothing
from thresher.errors import ParameterError
from thresher.model.density import column_counts
from thresher.progress.verbose import StatusLine
from thresher.sparse_checks import refuse_malformed
from thresher.stability.halves import SelectionCounts, columns_of, count_supports, fit_pair, seeded
from thresher.stability.lane_fits import checked_lanes
from thresher.stability.refitted import RefitMixin
from thresher.stability.selected import PairSelector
from thresher.stability.strata import classes_and_strata
from thresher.stability.streaming import StreamingStabilitySelection
from thresher.threads import jobs_of


class PairsDone(NamedTuple):
    """Progress of stability selection, for `StabilitySelection.callback`.

    Attributes
    ----------
    done : int
        Number of pairs fitted so far.
    pairs : int
        Number of pairs to fit.
    n_selected_mean : float
        Mean number of features selected by the fits so far.
    """

    done: int
    pairs: int
    n_selected_mean: float


class StabilitySelection(RefitMixin, PairSelector, MetaEstimatorMixin, BaseEstimator):
    """Stability selection: select features that fits on random halves of the rows often select.

    The rows are split into two random halves `pairs` times, and the estimator is fitted on both
    halves. The selection probability of a feature is the share of these fits in which its weight
    is not zero. Features with a probability of at least `threshold` are selected. The expected
    number of false selections is bounded for any estimator (complementary pairs; Shah and Samworth
    2013).

    The bounds are theorems with a premise: noise features are exchangeable, and selection is not
    worse than random guessing. Words of a text, which are frequent or rare, are not exchangeable.
    So the selection is repeated with permuted labels. What it selects then is false.
    If this is more than twice the bound, a warning says so.

    With `param_name`, every half is fitted with each of `param_values`; the probability of a
    feature is the largest over the values (Meinshausen and Buehlmann 2010).

    Parameters
    ----------
    estimator : estimator
        An estimator with a `coef_` that can be exactly zero, or a Pipeline that ends in one and
        keeps the columns; for others, give `support_of`. It is cloned and not changed. If its
        random_state is None, it gets seeds that are drawn from `random_state`.
    param_name : str, optional
        Name of the parameter of the estimator to vary, such as "l1" or "ftrlclassifier__l1".
    param_values : sequence, optional
        Values of that parameter.
    pairs : int, default=50
        Number of complementary pairs of halves, B; there are 2 B fits per value.
    threshold : float, default=0.6
        Share of fits that must select a feature, in (0, 1]. Bounds exist only above 1/2.
    support_of : callable, optional
        Takes a fitted estimator, returns its support: feature numbers or a boolean mask.
    stratify : bool, default=True
        Whether both halves get the same number of rows of each class, to within one row; only for
        classifiers.
    permutations : int, default=5
        How many times the selection is repeated with permuted labels; see
        `selected_without_signal_`. Each takes as many fits as the selection itself; estimators
        that `StreamingStabilitySelection` accepts are trained together instead. 0: none.
    refit : bool, default=True
        Whether to fit the estimator, with its own parameters, on all rows and the selected
        columns; `predict` and `score` need it.
    n_jobs : int, optional
        Number of pairs to fit at the same time, in threads; -1 is one per processor. Results do
        not depend on it.
    random_state : int, RandomState or None, default=None
    callback : callable, optional
        Called with a `PairsDone` after each pair, in order. If it returns a true value, selection
        ends with the pairs done so far, and labels are not permuted. It is not called for permuted
        labels.
    verbose : int, default=0
        1: print the number of pairs done to standard error.

    Attributes
    ----------
    selection_probabilities_ : CSR matrix of shape (values, features)
        Share of the fits that select a feature, for each value of the parameter; one row if no
        parameter is varied. Features that no fit selects take no memory.
    selected_ : array of int
        The selected features, in increasing order; `get_support()` is the mask.
    n_selected_mean_ : float
        Mean number of features that a fit selects, q; with several values, the fits of a half
        together.
    n_candidates_ : int
        Number of features that can be selected, p: columns that are not zero in all rows. Columns
        without values, such as unused hashes, would make the bounds too small.
    false_selections_bound_ : Bound
        Bound on the expected number of false selections, q^2 / ((2 threshold - 1) p).
    unimodal_bound_ : Bound
        A sharper bound under one more assumption; see `false_selections_bound`.
    selected_without_signal_ : WithoutSignal
        Numbers of features selected when there is no signal at all: one for each permutation
        (`counts`), and their `mean`. If the mean is well above the bound, the bound does not hold.
    n_pairs_ : int
        Number of pairs fitted.
    estimator_ : estimator
        Fitted on the selected columns, if `refit` is true and features are selected.
    classes_ : array
        Labels of a classifier.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X has names.

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
    0.3
    >>> selector.transform(X).shape
    (500, 2)
    >>> selector.top(1)[0].probability
    1.0
    """

    verbose = 0  # of selectors pickled before it existed

    # Set by fit, besides the selection.
    estimator_: Any
    classes_: NDArray[Any]

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
        permutations: int = 5,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[PairsDone], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_name = param_name
        self.param_values = param_values
        self.pairs = pairs
        self.threshold = threshold
        self.support_of = support_of
        self.stratify = stratify
        self.permutations = permutations
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator on all halves, and select features.

        If it fails or is interrupted, no attribute changes.

        Parameters
        ----------
        X : CSR matrix, array or DataFrame of shape (rows, features)
        y : array of shape (rows,)

        Returns
        -------
        self
        """
        with all_or_nothing(self), StatusLine(self.verbose) as line:
            self._fit(X, y, line)
        return self

    def _fit(self, X: Any, y: Any, line: StatusLine) -> None:
        settings = self._checked_settings()
        refuse_malformed(X)
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
            self.classes_, strata = classes_and_strata(
                y, stratify=self.stratify, owner="StabilitySelection"
            )
        seeds, permuted = self._seeds()
        counts = [SelectionCounts() for _ in settings]
        sizes: list[int] = []  # number of features that each half selects, by any value
        for halves in self._supports(X, y, strata, settings, seeds[:-1]):
            for supports in halves:
                sizes.append(count_supports(counts, supports))
            done = PairsDone(len(sizes) // 2, self.pairs, float(np.mean(sizes)))
            line.show(
                f"pair {done.done} of {done.pairs}: {done.n_selected_mean:.1f} features per fit",
                done.done / done.pairs / (1 + len(permuted)),
            )
            if self.callback is not None and self.callback(done):
                permuted = []
                break
        self.n_pairs_ = len(sizes) // 2
        self.n_selected_mean_ = float(np.mean(sizes))
        self._select(counts, column_counts(X)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # for example: all weights are zero
            found = []
            for number, seed in enumerate(permuted, 1):
                line.show(f"permuted labels, {number} of {len(permuted)}")
                found.append(self._without_signal(X, y, strata, settings, seed))
        self._compare(found)
        if hasattr(self, "estimator_"):
            del self.estimator_
        if self.refit and len(self.selected_):
            self.estimator_ = seeded(clone(self.estimator), seeds[-1])
            self.estimator_.fit(columns_of(X, self.selected_), y)

    def _without_signal(
        self,
        X: Any,
        y: NDArray[Any],
        strata: NDArray[np.int64],
        settings: Sequence[dict[str, Any]],
        seed: int,
    ) -> tuple[list[SelectionCounts], list[float]]:
        """Repeat the selection with permuted labels; return its counts and sizes."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        y, strata = y[order], strata[order]
        seeds = rng.integers(2**31 - 1, size=self.n_pairs_).tolist()
        if X.shape[1] < 2**31 and self._trains_together(settings):
            return self._together(X, y, seeds[0])
        counts = [SelectionCounts() for _ in settings]
        sizes: list[float] = []
        for halves in self._supports(X, y, strata, settings, seeds):
            sizes += [count_supports(counts, supports) for supports in halves]
        return counts, sizes

    def _trains_together(self, settings: Sequence[dict[str, Any]]) -> bool:
        """Return whether the models of all halves can learn from one reading of the rows."""
        if self.support_of is not None or not hasattr(self.estimator, "rule"):
            return False
        try:
            checked_lanes(type(self).__name__, self.estimator, self.param_name, settings)
        except ParameterError:
            return False
        return True

    def _together(
        self, X: Any, y: NDArray[Any], seed: int
    ) -> tuple[list[SelectionCounts], list[float]]:
        """Train the models of all halves together; return counts, and the mean size."""
        selector = StreamingStabilitySelection(
            self.estimator,
            param_name=self.param_name,
            param_values=self.param_values,
            pairs=self.n_pairs_,
            threshold=self.threshold,
            stratify=self.stratify,
            permutations=0,
            n_jobs=self.n_jobs,
            random_state=seed,
        ).fit(X, y)
        shares = selector.selection_probabilities_
        return [SelectionCounts.of_shares(row, 2 * self.n_pairs_) for row in shares], [
            selector.n_selected_mean_
        ]

    def _supports(
        self,
        X: Any,
        y: NDArray[Any],
        strata: NDArray[np.int64],
        settings: Sequence[dict[str, Any]],
        seeds: Sequence[int],
    ) -> Iterable[list[list[NDArray[np.int64]]]]:
        """Yield the supports of each pair, by half and by value, in the order of the pairs."""
        n_jobs = jobs_of(self.n_jobs, type(self).__name__)
        jobs = max(1, effective_n_jobs(n_jobs))
        with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
            for start in range(0, len(seeds), jobs):
                yield from parallel(
                    delayed(fit_pair)(self.estimator, X, y, strata, settings, self.support_of, seed)
                    for seed in seeds[start : start + jobs]
                )

    def _checked_settings(self) -> list[dict[str, Any]]:
        """Check all parameters; return the parameters of the estimator for each value."""
        for name in ("support_of", "callback"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise ParameterError(
                    f"StabilitySelection: {name} must be callable or None; got {value!r}"
                )
        return self._settings()

    def _seeds(self) -> tuple[list[int], list[int]]:
        """Return one seed per pair and one for the refit; then one per permutation."""
        try:
            random = check_random_state(self.random_state)
        except ValueError as error:
            raise ParameterError(f"StabilitySelection: random_state: {error}") from error
        seeds = random.randint(2**31 - 1, size=self.pairs + 1 + self.permutations).tolist()
        return seeds[: self.pairs + 1], seeds[self.pairs + 1 :]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.target_tags.required = True
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if self.refit:
            tags.estimator_type = inner.estimator_type
            tags.classifier_tags = deepcopy(inner.classifier_tags)
            if tags.classifier_tags is not None:
                tags.classifier_tags.multi_label = False
            tags.regressor_tags = deepcopy(inner.regressor_tags)
        return tags
