"""Stability selection of a stream: all halves learn from one reading of the rows."""

from __future__ import annotations

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
from thresher.search.grid import GridPoint, check_single_labels
from thresher.search.model_groups import checked_limit
from thresher.stability.halves import SelectionCounts, count_supports, seeded
from thresher.stability.lane_fits import HalfMembership, HalfModels, checked_lanes
from thresher.stability.selected import PairSelector
from thresher.stability.strata import classes_and_strata
from thresher.stability.stream_halves import HalfAssigner
from thresher.training.plan import TrainingPlan
from thresher.training.seeds import seed_of, stream_seed


class StreamingStabilitySelection(PairSelector, MetaEstimatorMixin, BaseEstimator):
    """Select the features that an estimator selects again and again, from one reading of the rows.

    As `StabilitySelection`, but all fits on halves are made at once, as lanes: a reading of the
    rows, of a file larger than memory or a pipe too, gives the selection probabilities of all
    features, for all values of a parameter. The estimator is one of thresher that learns row by
    row; `passes` of it make as many readings.

    Halves are dealt as rows come: of each two rows of a class that follow each other, a hash of the
    seed, the pair and the row's number sends one to the first half and one to the second. So the
    halves of a pair are complementary and of equal size, to within a row a class, and each equals a
    fit of the estimator on its rows alone, in their order.

    Parameters
    ----------
    estimator : estimator
        One that learns row by row, without `tol`, `center` and the like, which look beyond a row;
        its `callback` is not called. It is cloned, never fitted itself. With any `shuffle` but
        False, rows of all halves are shuffled by one permutation; of a source, within its blocks.
    param_name : str, optional
        Name of the parameter of the estimator to vary, such as "gravity" or "l1".
    param_values : sequence, optional
        Its values.
    pairs : int, default=50
        Number of complementary pairs of halves, B; there are 2 B models for each value.
    threshold : float, default=0.6
        Share of models that must select a feature, in (0, 1]. There are bounds above 1/2.
    stratify : bool, default=True
        Deal the rows of each class of a classifier apart; False deals all rows together.
    n_jobs : int, optional
        Threads that learn; -1 is one a processor. Results do not depend on it.
    memory_limit : int, optional
        Bytes that models may take together; half of what is free by default. More is a MemoryError,
        before anything is learned where the number of features is known.
    random_state : int, RandomState or None, default=None
        Decides who gets which rows.

    Attributes
    ----------
    selection_probabilities_ : CSR matrix of shape (values, features)
        Share of the models that select a feature, for each value of the parameter; one row if none
        is varied. Features that no model selects take no memory.
    selected_ : array of int
        Features selected, increasing; `get_support()` is the mask.
    n_selected_mean_ : float
        Mean number of features a model selects, q; with several values, all of a half together.
    n_candidates_ : int
        Features that can be selected, p: those that are not zero in all rows.
    false_selections_bound_ : Bound
        Bound on the expected number of false selections, q^2 / ((2 threshold - 1) p).
    unimodal_bound_ : Bound
        A sharper bound under one more assumption; see `false_selections_bound`.
    n_pairs_ : int
        Pairs of halves.
    n_rows_ : int
        Rows of both halves together.
    classes_ : array
        Labels, of a classifier.
    n_features_in_ : int
    feature_names_in_ : array
        Where X has named columns.

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

    # what fit leaves behind, besides the selection
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
        n_jobs: int | None = None,
        memory_limit: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_name = param_name
        self.param_values = param_values
        self.pairs = pairs
        self.threshold = threshold
        self.stratify = stratify
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.random_state = random_state

    # ---- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, classes: Any = None) -> Self:
        """Learn all halves from the rows, and select.

        If it fails or is interrupted, all is as it was before.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels; a source has its own.
        classes : array, optional
            All labels, where a source can be read only once; of others they are found by a reading
            of their own.

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
            estimator, self._names = seeded(clone(self.estimator), seeds[1]), {}
            if is_source(X):
                if y is not None:
                    raise ParameterError(
                        f"{type(self).__name__}: a source has its own labels; give it alone"
                    )
                self._check_source(X, classes)
                source, rows = X, None
            elif classes is not None:
                raise ParameterError(f"{type(self).__name__}: classes is for sources; y has them")
            else:
                source = self._rows(X, y)
                rows = max(1, source.block.rows // 2)
                classes = getattr(self, "classes_", None)
            plan = self._plan(source, points[0], classes, estimator.random_state)
            if plan.labels.classes is not None:
                self.classes_ = plan.labels.classes
            dealer = HalfAssigner(self.pairs, seeds[0])
            dealt = HalfMembership(dealer, self.stratify and plan.labels.classes is not None)
            limit = checked_limit(self.memory_limit)
            halves = HalfModels(plan, source, points, dealt, rows, limit, self.n_jobs)
            try:
                halves.trainer.run()
                self.n_rows_ = sum(dealer.dealt.values())
                if is_source(X):
                    self.n_features_in_ = halves.trainer.capacity.width
                    self._count(halves, halves.seen.features())
                else:
                    self._count(halves, column_counts(source.block.X)[0])
            finally:
                halves.outputs.team.close()
            if is_source(X) and X.named and X.rereadable:
                self._names = X.names(np.unique(self.selection_probabilities_.indices).tolist())
        return self

    def _rows(self, X: Any, y: Any) -> MatrixSource:
        """Check rows in memory; return them as a source."""
        classifies = is_classifier(self.estimator)
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
            raise ParameterError(f"{owner}: features with names need bits= in scan to number them")
        if estimator.passes > 1 and not source.rereadable:
            raise ParameterError(
                f"{owner}: {source} can be read only once; set passes=1 in the estimator"
            )
        if classes is None and is_classifier(estimator) and not source.rereadable:
            raise ParameterError(
                f"{owner}: {source} can be read only once, and its classes are not known; give "
                f"fit classes="
            )

    def _plan(
        self, source: Source | MatrixSource, point: GridPoint, classes: Any, random_state: Any
    ) -> TrainingPlan:
        """Return what all models have in common."""
        owner, in_memory = type(self).__name__, isinstance(source, MatrixSource)
        plan = TrainingPlan.resolve(
            self.estimator.rule,
            self.estimator.task,
            point.params,
            source,
            owner=owner,
            classes=classes,
            seed=(seed_of if in_memory else stream_seed)(random_state, owner),
        )
        return plan if in_memory or plan.shuffle is False else replace(plan, shuffle="within")

    def _count(self, halves: HalfModels, seen: NDArray[np.int64]) -> None:
        """Turn what was learned into a selection."""
        tallies = [SelectionCounts() for _ in halves.points]
        sizes = [count_supports(tallies, supports) for supports in halves.supports()]
        self.n_pairs_, self.n_selected_mean_ = self.pairs, float(np.mean(sizes))
        self._select(tallies, seen)

    def _seeds(self) -> list[int]:
        """Return a seed of the halves, and one of the shuffling."""
        try:
            random = check_random_state(self.random_state)
        except ValueError as error:
            raise ParameterError(f"{type(self).__name__}: random_state: {error}") from error
        return [int(seed) for seed in random.randint(2**31 - 1, size=2)]

    def _named(self, feature: int) -> str | int:
        return self._names.get(feature) or super()._named(feature)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
