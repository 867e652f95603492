"""Stabilized truncated SGD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray

from thresher import _core
from thresher.data import as_batch
from thresher.data.matrix_source import MatrixBlock
from thresher.data.targets import Targets
from thresher.errors import OutOfMemoryError
from thresher.estimators.documentation import documented
from thresher.estimators.effective_rows import EffectiveRows
from thresher.estimators.solvers import WholeMatrixEstimator
from thresher.estimators.stages import Stages
from thresher.estimators.tasks import PartialClassifier
from thresher.health.watch import NoSignalWarning
from thresher.model.evidence import Evidence, join_known, no_signal_text
from thresher.model.model import Output, Progress
from thresher.rules import core_args
from thresher.threads import jobs_of
from thresher.training.first_rows import warn_of_columns
from thresher.training.fitted import FittedState
from thresher.training.order_watch import watched_batch
from thresher.training.run_options import RunOptions
from thresher.training.solver_run import SolverRun


@documented
class StabilizedClassifier(PartialClassifier, WholeMatrixEstimator):
    """Classification by stabilized truncated SGD: few features, and a stable selection of them.

    Several paths of SGD learn the rows, each in its own order. Features on which they agree are
    kept; others are purged for good, stage by stage. The model is the mean of the paths.
    ``model_.why(feature)`` shows why a feature was kept or purged.

    With the default ``variant="robust"``, pairs of paths learn from the two halves of random splits
    of the rows. Each stage sums two numbers for every feature: its weight, and the agreement of its
    updates (their sum over the square root of their sum of squares, which is low for a feature that
    occurs once). Features are ranked by the product of both and the root mean square of the
    feature. The lower half is purged, until `target_nnz` are left, whose weights are then learned
    again. This variant has an intercept.

    If `target_nnz` is None, the labels choose the number of features. Before the first stage, paths
    on the two halves of random splits judge features by their own half, and models of halving
    numbers of features are measured on the other half. If none is better than the intercept alone
    by two standard errors, there is no signal: no feature is kept, the model is the intercept (the
    log-odds), and there is a `thresher.health.NoSignalWarning`. Otherwise the number is twice an
    average of all numbers that may be the best: their geometric mean, in which a number counts less
    the more standard errors it is worse than the best. With more than two classes, each class
    against the others has its own number, and may have none.

    ``variant="paper"`` is the published algorithm with its misprints corrected: bursts of a few
    steps, truncation in proportion to the rows that had a feature, gravity from a quantile of the
    updates. It has no intercept. With hinge loss its gravity is soon 0 (there is a warning), and it
    prefers features that occur once; it is included for comparison.

    In a stream, each path learns each batch of `partial_fit` in its own order; pass as many rows
    per call as memory allows, at least some hundreds. The robust variant purges after every 500
    rows or more. A stream does not know its rows beforehand: without `target_nnz` it keeps
    sqrt(rows * features / 10) features, or min(400, features / 3) if that is more. From the second
    batch on, every batch is predicted before it is learned. As long as these predictions are not
    better than those of the intercept alone by two standard errors, the model has no features, and
    there is the same warning; learning goes on.

    {parameters}

    {attributes}

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import StabilizedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 200))
    >>> y = X[:, 3] - X[:, 7] + 0.1 * rng.normal(size=500) > 0
    >>> clf = StabilizedClassifier(target_nnz=2, random_state=0).fit(X, y)
    >>> clf.model_.indices.tolist()
    [3, 7]
    >>> clf.model_.why(5).purged_at
    1
    """

    rule: ClassVar[str] = "stabilized"

    _learners: list[_core.StabilizedLearner]
    _documents: NDArray[np.int64]  # number of rows with each feature
    _effective: EffectiveRows | None  # None: pickled before it was recorded
    _positive: NDArray[np.float64]  # sum of the weights of the positive rows of each output
    _weight: float  # sum of the weights of all rows
    _seed: int

    def __init__(
        self,
        *,
        loss: str = "logistic",
        variant: str = "robust",
        target_nnz: int | None = None,
        rejection: float | str = "auto",
        keep: float = 0.5,
        min_updates: int | str = "auto",
        paths: int = 16,
        annealing: float = -1.0,
        burst: int = 5,
        bursts: int = 5,
        burst_growth: float | None = None,
        count: str = "x",
        gravity_rule: str = "update-quantile",
        eta0: float | str = "auto",
        tol: float | None = None,
        n_jobs: int | None = None,
        passes: int = 20,
        dtype: str = "float32",
        class_weight: Any = None,
        random_state: Any = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())

    # ---- fitting -------------------------------------------------------------------------------

    def _fit(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        eval_set: Any,
        run: RunOptions,
    ) -> Self:
        params, targets = self._checked_params(), self._targets(y)
        given = self._checked_weights(sample_weight, X)
        weights = self._row_weights(y, given)
        evaluation = self._checked_eval_set(eval_set, run)
        rows, owner = MatrixBlock(X, y, None), type(self).__name__
        warn_of_columns(rows, owner, run.observer, self._column_name)
        solving = self._run((X, targets, weights, evaluation), run)
        self._begin(X, params, len(targets), X.shape[0], solving)
        self._learn(X, targets, weights, given, self.passes, solving)
        if evaluation is not None:
            rows, targets = evaluation
            losses = [
                _core.loss_values(self._loss(), 0.0, 0.5, raw, target)[0].mean()
                for raw, target in zip(self.model_.raw(rows).T, targets, strict=True)
            ]
            last = self.history_[-1]._replace(valid_loss=float(np.mean(losses)))
            self.take(replace(self._fitted, history=[*self.history_[:-1], last]))
        return self

    def _partial_fit(self, X: Any, y: NDArray[Any], sample_weight: Any, **prepare: Any) -> Self:
        params, targets = self._checked_params(continuing=not self._is_new()), self._targets(y)
        given = self._checked_weights(sample_weight, X)
        weights = self._row_weights(y, given)
        solving = self._run((X, targets, weights))
        if self._is_new():
            self._begin(X, params, len(targets), None, solving)
        self._learn(X, targets, weights, given, 1, solving)
        order = watched_batch(self._fitted.order, self._labels(), targets, solving.observer)
        return self.take(replace(self._fitted, order=order))

    def _run(self, rows: Sequence[Any], options: RunOptions | None = None) -> SolverRun:
        params = self._own_params()
        return SolverRun(type(self).__name__, self.rule, params, rows, options)

    def _begin(
        self, X: Any, params: dict[str, Any], outputs: int, rows: int | None, run: SolverRun
    ) -> None:
        self.take(FittedState(self.rule, params, params, rows, X.shape[1], classes=self.classes_))
        self._seed = int(run.generator().integers(2**31))
        self._learners = self._new_learners(outputs)
        self._documents = np.zeros(X.shape[1], np.int64)
        self._positive, self._weight = np.zeros(outputs), 0.0
        self._effective = EffectiveRows(X.shape[1]) if params["variant"] == "robust" else None

    def _new_learners(self, outputs: int) -> list[_core.StabilizedLearner]:
        params, width = self._fitted.params, self._fitted.width
        numbers, words = core_args.stabilized_parameters(params, self._seed, self._fitted.rows)
        try:
            return [
                _core.make_stabilized(params["variant"], params["dtype"], width, numbers, words)
                for _ in range(outputs)
            ]
        except MemoryError:
            raise OutOfMemoryError(
                f"not enough memory for {outputs} x {params['paths']} paths of {width} weights",
                owner=type(self).__name__,
            ) from None

    def _learn(
        self,
        X: Any,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        given: NDArray[np.float64] | None,
        passes: int,
        run: SolverRun,
    ) -> Self:
        batch, jobs = as_batch(X), effective_n_jobs(jobs_of(self.n_jobs))
        had_signal = [learner.has_signal() for learner in self._learners]
        learners = self._copies(self._learners) if len(self._learners) > 1 else self._learners
        rows = X.shape[0] * passes
        stages = Stages(self._fitted.params, self.history_, run, learners, rows)
        while stages.output < len(learners):
            batch.set_targets(targets[stages.output], weights)
            learners[stages.output].learn(
                batch, passes, self.tol or 0.0, jobs, stages.record_stage, stages.between_stages,
                stages.unfinished,
            )  # fmt: skip
            stages.end_output()  # after a stop, each further output makes one stage
        self._learners = learners
        self._documents = self._documents + _documents(X)
        each = np.ones(X.shape[0]) if weights is None else weights
        self._positive = self._positive + [_total(each[labels > 0]) for labels in targets]
        self._weight += _total(each)
        if self._effective is not None:
            self._effective.add(X, given)
        history = [*self.history_, *run.history]
        self.take(self._state(history, self.n_iter_ + stages.passes(X.shape[0])))
        # In a stream, the warning comes once, not with every batch.
        if any(had and not one.has_signal() for had, one in zip(had_signal, learners, strict=True)):
            message = f"{type(self).__name__}: {no_signal_text(self.model_)}"
            run.observer.warn(message, NoSignalWarning)
        return self

    def _state(self, history: list[Progress], passes: int) -> FittedState:
        """Return the fitted state with the current weights of the learners."""
        return replace(
            self._fitted,
            history=history,
            passes=passes,
            weights=self._weights(),
            extras={"evidence": self._evidence()},
        )

    # ---- weights and state ---------------------------------------------------------------------

    def _weights(self) -> list[Output]:
        target = self._fitted.target  # a stream may not have purged yet
        return [
            Output(*learner.weights(), learner.intercept()).largest(target)
            for learner in self._learners
        ]

    def _evidence(self) -> Evidence:
        found = [learner.findings() for learner in self._learners]
        robust = self._fitted.params["variant"] == "robust"
        features = np.concatenate([keys for keys, *_ in found])
        indptr = np.cumsum([0] + [len(keys) for keys, *_ in found], dtype=np.int64)
        z = join_known([learner.label_z() if robust else None for learner in self._learners])
        columns = features.astype(np.intp)
        shares = self._positive / self._weight if self._weight > 0 else self._positive * np.nan
        return Evidence(
            indptr=indptr,
            features=features,
            probability=np.concatenate([probability for _, probability, _, _ in found]),
            updates=np.concatenate([updates for _, _, updates, _ in found]),
            purged=np.concatenate([purged for *_, purged in found]),
            documents=self._documents[columns],
            z=z,
            rows=self._effective_rows(columns, indptr, z, shares),
            shares=shares if robust else None,
            signal=(
                np.array([learner.has_signal() for learner in self._learners], np.uint8)
                if robust
                else None
            ),
        )

    def _effective_rows(
        self, columns: NDArray[np.intp], indptr: NDArray[np.int64], z: Any, shares: Any
    ) -> NDArray[np.float64] | None:
        """Return the effective rows: at least as many as can have this z, if values differ."""
        if self._effective is None or z is None:
            return None
        rarer = np.minimum(shares, 1.0 - shares)
        odds = np.repeat(rarer / (1.0 - rarer), np.diff(indptr))
        found = self._effective.numbers()[columns]
        return np.asarray(np.maximum(found, z**2 * odds * self._effective.evenness()))

    def take(self, state: FittedState) -> Self:
        """Set all fitted attributes from a state.

        Parameters
        ----------
        state : FittedState
        """
        if state.final:
            self.__dict__.pop("_learners", None)
        return super().take(state)

    def _copies(self, learners: Sequence[_core.StabilizedLearner]) -> list[_core.StabilizedLearner]:
        copies = self._new_learners(len(learners))
        for copy, learner in zip(copies, learners, strict=True):
            copy.restore(learner.state())
        return copies

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_learners" in state:
            state["_learners"] = [learner.state() for learner in self._learners]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_learners" in state:
            if "_weight" not in state:  # pickled before shares were recorded
                self._positive, self._weight = np.full(len(state["_learners"]), np.nan), np.nan
                self._effective = None
            self._learners = self._new_learners(len(state["_learners"]))
            for learner, saved in zip(self._learners, state["_learners"], strict=True):
                learner.restore(saved)
            if self._fitted.weights is None:  # pickled by version 0.1.0
                self._fitted = self._state(self.history_, self.n_iter_)


def _total(numbers: NDArray[np.float64]) -> float:
    """Return a plain sum, in order: the same bits as on a cluster."""
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0


def _documents(X: Any) -> NDArray[np.int64]:
    """Return the number of rows with each feature."""
    if sp.issparse(X):
        if X.has_canonical_format and X.data.all():
            return np.bincount(X.indices, minlength=X.shape[1])
        X = X.copy()
        X.sum_duplicates()
        return np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    return np.asarray(np.count_nonzero(X, axis=0), np.int64)
