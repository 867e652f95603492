"""Stability selection on a stream: the models of all halves learn from one reading of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import column_or_1d, validate_data

from thresher.atomic import all_or_nothing
from thresher.data import is_source
from thresher.data.matrix_source import MatrixSource
from thresher.data.source import Source
from thresher.errors import ParameterError
from thresher.model.density import column_counts
from thresher.progress.verbose import StatusLine
from thresher.search.grid import GridPoint, check_single_labels
from thresher.search.model_groups import checked_limit
from thresher.sparse_checks import refuse_malformed
from thresher.stability.halves import SelectionCounts, count_supports, seeded
from thresher.stability.lane_fits import HalfMembership, HalfModels, checked_lanes
from thresher.stability.null_outputs import NullLabels
from thresher.stability.selected import PairSelector
from thresher.stability.strata import classes_and_strata
from thresher.stability.stream_halves import HalfAssigner
from thresher.training.lane_outputs import LaneOutputs
from thresher.training.plan import TrainingPlan
from thresher.training.seeds import seed_of, stream_seed
from thresher.training.shuffling import searched_rows


class StreamingStabilitySelection(PairSelector, MetaEstimatorMixin, BaseEstimator):
    """Stability selection from one reading of the rows.

    Like `StabilitySelection`, but the models of all halves train together as lanes: one reading of
    the rows gives the selection probabilities of all features, for all values of a parameter. The
    rows may be a file larger than memory, or a pipe. The estimator must be one of Thresher that
    learns row by row; with several `passes` there are as many readings.

    Rows are assigned to halves while reading. Two consecutive rows of a class go to different
    halves; a hash of the seed, the pair and the row's number decides which goes to the first half.
    So the halves of a pair are complementary, and their sizes differ by at most one row per class.
    Each model equals a fit of the estimator on the rows of its half, in their order.

    The bounds are theorems with a premise: noise features are exchangeable, and selection is not
    worse than random guessing. Words of a text, which are frequent or rare, are not exchangeable.
    So the selection is repeated with labels without signal. What it selects then is false.
    If this is more than twice the bound, a warning says so.
    Rows in memory get a permutation of their labels. Each row of a source gets the label of a
    random earlier row: it is drawn from a uniform sample of at most 10,000 of them. In a source
    that is sorted by class, such labels still depend on the rows; shuffle it before.

    Parameters
    ----------
    estimator : estimator
        An estimator that learns row by row. `tol`, `center` and similar parameters, which need
        more than one row, are not allowed; its `callback` is not called. It is cloned and not
        changed. Unless `shuffle` is False, the rows of all halves are shuffled by the same
        permutation; those of a source that can be read only once are shuffled within blocks.
    param_name : str, optional
        Name of the parameter of the estimator to vary, such as "gravity" or "l1".
    param_values : sequence, optional
        Values of that parameter.
    pairs : int, default=50
        Number of complementary pairs of halves, B; there are 2 B models per value.
    threshold : float, default=0.6
        Share of models that must select a feature, in (0, 1]. Bounds exist only above 1/2.
    stratify : bool, default=True
        Whether the rows of each class of a classifier are divided separately; False divides all
        rows together.
    permutations : int, default=5
        How many times the selection is repeated with labels that have nothing to do with the rows,
        in the same reading; see `selected_without_signal_`. Each takes as much memory and time as
        the selection itself. If memory is short, there are fewer, and a warning says so. 0: none.
    n_jobs : int, optional
        Number of threads; -1 is one per processor. Results do not depend on it.
    memory_limit : int, optional
        Largest size of all models together, in bytes; by default half of the free memory. If they
        need more, MemoryError is raised; before training, if the number of features is known.
    random_state : int, RandomState or None, default=None
        Seed of the halves and of the shuffling.
    verbose : int, default=0
        1: print the number of rows learned to standard error.

    Attributes
    ----------
    selection_probabilities_ : CSR matrix of shape (values, features)
        Share of the models that select a feature, for each value of the parameter; one row if no
        parameter is varied. Features that no model selects take no memory.
    selected_ : array of int
        The selected features, in increasing order; `get_support()` is the mask.
    n_selected_mean_ : float
        Mean number of features that a model selects, q; with several values, the models of a half
        together.
    n_candidates_ : int
        Number of features that can be selected, p: those that are not zero in all rows.
    false_selections_bound_ : Bound
        Bound on the expected number of false selections, q^2 / ((2 threshold - 1) p).
    unimodal_bound_ : Bound
        A sharper bound under one more assumption; see `false_selections_bound`.
    selected_without_signal_ : WithoutSignal
        Numbers of features selected when there is no signal at all: one for each permutation
        (`counts`), and their `mean`. If the mean is well above the bound, the bound does not hold.
    n_pairs_ : int
        Number of pairs of halves.
    n_rows_ : int
        Number of rows of both halves together.
    classes_ : array
        Labels of a classifier.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X has names.

    See Also
    --------
    StabilitySelection : Any estimator, fitted on one half after the other.

    References
    ----------
    Meinshausen and Buehlmann, Stability selection, JRSS B 72, 2010.
    Shah and Samworth, Variable selection with error control: another look at stability selection,
    JRSS B 75, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLClassifier
    >>> from thresher.stability import StreamingStabilitySelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 100))
    >>> y = X[:, 3] - X[:, 7] + rng.normal(size=2000) > 0
    >>> estimator = FTRLClassifier(alpha=0.1, passes=1)
    >>> selector = StreamingStabilitySelection(
    ...     estimator, param_name="l1", param_values=[40.0, 60.0, 80.0], pairs=20, random_state=0
    ... ).fit(X, y)
    >>> selector.selected_.tolist()
    [3, 7]
    >>> selector.top(1)[0].probability
    1.0
    """

    verbose = 0  # of selectors pickled before it existed

    # Set by fit, besides the selection.
    classes_: NDArray[Any]
    n_rows_: int
    _names: dict[int, str]

    def __init__(
        self,
        estimator: Any,
        *,
        param_name: str | None = None,
        param_values: Sequence[Any] | None = None,
        pairs: int = 50,
        threshold: float = 0.6,
        stratify: bool = True,
        permutations: int = 5,
        n_jobs: int | None = None,
        memory_limit: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_name = param_name
        self.param_values = param_values
        self.pairs = pairs
        self.threshold = threshold
        self.stratify = stratify
        self.permutations = permutations
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, classes: Any = None) -> Self:
        """Train the models of all halves, and select features.

        If it fails or is interrupted, no attribute changes.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels; None for a source, which contains its labels.
        classes : array, optional
            All labels of a source. Needed if it can be read only once; by default it is read once
            to find them.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            points = checked_lanes(
                type(self).__name__, self.estimator, self.param_name, self._settings()
            )
            check_single_labels(type(self).__name__, self.estimator, X, y)
            seeds = self._seeds()
            source: Any
            estimator, self._names = seeded(clone(self.estimator), seeds[1]), {}
            if is_source(X):
                if y is not None:
                    raise ParameterError(
                        f"{type(self).__name__}: a source has its own labels; give only X"
                    )
                self._check_source(X, classes)
                source, rows = searched_rows(X, [self.estimator.shuffle], "float64"), None
            elif classes is not None:
                raise ParameterError(
                    f"{type(self).__name__}: classes= is only for sources, not for rows"
                )
            else:
                source = self._rows(X, y)
                rows = max(1, source.block.rows // 2)
                classes = getattr(self, "classes_", None)
            plan = self._plan(source, points, classes, estimator.random_state)
            if plan.labels.classes is not None:
                self.classes_ = plan.labels.classes
            assigner = HalfAssigner(self.pairs, seeds[0])
            stratify = self.stratify and plan.labels.classes is not None
            membership = HalfMembership(assigner, stratify)
            nulls = [
                NullLabels(
                    seed,
                    HalfMembership(HalfAssigner(self.pairs, seed), stratify),
                    in_memory=not is_source(X),
                )
                for seed in seeds[2:]
            ]
            limit = checked_limit(self.memory_limit)
            halves = HalfModels(plan, source, points, membership, rows, limit, self.n_jobs, nulls)
            try:
                with StatusLine(self.verbose) as halves.line:
                    halves.trainer.run()
                self.n_rows_ = sum(assigner.counts.values())
                if is_source(X):
                    self.n_features_in_ = halves.trainer.capacity.width
                    self._count(halves, halves.seen.features())
                else:
                    self._count(halves, column_counts(source.block.X)[0])
            finally:
                halves.outputs.close()
            if is_source(X) and X.named and X.rereadable:
                self._names = X.names(np.unique(self.selection_probabilities_.indices).tolist())
        return self

    def _rows(self, X: Any, y: Any) -> MatrixSource:
        """Check rows in memory; return them as a source."""
        classifies = is_classifier(self.estimator)
        refuse_malformed(X, rows_checked=True)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2,
            y_numeric=not classifies,
        )
        y = column_or_1d(y, warn=True)
        if classifies:
            owner = type(self).__name__
            self.classes_ = classes_and_strata(y, stratify=self.stratify, owner=owner)[0]
        return MatrixSource(X, y)

    def _check_source(self, source: Source, classes: Any) -> None:
        owner, estimator = type(self).__name__, self.estimator
        if source.named and source.bits is None:
            raise ParameterError(f"{owner}: features have names; set bits= in scan to number them")
        if estimator.passes > 1 and not source.rereadable:
            raise ParameterError(
                f"{owner}: {source} can be read only once; set passes=1 in the estimator"
            )
        if classes is None and is_classifier(estimator) and not source.rereadable:
            raise ParameterError(
                f"{owner}: {source} can be read only once, and its classes are not known; give fit "
                f"the classes"
            )

    def _plan(
        self,
        source: Source | MatrixSource,
        points: Sequence[GridPoint],
        classes: Any,
        random_state: Any,
    ) -> TrainingPlan:
        """Return the options that all models share."""
        owner, in_memory = type(self).__name__, isinstance(source, MatrixSource)
        plan = TrainingPlan.resolve(
            self.estimator.rule,
            self.estimator.task,
            points[0].params,
            source,
            owner=owner,
            classes=classes,
            seed=(seed_of if in_memory else stream_seed)(random_state, owner),
            standardised=all(point.standardised for point in points)
            and len({point.params["fit_intercept"] for point in points}) == 1,
        )
        return plan if in_memory or plan.shuffle is False else replace(plan, shuffle="within")

    def _count(self, halves: HalfModels, seen: NDArray[np.int64]) -> None:
        """Count the supports of all halves, and select features."""
        counts, sizes = _counted(halves, halves.outputs)
        self.n_pairs_, self.n_selected_mean_ = self.pairs, float(np.mean(sizes))
        self._select(counts, seen)
        nulls = halves.outputs.nulls
        if len(nulls) < self.permutations:
            warnings.warn(
                f"{type(self).__name__}: memory_limit allows models for {len(nulls)} of "
                f"{self.permutations} permutations of the labels",
                UserWarning,
                stacklevel=3,
            )
        self._compare([_counted(halves, null) for null in nulls])

    def _seeds(self) -> list[int]:
        """Return a seed for the halves, one for the shuffling, and one for each permutation."""
        try:
            random = check_random_state(self.random_state)
        except ValueError as error:
            raise ParameterError(f"{type(self).__name__}: random_state: {error}") from error
        return [int(seed) for seed in random.randint(2**31 - 1, size=2 + self.permutations)]

    def _named(self, feature: int) -> str | int:
        return self._names.get(feature) or super()._named(feature)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _counted(halves: HalfModels, outputs: LaneOutputs) -> tuple[list[SelectionCounts], list[int]]:
    """Return the selections of each value, and the number of features that each half selects."""
    counts = [SelectionCounts() for _ in halves.points]
    return counts, [count_supports(counts, supports) for supports in halves.supports(outputs)]
