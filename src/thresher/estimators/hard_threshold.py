"""Gradient descent with hard thresholding.

An iteration makes two sparse products and one partition. SciPy and NumPy do them at the speed of
the memory, so the C++ core would not be faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from thresher.data.matrix_source import MatrixBlock
from thresher.errors import DataError, ParameterError, StepError, setting
from thresher.estimators.documentation import documented
from thresher.estimators.solvers import MatrixEstimator, output
from thresher.estimators.tasks import LinearRegressor
from thresher.model.model import Progress
from thresher.sums import dot
from thresher.training.first_rows import warn_of_columns
from thresher.training.run_options import RunOptions
from thresher.training.solver_run import SolverRun, State

Vector = NDArray[np.float64]

_MARGIN = 1.01  # Lanczos underestimates the largest eigenvalue, by up to 1e-4 of it


@documented
class HardThresholdRegressor(LinearRegressor, MatrixEstimator):
    """Regression by gradient descent with hard thresholding: a fixed number of nonzero weights.

    An iteration makes a gradient step on Psi = ||y - Xw||^2 / 2 and keeps the `n_nonzero` weights
    of largest magnitude (among equal ones, the first). With the safe step Psi never rises.
    With a longer step it may rise: a warning then names the safe step, and numbers that overflow
    are an error. The intercept is always kept, and does not count. It needs all rows at once; there
    is no partial_fit.

    {parameters}

    {attributes}
    psi_ : array of shape (n_iter_ + 1,)
        Psi at w = 0, and after each iteration; with step="safe", the intercept at w = 0 is the
        mean of y, else 0. `history_` has the mean loss: Psi over the sum of
        the sample weights.
    step_ : float
        The step size used.

    References
    ----------
    {paper}

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import HardThresholdRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 100))
    >>> y = 3.0 * X[:, 3] - 2.0 * X[:, 7] + rng.normal(size=500)
    >>> reg = HardThresholdRegressor(n_nonzero=2).fit(X, y)
    >>> reg.model_.indices.tolist(), reg.model_.weights.round(1).tolist()
    ([3, 7], [3.0, -2.0])
    """

    rule: ClassVar[str] = "hard-threshold"

    psi_: Vector
    step_: float

    def __init__(
        self,
        *,
        n_nonzero: int | None = None,
        step: float | str = "safe",
        passes: int = 1000,
        tol: float | None = 1e-4,
        fit_intercept: bool = True,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self._set(locals())

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
        kept = self._kept(*X.shape)
        evaluation = self._checked_eval_set(eval_set, run)
        targets = self._targets(y)
        rows, owner = MatrixBlock(X, y, None), type(self).__name__
        warn_of_columns(rows, owner, run.observer, self._column_name)
        scale, learned = self._standardised(targets, weights)
        problem = LeastSquares(X, learned[0], weights, bool(self.fit_intercept))
        solving = SolverRun(
            type(self).__name__, self.rule, self._own_params(),
            (X, targets, weights, evaluation), run,
        )  # fmt: skip
        if solving.resumed is None:
            step = self._step(problem)
            w, b, psi = np.zeros(X.shape[1]), 0.0, []
        else:
            about, states = solving.resumed
            step, b, psi = about["step"], about["intercept"], about["psi"]
            w = np.frombuffer(states[0]).copy()
        residual = problem.residual(w, b)
        if not psi:
            with np.errstate(over="ignore"):
                psi.append(0.5 * dot(residual, residual))
        if not np.isfinite(psi[0]):
            raise ValueError("y is too large: the sum of its squares overflows")

        def state() -> State:
            return {"step": step, "intercept": b, "psi": psi}, [w.tobytes()]

        while len(psi) <= self.passes:
            with np.errstate(over="ignore", invalid="ignore"):
                slope, slope_b = problem.slopes(residual)
                w, b = keep_largest(w + step * slope, kept), b + step * slope_b
                residual = problem.residual(w, b)
                psi.append(0.5 * dot(residual, residual))
            if not (np.isfinite(psi[-1]) and np.isfinite(w).all()):
                raise self._too_long(problem, step, psi)
            self._record(solving, evaluation, psi[-1] / problem.total, step, [w], [b], scale)
            if solving.stopped or (
                self.tol is not None and 0 <= psi[-2] - psi[-1] <= self.tol * psi[-2]
            ):
                break
            if len(psi) <= self.passes:
                solving.checkpoint_if_due(state)
        if _first_rise(psi) is not None:
            run.observer.warn(str(self._too_long(problem, step, psi)), ConvergenceWarning)
        self.psi_, self.step_ = np.array(psi) * (1.0 if scale is None else scale.unit), step
        return self._keep(params, X.shape, [output(w, float(b), scale)], solving)

    def _too_long(self, problem: LeastSquares, step: float, psi: list[float]) -> StepError:
        at = _first_rise(psi) or len(psi) - 1
        largest = problem.largest_eigenvalue()
        safe = "any step is" if largest == 0 else f"a step of {1 / largest:.3g} is"
        return StepError(
            (f"the sum of squares rose in iteration {at}, from {psi[at - 1]:.3g} to {psi[at]:.3g}: "
             f"the step {step:.3g} is too long; for these rows {safe} safe (",
             setting("step", "safe"), ")"),
            owner=type(self).__name__,
            parameter="step",
            value=step,
        )  # fmt: skip

    def _step(self, problem: LeastSquares) -> float:
        if self.step != "safe":
            return float(self.step)
        largest = problem.largest_eigenvalue()
        return 1.0 / largest if largest > 0 else 1.0

    def _kept(self, rows: int, width: int) -> int:
        if self.n_nonzero is None:
            return min(width, max(10, rows // 10, width // 10))
        if self.n_nonzero > width:
            raise ParameterError(
                owner=type(self).__name__,
                parameter="n_nonzero",
                value=self.n_nonzero,
                allowed=f"at most the number of features, {width}",
            )
        return int(self.n_nonzero)


class LeastSquares:
    """Products with A = diag(sqrt(s)) [X 1], without forming A; s are the sample weights."""

    def __init__(self, X: Any, y: Vector, weights: Vector | None, fit_intercept: bool) -> None:
        _check_values(X)
        self.X = X.astype(np.float64, copy=False)
        self.root = np.ones(X.shape[0]) if weights is None else np.sqrt(weights)
        self.total = dot(self.root, self.root)  # S, the sum of the sample weights
        if self.total == 0:
            raise ValueError("the sample weights must have a sum above 0")
        self.target = self.root * y
        self.fit_intercept = fit_intercept

    def residual(self, w: Vector, b: float) -> Vector:
        """Return the target minus A (w, b)."""
        return np.asarray(self.target - self.root * (self.X @ w + b))

    def slopes(self, residual: Vector) -> tuple[Vector, float]:
        """Return A' residual: the entries for the weights, and the entry for the intercept."""
        weighted = self.root * residual
        return self.X.T @ weighted, float(weighted.sum()) if self.fit_intercept else 0.0

    def largest_eigenvalue(self) -> float:
        """Return an upper bound of the largest eigenvalue of A'A, about 1% above it."""
        width = self.X.shape[1] + self.fit_intercept

        def product(v: Vector) -> Vector:
            v = v.ravel()
            w, b = (v[:-1], v[-1]) if self.fit_intercept else (v, 0.0)
            slope, slope_b = self.slopes(self.root * (self.X @ w + b))
            return np.append(slope, slope_b) if self.fit_intercept else slope

        start = np.random.default_rng(0).normal(size=width)
        with np.errstate(over="ignore", invalid="ignore"):
            image = product(start)
        if not (np.abs(image) < 1e300).all():
            raise ValueError("X is too large: sums of its squares overflow")
        if width <= 16:
            gram = np.column_stack([product(column) for column in np.eye(width)])
            return _rounded_up(_MARGIN * float(np.linalg.eigvalsh(gram)[-1]))
        if not image.any():
            return 0.0
        gram = LinearOperator((width, width), matvec=product, dtype=np.float64)
        found = eigsh(gram, k=1, which="LA", v0=start, tol=1e-4, return_eigenvectors=False)
        return _rounded_up(_MARGIN * float(found[0]))


