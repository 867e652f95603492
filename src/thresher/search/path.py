"""SparsityPath: error and nonzeros over a range of penalties, and the choice of a sparse model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags

from thresher.atomic import all_or_nothing
from thresher.data import is_source
from thresher.data.frame_parts import words_as_source
from thresher.data.matrix_source import MatrixSource
from thresher.data.source import Source
from thresher.errors import DivergenceError, ParameterError
from thresher.model.frontier import Dot, Frontier, Place, errors_of, shown
from thresher.model.model import Model
from thresher.search.folds import check_split_classes, split_of
from thresher.search.gravities import (
    SIZES,
    default_gravities,
    default_sizes,
    gravity_name,
    gravity_scale_of,
    is_scaled,
)
from thresher.search.grid import (
    GridPoint,
    check_estimator,
    check_label_sets,
    check_probabilities,
    point_of,
    points_of,
)
from thresher.search.model_groups import ModelResult, checked_limit
from thresher.search.path_output import PathOutput
from thresher.search.pipelines import (
    PipelineGroup,
    PipelineRows,
    is_pipeline,
    last_step,
    refuse_pipeline,
    transformers_of,
)
from thresher.search.progress import SearchProgress, told
from thresher.search.results import failures_of, name_features, scores_of
from thresher.search.row_scores import accuracy
from thresher.search.row_search import RowSearch
from thresher.search.scoring import with_mean_loss
from thresher.search.search import Search
from thresher.search.source_checks import check_source, folds_of
from thresher.search.splits import SourceSplits
from thresher.search.sum_scores import SumScores
from thresher.training.scores import quick_score, scores_named
from thresher.training.shuffling import searched_rows

# Results by gravity and fold; the last fold is the models of all rows.
_Results = Mapping[tuple[int, int], ModelResult]


class SparsityPath(PathOutput, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Train models with a range of gravities, and choose by error and number of nonzeros.

    For each gravity, one model learns from all rows and one from the rows outside each fold. All
    of them train together as lanes, from one reading of the rows per pass. One more reading scores
    the models of the folds on the rows that they did not learn from. Models that cannot train
    together are fitted one after the other, see `OnePassSearchCV`. The chosen model is the
    sparsest one whose error is within one standard error of the best.

    Parameters
    ----------
    estimator : estimator
        An estimator of Thresher with a penalty (`gravity`, `l1`) or a number of weights
        (`target_nnz`, `n_nonzero`), or a Pipeline whose last step is one. It is cloned and not
        changed.
    gravities : sequence of float, optional
        Values of the parameter. For a number of weights, by default at most 15 numbers from 1 to
        the number of features. For a penalty, by default 15 values with equal ratios, from almost
        all weights nonzero to almost none. The largest makes all weights zero at the optimum; it is
        three times larger for rules whose last steps leave some weights nonzero. The default needs
        one more reading of a source, or several if the gradients of all classes do not fit in
        memory. With the default, a regressor standardises its targets, if no other parameter has a
        number in the units of y and models train together; with given values it does not.
    cv : int, splitter, iterable of splits or "progressive", default=None
        As in `GridSearchCV`. For a source, the number of folds; a hash of the row's number decides
        the fold of a row. "progressive", only for sources: rows are scored before they are
        learned, and there are no standard errors. None is 5 folds, or "progressive" for a source
        that can be read only once.
    scoring : str or callable, optional
        As in `GridSearchCV`; by default the `score` of the estimator. The error is 1 - score; for
        a score named "neg_..." or a callable it is -score.
    n_jobs : int, optional
        Number of threads; -1 is one per processor. Results do not depend on it.
    memory_limit : int, optional
        Largest size of all models together, in bytes; by default half of the free memory. If the
        models need more, they train in groups.
    callback : callable, optional
        Called at intervals with a `SearchProgress`.
    verbose : int, default=0
        1: print progress to standard error.
    param_name : str, optional
        The parameter to vary; by default the penalty of the rule, or the number of weights if it
        has no penalty.

    Attributes
    ----------
    param_name_ : str
        The parameter that was varied: "gravity", "l1", "target_nnz" or "n_nonzero".
    gravities_ : array of shape (gravities,)
        Its values, increasing, in the units of y.
    errors_ : array of shape (gravities,)
        Mean error over the folds; NaN if a model of a fold or of all rows diverged.
    standard_errors_ : array of shape (gravities,)
        Standard errors of these means; NaN with cv="progressive".
    split_errors_ : array of shape (gravities, folds)
        Errors by fold.
    nonzeros_ : array of int of shape (gravities,)
        Number of nonzero weights of the models of all rows; at the time when they diverged, if
        they did.
    models_ : list of Model or None
        The models of all rows; None if a model diverged.
    failures_ : list of str
        Why a gravity has no error: a model of a fold or of all rows diverged; else empty.
    best_index_, chosen_index_ : int
        Index of the gravity with the least error; and of the sparsest model within one standard
        error of it.
    best_gravity_, chosen_gravity_ : float
        Their gravities.
    best_estimator_, chosen_estimator_ : estimator
        Fitted on all rows with these gravities. They predict; to continue learning, fit a clone.
    frontier_ : Frontier
        Error and nonzeros of all gravities, for plots, with the gravities that no other one beats
        in both.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import DualAveragingClassifier, SparsityPath
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 100))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=1000) > 0
    >>> path = SparsityPath(DualAveragingClassifier(passes=5, random_state=0)).fit(X, y)
    >>> sorted(feature.name for feature in path.chosen_estimator_.model_.top(2))
    [3, 7]
    >>> bool(path.nonzeros_[path.chosen_index_] <= path.nonzeros_[path.best_index_] < 100)
    True
    """

    verbose = 0  # of paths pickled before it existed

    # Set by fit.
    param_name_: str
    gravities_: NDArray[np.float64]
    errors_: NDArray[np.float64]
    standard_errors_: NDArray[np.float64]
    split_errors_: NDArray[np.float64]
    nonzeros_: NDArray[np.int64]
    models_: list[Model | None]
    failures_: list[str]
    best_index_: int
    chosen_index_: int
    best_gravity_: float
    chosen_gravity_: float
    best_estimator_: Any
    chosen_estimator_: Any
    frontier_: Frontier

    def __init__(
        self,
        estimator: Any,
        gravities: Sequence[float] | None = None,
        *,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        memory_limit: int | None = None,
        callback: Callable[[SearchProgress], Any] | None = None,
        verbose: int = 0,
        param_name: str | None = None,
    ) -> None:
        self.estimator = estimator
        self.gravities = gravities
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.callback = callback
        self.verbose = verbose
        self.param_name = param_name

    # ---- fitting -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None) -> Self:
        """Train and score the models of all gravities.

        If it fails or is interrupted, no attribute changes.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
            With a Pipeline, anything that its first transformer takes, such as a list of texts.
        y : array of shape (rows,), or array or CSR matrix of shape (rows, labels)
            Labels; None for a source, which contains its labels.
        sample_weight : array of shape (rows,), optional
            Weights of the rows in training.
        classes : array or "binary", optional
            All labels of a source. By default a source is read once to find them; if it can be
            read only once, labels must be -1 and 1, or 0 and 1. "binary" requires such labels.

        Returns
        -------
        self
        """
        params = {"sample_weight": sample_weight}
        X, y = words_as_source(X, y, params, "SparsityPath")
        sample_weight = params.get("sample_weight")
        with all_or_nothing(self):
            check_estimator(self._final)
            self.param_name_ = gravity_name(self._final, self.param_name)
            given = self._checked_gravities()
            named = self.scoring is None or isinstance(self.scoring, str)
            if not named and not callable(self.scoring):
                raise ParameterError(
                    owner="SparsityPath",
                    parameter="scoring",
                    value=self.scoring,
                    allowed="a single score, its name or a callable, or None",
                )
            check_label_sets(self._final, X, y)
            if is_source(X):
                if y is not None or sample_weight is not None:
                    raise ParameterError(
                        "SparsityPath: a source has its own labels and weights; give only X"
                    )
                refuse_pipeline("SparsityPath", self.estimator)
                splits, found, views = self._fit_source(X, given, classes)
            elif classes is not None:
                raise ParameterError("SparsityPath: classes= is only for sources, not for rows")
            else:
                splits, found, views = self._fit_rows(X, y, sample_weight, given)
            self._conclude(splits, found, views)
        return self

    @property
    def _final(self) -> Any:
        """The estimator, or the last step of a pipeline."""
        return last_step(self.estimator)

    def _checked_gravities(self) -> NDArray[np.float64] | None:
        """Return the given gravities in increasing order, or None."""
        point_of(self._final, 0, {})  # raises for bad values of other parameters
        if self.gravities is None:
            return None
        try:
            found = np.sort(np.asarray(self.gravities, np.float64))
        except (TypeError, ValueError):
            found = np.zeros(0)
        if found.ndim != 1 or len(found) < 2 or not (np.diff(found) > 0).all():
            raise ParameterError(
                owner="SparsityPath",
                parameter="gravities",
                value=self.gravities,
                allowed="at least 2 different numbers, or None",
            )
        self._grid(found)  # raises for bad values
        return found

    def _grid(self, gravities: NDArray[np.float64]) -> list[GridPoint]:
        """Return the points of some gravities."""
        if self.param_name_ not in SIZES:
            return points_of(self._final, {self.param_name_: gravities.tolist()})
        whole = [int(size) if size.is_integer() else size for size in gravities.tolist()]
        return points_of(self._final, {self.param_name_: whole})

    def _fit_rows(
        self, X: Any, y: Any, sample_weight: Any, given: NDArray[np.float64] | None
    ) -> tuple[int, _Results, dict[int, Any]]:
        """Return the number of folds, the results, and the estimators of all rows."""
        checked, limit = clone(self._final), checked_limit(self.memory_limit)
        scorer = check_scoring(self.estimator, with_mean_loss(self.scoring))
        if self.scoring is None and is_classifier(checked) and np.ndim(y) == 1:
            scorer = accuracy
        rows = PipelineRows(X, y, sample_weight)
        whole, transformers = rows, None
        if is_pipeline(self.estimator):
            transformers = transformers_of(self.estimator)
            whole = replace(rows, X=rows.fit_transformed(transformers))
        source = checked.source_of(whole.X, y, sample_weight)
        labels = y if source.multilabel else source.block.labels
        cv = check_cv(self.cv, labels, classifier=is_classifier(self.estimator))
        splits = [split_of(train, test, source.block.rows) for train, test in cv.split(X, labels)]
        if len(splits) < 2:
            raise ParameterError("SparsityPath: cv must have at least 2 folds, for standard errors")
        points = self._points(given, source, limit)
        with told(self.verbose, self.callback, source.block.rows) as tell:
            args = limit, self.n_jobs, tell, quick_score(self.scoring, checked.task)
            search = RowSearch(self.scoring, scorer, {}, np.nan, *args, single=True)
            if not is_pipeline(self.estimator):
                found = search.all_at_once(checked, source, points, rows, splits, whole=True)
                return len(splits), found, search.models
            check_split_classes(labels, splits, checked.task)
            found = search.of_all_rows(self.estimator, transformers, checked, source, points, whole)
            found = {(point, len(splits)): one for (point, _), one in found.items()}
            del whole, source, checked  # only one split is in memory
            found |= search.split_by_split([PipelineGroup(self.estimator, points)], rows, splits)
            return len(splits), found, search.models

    def _fit_source(
        self, source: Source, given: NDArray[np.float64] | None, classes: Any
    ) -> tuple[int, _Results, dict[int, Any]]:
        """Return the number of folds, the results, and the estimators of all rows."""
        folds = folds_of(self.cv, source)
        named = scores_named(self.scoring, self.estimator.task, source.multilabel)
        if given is None and not source.rereadable:
            what = "can be read only once, and the default gravities need one more reading"
            raise ParameterError(f"SparsityPath: {source} {what}: give gravities")
        if folds:
            source = searched_rows(source, [getattr(self.estimator, "shuffle", False)], "float64")
        points = self._points(given, source, checked_limit(self.memory_limit), classes)
        check_probabilities(named, points)
        check_source(self.estimator, source, points, classes)
        splits = SourceSplits(self.estimator, source, folds, points, classes, whole=True)
        shared = clone(self.estimator), splits, SumScores(splits, named)
        with told(self.verbose, self.callback, source.rows) as tell:
            search = Search(*shared, checked_limit(self.memory_limit), self.n_jobs, tell)
            found, models = search.go(search.plan(points)), search.models
        if source.named and source.rereadable:
            name_features(list(models.values()), source)
        return folds, found, models

    def _points(
        self,
        given: NDArray[np.float64] | None,
        source: Source | MatrixSource,
        limit: int,
        classes: Any = None,
    ) -> list[GridPoint]:
        """Set `gravities_`, and return their points.

        Targets of a regression are standardised if no number is given for a parameter that depends
        on their units. The lanes then have gravities in units of standardised targets.
        """
        name, sizes = self.param_name_, self.param_name_ in SIZES
        if given is not None or sizes:
            self.gravities_ = given if given is not None else np.array(default_sizes(source), float)
            return self._grid(self.gravities_)
        scale = gravity_scale_of(self._final, source, limit, classes)
        own = default_gravities(self._final, scale)
        self.gravities_ = own * scale.unit
        points = self._grid(self.gravities_)
        if not is_scaled(self._final) or points[0].obstacle:
            return points
        return [
            replace(point, standardised=True, lane_params={**point.params, name: gravity})
            for point, gravity in zip(points, own.tolist(), strict=True)
        ]

    def _conclude(self, splits: int, found: _Results, views: Mapping[int, Any]) -> None:
        sizes = len(self.gravities_), max(splits, 1)
        scores, self.failures_ = scores_of(found, *sizes), failures_of(found, *sizes)
        measure, errors = errors_of(scores, self.scoring, is_classifier(self.estimator))
        self.split_errors_ = errors
        self.errors_ = errors.mean(axis=1)
        folds = errors.shape[1]
        self.standard_errors_ = np.full(len(errors), np.nan)
        if folds > 1:
            self.standard_errors_ = errors.std(axis=1, ddof=1) / np.sqrt(folds)
        points = range(len(errors))
        self.nonzeros_ = np.array([found[n, splits].nonzeros for n in points], np.int64)
        names = [f"{self.param_name_}={shown(float(gravity))}" for gravity in self.gravities_]
        spreads = self.standard_errors_.tolist() if folds > 1 else [None] * len(errors)
        facts = self.nonzeros_.tolist(), self.errors_.tolist(), spreads, self.failures_
        dots = [Dot(*each) for each in zip(names, *facts, strict=True)]
        self.frontier_ = Frontier(dots, measure if folds > 1 else f"progressive {measure}")
        best, chosen = self.frontier_.best, self.frontier_.chosen
        if best is None or chosen is None:
            why = next((failure for failure in self.failures_ if failure), f"no {measure}")
            raise DivergenceError(
                f"SparsityPath: no gravity has an error: for each of them, a model of a fold or of "
                f"all rows diverged or was not scored; the first: {why}"
            )
        self.best_index_, self.chosen_index_ = best, chosen
        self.best_gravity_ = float(self.gravities_[best])
        self.chosen_gravity_ = float(self.gravities_[chosen])
        self.best_estimator_, self.chosen_estimator_ = views[best], views[chosen]
        for n, view in views.items():
            last_step(view).amend(place=Place.of(self.frontier_, n))
        self.models_ = [last_step(views[n]).model_ if n in views else None for n in points]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
