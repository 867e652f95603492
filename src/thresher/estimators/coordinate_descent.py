"""Coordinate descent: Newton steps on working sets, or random coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from thresher import _core
from thresher.errors import StepError, setting
from thresher.estimators.documentation import documented
from thresher.estimators.newton_steps import NewtonSteps
from thresher.estimators.solvers import output
from thresher.estimators.tasks import LinearClassifier, LinearRegressor
from thresher.model.model import Progress
from thresher.rules import core_args
from thresher.rules.parameter import AUTO_L1
from thresher.training.run_options import RunOptions
from thresher.training.solver_run import SolverRun, State

_CHUNK = 1 << 22  # nonzeros visited between two checks for Ctrl-C
_REFRESH = 8  # scans after which predictions and all violations are computed again
_INTERCEPT = -1  # in a list of draws: a step of the intercept
_STILL = 1e-4  # tol="auto": a scan that lowers the objective by a larger share is not the last


class CoordinateDescent(NewtonSteps):
    """Base of the classifier and the regressor: scans until `tol`."""

    _layout: ClassVar[str] = "csc"

    violation_: NDArray[np.float64]

    def _fit(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: Any,
        eval_set: Any,
        run: RunOptions,
    ) -> Self:
        params = self._checked_params()
        weights = self._row_weights(y, self._checked_weights(sample_weight, X))
        targets = self._targets(y)
        evaluation = self._checked_eval_set(eval_set, run)
        columns, count = _columns(X)
        total = X.shape[0] if weights is None else max(float(weights.sum()), 1e-300)
        l1 = AUTO_L1 / total if self.l1 == "auto" else float(self.l1)
        scale, learned = self._standardised(targets, weights)
        epsilon = core_args.epsilon_of(self.rule, params, scale is not None)
        newton = self.step == "newton" and l1 > 0
        step = self.step if self.step == "global" else "coordinate"
        solvers = [
            _core.CoordinateDescent(columns, target, weights, self._loss(), epsilon, l1, step)
            for target in learned
        ]
        solving = SolverRun(
            type(self).__name__, self.rule, self._own_params(),
            (X, targets, weights, evaluation), run,
        )  # fmt: skip
        if newton:
            extras = self._newton(solvers, solving, evaluation, scale)
            found = [output(solver.weights(), solver.intercept(), scale) for solver in solvers]
            return self._keep(params, X.shape, found, solving, extras)
        self.__dict__.pop("duality_gap_", None)
        rng = solving.generator()
        goals = [self._goal(solver) for solver in solvers]
        objectives = [solver.objective() for solver in solvers]
        active = list(range(len(solvers)))  # outputs that have not reached their goals
        moving = [False] * len(solvers)  # whether the last scan lowered the objective too much
        if solving.resumed is not None:
            about, states = solving.resumed
            rng.bit_generator.state = about["rng"]
            objectives, active = about["objectives"], about["going"]
            for solver, saved in zip(solvers, states, strict=True):
                solver.restore(saved)

        def state() -> State:
            known = {"rng": rng.bit_generator.state, "objectives": objectives, "going": active}
            return known, [solver.state() for solver in solvers]

        for scan in range(len(solving.history) + 1, self.passes + 1):
            draws = self._draws(X.shape, count, rng)
            for k in tuple(active):
                largest = _steps(solvers[k], draws, max(1.0, count / X.shape[1]))
                if scan % _REFRESH == 0:
                    solvers[k].refresh()
                # The steps compute violations anyway; all are computed only if those are small.
                near = (scan % _REFRESH == 0 or largest <= 2 * goals[k]) and (
                    solvers[k].violation(self.fit_intercept) <= goals[k]
                )
                before = objectives[k]
                objectives[k] = self._checked_objective(solvers[k], before)
                moving[k] = self.tol == "auto" and before - objectives[k] > _STILL * objectives[k]
                if near and not moving[k]:
                    active.remove(k)
            self._record(
                solving, evaluation, float(np.mean(objectives)), 0.0,
                [solver.weights() for solver in solvers],
                [solver.intercept() for solver in solvers], scale,
            )  # fmt: skip
            if solving.stopped or not active:
                break
            if scan < self.passes:
                solving.checkpoint_if_due(state)
        slope = 1.0 if scale is None or scale.sd == 0 else scale.unit / scale.sd  # the user's unit
        violations = [solver.violation(self.fit_intercept) for solver in solvers]
        self.violation_, goals = slope * np.array(violations), [slope * goal for goal in goals]
        if self.tol and not solving.stopped and (self.violation_ > goals).any():
            run.observer.warn(
                f"{type(self).__name__}: after {self.passes} scans the optimality conditions are "
                f"violated by {self.violation_.max():.3g}, and tol allows {min(goals):.3g}; use "
                f"more passes, or a larger tol",
                ConvergenceWarning,
            )
        elif any(moving) and active and not solving.stopped:
            run.observer.warn(
                f"{type(self).__name__}: the objective still fell in the last of {self.passes} "
                f"scans; use more passes, or scale the columns "
                f"(thresher.preprocessing.UnitVarianceScaler)",
                ConvergenceWarning,
            )
        found = [output(solver.weights(), solver.intercept(), scale) for solver in solvers]
        return self._keep(params, X.shape, found, solving)

    def _draws(
        self, shape: tuple[int, int], count: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the coordinates of a scan.

        There are as many uniform draws as features. Steps of the intercept are spread evenly among
        them: one, or more if they take at most an eighth of the time of the others.
        """
        rows, width = shape
        draws = rng.integers(0, width, width)
        if not self.fit_intercept:
            return draws
        times = int(np.clip(count // (8 * rows), 1, width))
        return np.insert(draws, np.arange(times) * width // times, _INTERCEPT)

    def _goal(self, solver: _core.CoordinateDescent) -> float:
        """Return the violation to stop at: tol times the largest slope at w = 0."""
        steepest = max(solver.largest_gradient(), solver.violation(self.fit_intercept))
        if self.tol is None:
            return -1.0
        return core_args.number_of(self.rule, {"tol": self.tol}, "tol") * steepest

    def _checked_objective(self, solver: _core.CoordinateDescent, before: float) -> float:
        now = solver.objective()
        if self.step == "global" and not now <= before + 1e-9 * abs(before):
            feature, square = solver.steepest()
            raise StepError(
                (f"the objective rose from {before:.6g} to {now:.6g}: ", setting("step", "global"),
                 f" is for features in [-1, 1], and the squares of feature {feature} have the mean "
                 f"{square:.3g}"),
                owner=type(self).__name__,
                hint=("scale the features, or use ", setting("step", "coordinate")),
            )  # fmt: skip
        return now


def _steps(solver: _core.CoordinateDescent, draws: NDArray[np.int64], per_draw: float) -> float:
    """Make the steps of a scan; return the largest violation that the steps computed."""
    size = max(1, int(_CHUNK / per_draw))
    return max(solver.steps(draws[at : at + size]) for at in range(0, len(draws), size))


def _columns(X: Any) -> tuple[_core.Batch, int]:
    """Return the columns of X without a copy if possible, and the number of stored values."""
    if not sp.issparse(X):
        X = sp.csc_matrix(X)
    elif not X.has_canonical_format:
        X = X.copy()  # the caller's X must not change
        X.sum_duplicates()
    starts, keys, values = map(np.ascontiguousarray, (X.indptr, X.indices, X.data))
    return _core.sparse_batch(starts, keys, values, X.shape[0]), int(X.nnz)


@documented
class CoordinateDescentClassifier(LinearClassifier, CoordinateDescent):
    """Classification by coordinate descent: the exact optimum of an l1 penalty.

    It minimises mean loss + l1 ||w||_1 for data that fit in memory; rules that read a stream can be
    compared with it. The objective never rises. The duality gap tells how far the objective is from
    its minimum: it is in `duality_gap_`, in the history, and a certificate of the model. With
    ``step="coordinate"``, each step draws a coordinate at random and moves it to the minimum of a
    parabola above the objective; this is slow if there is an intercept and features have means far
    from 0. CSC matrices are not copied; others are converted. There is no partial_fit.

    {parameters}

    {attributes}
    duality_gap_ : array of shape (outputs,)
        Upper bounds of the objective minus its minimum; only with ``step="newton"``.
    violation_ : array of shape (outputs,)
        Largest violation of the optimality conditions: |g_j| - l1 where w_j = 0, and
        |g_j + l1 sgn(w_j)| elsewhere, where g is the gradient of the mean loss.

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import CoordinateDescentClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 100))
    >>> y = X[:, 3] - X[:, 7] + 0.5 * rng.normal(size=500) > 0
    >>> clf = CoordinateDescentClassifier(l1=0.05, random_state=0).fit(X, y)
    >>> sorted(feature.name for feature in clf.model_.top(2)), clf.model_.nnz
    ([3, 7], 2)
    """

    rule: ClassVar[str] = "coordinate-descent"

    def __init__(
        self,
        *,
        loss: str = "logistic",
        l1: float | str = "auto",
        step: str = "newton",
        passes: int = 1000,
        tol: float | str | None = "auto",
        epsilon: float | str = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())


@documented
class CoordinateDescentRegressor(LinearRegressor, CoordinateDescent):
    """Regression by coordinate descent: the lasso, also with a robust loss.

    See `CoordinateDescentClassifier` for the rule. With the loss "squared" it solves the same
    problem as scikit-learn's Lasso with alpha = l1.

    {parameters}

    {attributes}
    duality_gap_ : array of shape (outputs,)
        Upper bounds of the objective minus its minimum; only with ``step="newton"``.
    violation_ : array of shape (outputs,)
        Largest violation of the optimality conditions: |g_j| - l1 where w_j = 0, and
        |g_j + l1 sgn(w_j)| elsewhere, where g is the gradient of the mean loss.

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import CoordinateDescentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 100))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + rng.normal(size=500)
    >>> reg = CoordinateDescentRegressor(l1=0.2, random_state=0).fit(X, y)
    >>> reg.coef_[0, [3, 7]].round(1).tolist(), reg.model_.nnz
    ([2.8, -1.8], 2)
    """

    rule: ClassVar[str] = "coordinate-descent"

    def __init__(
        self,
        *,
        loss: str = "squared",
        l1: float | str = "auto",
        step: str = "newton",
        passes: int = 1000,
        tol: float | str | None = "auto",
        epsilon: float | str = "auto",
        fit_intercept: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())