def _rounded_up(size: float) -> float:
    """Return a number of 12 bits, at least `size`.

    The last bits of eigenvalues depend on LAPACK, and so on the processor. A step must not.
    """
    mantissa, exponent = math.frexp(size)
    return math.ldexp(math.ceil(math.ldexp(mantissa, 12)), exponent - 12)


def keep_largest(v: Vector, s: int) -> Vector:
    """Return H(v, s): the s entries of largest magnitude, 0 elsewhere; ties keep lower indices."""
    if s >= len(v):
        return v
    size = np.abs(v)
    least = np.partition(size, len(v) - s)[len(v) - s]
    keep = size > least
    keep[np.flatnonzero(size == least)[: s - np.count_nonzero(keep)]] = True
    return np.where(keep, v, 0.0)


def _first_rise(psi: list[float]) -> int | None:
    """Return the first iteration that raised Psi by more than rounding errors."""
    for k in range(1, len(psi)):
        if not psi[k] <= psi[k - 1] * (1 + 1e-9) + 1e-12 * psi[0]:
            return k
    return None


def _check_values(X: Any) -> None:
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore"):
        fine = np.isfinite(values * values)
    if fine.all():
        return
    at = np.flatnonzero(~fine.ravel())[0]
    if sp.issparse(X):
        row, column = int(np.searchsorted(X.indptr, at, "right")) - 1, X.indices[at]
    else:
        row, column = divmod(int(at), X.shape[1])
    value = "NaN" if np.isnan(values.ravel()[at]) else f"{values.ravel()[at]:.3g}"
    raise DataError(
        f"row {row}: the value of feature {column} is {value}; values must be finite, with finite "
        f"squares in the dtype"
    )
