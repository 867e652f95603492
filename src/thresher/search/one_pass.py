"""OnePassSearchCV: grid search in which all models learn from one reading of the rows per pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils._param_validation import InvalidParameterError, StrOptions
from sklearn.utils.validation import _check_method_params, _num_samples

from thresher.atomic import all_or_nothing
from thresher.data import is_source
from thresher.data.frame_parts import words_as_source
from thresher.errors import ParameterError
from thresher.model.frontier import Place, frontier_of
from thresher.model.model import Model
from thresher.search.checkpointing import SearchCheckpoint, checkpoint_of, fit_best
from thresher.search.folds import Split, check_split_classes, splits_of
from thresher.search.grid import GridPoint, check_label_sets, check_probabilities
from thresher.search.model_groups import ModelResult, checked_limit
from thresher.search.pipelines import (
    PipelineGroup,
    PipelineRows,
    fit_params_of,
    is_pipeline,
    last_step,
    pipeline_groups,
    refuse_checkpoint,
    refuse_pipeline,
)
from thresher.search.progress import SearchProgress, told
from thresher.search.results import warn_of_divergence, warn_of_failures
from thresher.search.row_search import RowSearch
from thresher.search.scoring import with_mean_loss
from thresher.search.search import Search
from thresher.search.source_checks import check_source, folds_of
from thresher.search.splits import SourceSplits
from thresher.search.sum_scores import SumScores
from thresher.threads import threads_of
from thresher.training.observer import Observer
from thresher.training.run_options import RunOptions
from thresher.training.scores import quick_score, score_source, scores_named
from thresher.training.shuffling import searched_rows


class OnePassSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Grid search with cross-validation; the models of all points and folds train together.

    `GridSearchCV` fits each point and fold separately. This class reads the rows once per pass,
    and once more to score: the models of all points, folds and classes are lanes that learn from
    the same rows. With shuffle=False the scores equal those of `GridSearchCV` except for rounding.
    Otherwise all rows are shuffled together, not the rows of each fold separately.

    Points that differ in `passes`, `shuffle`, `random_state`, `store`, `dtype` or `class_weight`
    train in groups, one group after the other. So do regressors that standardise their targets and
    regressors that do not, splits with their own order of rows, and all splits with
    class_weight="balanced".

    Models that cannot train together are fitted one after the other, with the result of a fit to
    the training rows of the split: those of rules that need all rows at once, and those with
    `tol`, `max_density`, `center`, `store="nonzero"`, or a `target_nnz` with a refit or of FTRL.
    The `callback` of the estimator is called only in the final fit.

    A Pipeline is fitted and applied once per split, for all points that share the parameters of
    its transformers; then the points of its last step train together. If no transformer learns
    from rows, rows are transformed only once.

    Parameters
    ----------
    estimator : estimator
        An estimator of Thresher, or a Pipeline whose last step is one.
    param_grid : dict or list of dict
        Lists of values by parameter, as in `GridSearchCV`. All points are checked before training.
    cv : int, splitter, iterable or "progressive", default=None
        As in `GridSearchCV`. For a source, the number of folds; a hash of the row's number decides
        the fold of a row. "progressive", only for sources: each row is predicted before it is
        learned, by models that learn from all rows. None is 5 folds, or "progressive" for a source
        that can be read only once.
    scoring : str, callable, list, tuple, dict, optional
        As in `GridSearchCV`. For a source, a score that is a sum over rows: "accuracy",
        "balanced_accuracy", "neg_log_loss", "neg_brier_score", "neg_mean_squared_error",
        "neg_root_mean_squared_error", "neg_mean_absolute_error", "r2"; for two classes "roc_auc",
        "average_precision"; for sets of labels "accuracy", "f1_micro", "neg_mean_loss". The last is
        also for rows in memory: minus the mean loss of a classifier over rows and outputs.
    refit : bool, str or callable
        As in `GridSearchCV`. If a source can be read only once, the best of the trained models is
        kept instead.
    n_jobs : int, optional
        Number of threads of models that train together; None is 1, and -1 is one per processor.
        The result does not depend on it.
    memory_limit : int, optional
        Largest size of all models together, in bytes; by default half of the free memory. If the
        grid needs more, models train in groups, as few as possible.
    error_score : float or "raise"
        Score of a model that diverges, or whose scorer fails.
    verbose : int
        1: print progress to standard error.
    callback : callable, optional
        Called at intervals with a `thresher.search.SearchProgress`.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As in `GridSearchCV`. The time of a model is an equal share of the time of its group.
    best_estimator_ : estimator
        Fitted to all rows with the best parameters.
    best_model_ : thresher.Model
        The model of the best estimator.
    best_params_, best_score_, best_index_, scorer_, n_splits_, refit_time_, multimetric_
        As in `GridSearchCV`.
    nonzeros_ : array of shape (points, splits)
        Number of nonzero weights of each model.
    n_readings_ : int
        Number of groups of models that trained one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import OnePassSearchCV, TruncatedGradientClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 30))
    >>> y = X[:, 3] - X[:, 7] > 0
    >>> clf = TruncatedGradientClassifier(passes=3, random_state=0)
    >>> grid = {"gravity": [0.001, 0.01, 10.0], "eta0": [0.01, 0.1]}
    >>> search = OnePassSearchCV(clf, grid, cv=4).fit(X, y)
    >>> search.best_params_["gravity"] < 10.0
    True
    >>> search.cv_results_["mean_test_score"].shape, search.n_splits_, search.n_readings_
    ((6,), 4, 1)
    """

    return_train_score = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: allowed
            for name, allowed in BaseSearchCV._parameter_constraints.items()  # noqa: SLF001
            if name not in ("pre_dispatch", "return_train_score", "estimator")
        },
        "cv": [*BaseSearchCV._parameter_constraints["cv"], StrOptions({"progressive"})],  # noqa: SLF001
        "scoring": [
            *BaseSearchCV._parameter_constraints["scoring"],  # noqa: SLF001
            StrOptions({"neg_mean_loss"}),
        ],
        "callback": [callable, None],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: Any = True,
        n_jobs: int | None = None,
        memory_limit: int | None = None,
        error_score: Any = np.nan,
        verbose: int = 0,
        callback: Callable[[SearchProgress], Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.error_score = error_score
        self.verbose = verbose
        self.callback = callback

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        classes: Any = None,
        observer: Observer | None = None,
        checkpoint: str | PathLike[str] | None = None,
        every: float = 60.0,
        resume: bool = False,
        **params: Any,
    ) -> Self:
        """Train and score all points of the grid, and fit the best one to all rows.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
            With a Pipeline, anything that its first transformer takes, such as a list of texts.
        y : array of shape (rows,), or array or CSR matrix of shape (rows, labels)
            Labels; None for a source, which contains its labels. Several columns of 0 and 1 are
            labels that a row may have.
        classes : array or "binary", optional
            All labels of a source. By default a source is read once to find them; if it can be
            read only once, labels must be -1 and 1, or 0 and 1. "binary" requires such labels.
        observer : thresher.Observer, optional
            Receives the progress of each fit, and may stop the search.
        checkpoint : path, optional
            File to write the state of the search to, at intervals and when the observer stops it.
            Not for a Pipeline.
        every : float
            Seconds between two checkpoints.
        resume : bool
            Continue from the checkpoint, to the same result; if there is none, start from the
            beginning. Memory limit and number of threads are then those of the first run.
        **params
            ``sample_weight``, and ``groups`` for the splitter. With a Pipeline, also
            ``STEP__NAME`` for the `fit` of a step; ``sample_weight`` is for the last step.

        Returns
        -------
        self
        """
        self._check()
        run = RunOptions.of(observer, checkpoint, every, resume)
        refuse_checkpoint(self.estimator, run)
        if not is_pipeline(self.estimator):  # transformers take frames as they are
            X, y = words_as_source(X, y, params, "OnePassSearchCV")
        groups = pipeline_groups(self.estimator, self.param_grid)
        check_label_sets(last_step(self.estimator), X, y)
        with all_or_nothing(self):
            if is_source(X):
                if y is not None or params:
                    raise ParameterError(
                        "OnePassSearchCV: a source has its own labels and weights; give only X"
                    )
                refuse_pipeline("OnePassSearchCV", self.estimator)
                return self._fit_source(X, groups[0].points, classes, run)
            if classes is not None:
                raise ParameterError("OnePassSearchCV: classes= is only for sources, not for rows")
            return self._fit_rows(X, y, groups, params, run)

    def _check(self) -> None:
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise ParameterError(str(error)) from None
        threads_of(self.n_jobs)
        checked_limit(self.memory_limit)

    # ---- rows in memory ------------------------------------------------------------------------

    def _fit_rows(
        self, X: Any, y: Any, groups: list[PipelineGroup], params: dict[str, Any], run: RunOptions
    ) -> Self:
        if isinstance(self.cv, str):
            raise ParameterError("cv='progressive' is only for sources (thresher.scan), not rows")
        scorers, refit_metric = self._get_scorers()
        X, y = PipelineRows.checked(X, y)
        given = fit_params_of(self.estimator, params)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=given.routed))
        task = last_step(self.estimator).task
        quick = None if routed.scorer.score else quick_score(self.scoring, task)
        limit = checked_limit(self.memory_limit)
        weights = routed.estimator.fit.get("sample_weight")
        rows = PipelineRows(X, y, weights, given.transformers)
        with told(self.verbose, self.callback, _num_samples(X)) as tell:
            how = self.scoring, scorers, routed.scorer.score, self.error_score
            search = RowSearch(*how, limit, self.n_jobs, tell, quick, run=run)
            if is_pipeline(self.estimator):
                splits = self._splits(X, y, _num_samples(X), routed)
                check_split_classes(y, splits, task)
                found = search.split_by_split(groups, rows, splits)
            else:
                checked = clone(self.estimator)
                source = checked.source_of(X, y, weights)
                splits = self._splits(X, y, source.block.rows, routed)
                found = search.all_at_once(checked, source, groups[0].points, rows, splits)
        points = sorted((p for group in groups for p in group.points), key=lambda p: p.number)
        self._set_results(points, found, len(splits), search.readings, scorers, refit_metric)
        if self.refit:
            self._refit(run, search.saved, X, y, **given.of_fit(weights))
            last_step(self.best_estimator_).amend(place=self._place_of_best(refit_metric))
        return self

    def _splits(self, X: Any, y: Any, rows: int, routed: Any) -> list[Split]:
        """Return the splits of rows in memory."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        return splits_of(cv.split(X, y, **routed.splitter.split), rows)

    def _get_scorers(self) -> tuple[Any, Any]:
        scoring = with_mean_loss(self.scoring)
        if scoring is self.scoring:
            return super()._get_scorers()  # type: ignore[no-any-return]
        other = copy(self)
        other.scoring = scoring
        return super(OnePassSearchCV, other)._get_scorers()  # type: ignore[no-any-return]

    def _refit(
        self, run: RunOptions, saved: SearchCheckpoint | None, *rows: Any, **fit_params: Any
    ) -> None:
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        began = time.perf_counter()
        fit_best(best, run, saved, *rows, **fit_params)
        self.best_estimator_ = best
        self.refit_time_ = time.perf_counter() - began
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_

    # ---- results -------------------------------------------------------------------------------

    def _set_results(
        self,
        points: list[GridPoint],
        found: Mapping[tuple[int, int], ModelResult],
        splits: int,
        readings: int,
        scorers: Any,
        refit_metric: str,
    ) -> None:
        """Set the attributes of the results, and choose the best point."""
        self.n_splits_, self.n_readings_ = splits, readings
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        each = [found[p.number, split] for p in points for split in range(self.n_splits_)]
        warn_of_failures(points, found, self.error_score)
        self.nonzeros_ = np.array([one.nonzeros for one in each]).reshape(len(points), -1)
        scored = next(one.scores for one in each if not one.failure)
        self.multimetric_ = isinstance(scored, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(scored)
            refit_metric = self.refit
        failed = dict.fromkeys(scored, self.error_score) if self.multimetric_ else self.error_score
        chosen, out = [point.chosen for point in points], [one.as_scored(failed) for one in each]
        self.cv_results_ = self._format_results(chosen, splits, out)
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, refit_metric, self.cv_results_)
            if not callable(self.refit):
                self.best_score_ = self.cv_results_[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = self.cv_results_["params"][self.best_index_]
            if is_classifier(self.estimator):
                best, own = self.best_index_, range(self.n_splits_)
                warn_of_divergence(points[best], [found[best, split] for split in own])

    def _place_of_best(self, metric: str) -> Place | None:
        """Return the place of the best point by mean error and mean nonzeros over folds."""
        if f"mean_test_{metric}" not in self.cv_results_:
            return None  # there are several scores, and `refit` is a function
        return Place.of(frontier_of(self, metric), int(self.best_index_))

    @property
    def best_model_(self) -> Model:
        """The model of the best point."""
        model: Model = last_step(self.best_estimator_).model_
        return model

    def score(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Return the score of the best estimator on other rows.

        Parameters
        ----------
        X : CSR matrix, array, DataFrame of shape (rows, features), or source
        y : array of shape (rows,)
            Labels; None for a source, which contains its labels.
        **params
            More arguments of the scorer.
        """
        if not is_source(X):
            return super().score(X, y, **params)
        refuse_pipeline("OnePassSearchCV", self.estimator)
        named = scores_named(self.scoring, self.estimator.task, X.multilabel)
        found = score_source(self.best_model_, X, named)
        return found[self.refit if self.multimetric_ else "score"]

    # ---- sources -------------------------------------------------------------------------------

    def _fit_source(
        self, source: Any, points: list[GridPoint], classes: Any, run: RunOptions
    ) -> Self:
        folds = folds_of(self.cv, source)
        if folds:
            source = searched_rows(
                source, (p.params.get("shuffle", False) for p in points), "float64"
            )
        named = scores_named(self.scoring, self.estimator.task, source.multilabel)
        check_probabilities(named, points)
        scorers, refit_metric = self._get_scorers()
        check_source(self.estimator, source, points, classes)
        splits = SourceSplits(self.estimator, source, folds, points, classes)
        limit = checked_limit(self.memory_limit)
        saved = checkpoint_of(run, self.estimator, splits, points, self.scoring, limit, self.n_jobs)
        given = clone(self.estimator), splits, SumScores(splits, named), limit, self.n_jobs
        with told(self.verbose, self.callback, source.rows) as tell:
            search = Search(*given, tell, run, saved)
            readings = search.plan(points)
            found = search.go(readings)
        self._set_results(points, found, splits.scored, len(readings), scorers, refit_metric)
        if self.refit and source.rereadable:
            self._refit(run, saved, source)
        elif self.refit:
            self.best_estimator_, self.refit_time_ = search.model(self.best_index_), 0.0
        if self.refit:
            self.best_estimator_.amend(place=self._place_of_best(refit_metric))
        return self
