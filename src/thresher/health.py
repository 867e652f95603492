"""Numerical health: what data and weights do to the arithmetic, before, in and after training.

Exponents of the weights (R-11.5), spectral radius and safe steps of gradient descent (R-10.3 to
R-10.6), range of the columns, a watch for divergence. SciPy is imported when it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.certificates import CURVATURE, FLAT, checked, summed
from thresher.data import is_sparse
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    from thresher.model import Progress

__all__ = [
    "DivergenceWarning", "DivergenceWatch", "DynamicRange", "ExponentSpread", "HealthReport",
    "OddColumn", "SafeStep", "SpectralRadius", "check", "dynamic_range", "exponents", "potential",
    "safe_step", "spectral_radius",
]  # fmt: skip

_DENSE = 400  # rows or columns up to which spectra are computed densely
_LOSSES = (*CURVATURE, *FLAT, "poisson")
_JOINED = 100  # rows that a watch judges together


@dataclass(frozen=True)
class ExponentSpread:
    """How far apart the magnitudes of weights lie; of no weights, all is None (R-11.5)."""

    within: float | None  # share that double precision can add to the largest: to 2^51 below it
    within_single: float | None  # the same of single precision: to 2^22 below it
    mean: float | None  # of the exponents floor(log2 |w|)
    std: float | None
    largest: int | None
    smallest: int | None
    counts: Mapping[int, int]  # number of weights by exponent, increasing

    def __str__(self) -> str:
        if self.within is None or self.within_single is None:
            return "no nonzero weights"
        text = f"{sum(self.counts.values()):,} weights from 2^{self.smallest} to 2^{self.largest}: "
        if self.within_single == 1.0:
            return text + "single precision loses none"
        single, double = (f"{100 - 100 * w:.3g}%" for w in (self.within_single, self.within))
        return text + f"single precision loses {single} beside the largest, double {double}"


def exponents(source: Any) -> ExponentSpread:
    """Measure the spread of the exponents of weights.

    Parameters
    ----------
    source : Model, fitted estimator, array or sparse matrix

    Examples
    --------
    >>> print(exponents([4.0, 0.0, -1.0, 1e-9]))
    3 weights from 2^-30 to 2^2: single precision loses 33.3% beside the largest, double 0%
    """
    source = getattr(source, "model_", source)
    source = getattr(source, "weights", getattr(source, "coef_", source))
    try:
        weights = np.asarray(source.tocsr().data if is_sparse(source) else source, np.float64)
    except (TypeError, ValueError):
        raise ParameterError("source must be a model, a fitted estimator or weights") from None
    if not np.isfinite(weights).all():
        raise DataError("a weight is not finite: training diverged")
    e = np.frexp(weights[weights != 0])[1] - 1
    if not e.size:
        return ExponentSpread(None, None, None, None, None, None, {})
    values, counts = (part.tolist() for part in np.unique(e, return_counts=True))
    double, single = (float(np.mean(e >= values[-1] - bits)) for bits in (51, 22))
    moments, table = (float(e.mean()), float(e.std())), dict(zip(values, counts, strict=True))
    return ExponentSpread(double, single, *moments, values[-1], values[0], table)


@dataclass(frozen=True)
class SpectralRadius:
    """Spectral radius of gradient descent restricted to a support (R-10.3)."""

    radius: float  # worst growth of the error an iteration; 1 is normal with dependent columns
    largest_singular: float  # of the columns; where not converged, these are upper bounds
    smallest_singular: float
    diverges: bool  # for certain: eta * largest_singular^2 > 2
    converged: bool  # both singular values were found
    interval: tuple[float, float]  # where the radius lies; `radius` is the upper end

    def __str__(self) -> str:
        low, high = self.interval
        text = f"{high:.6g}" if self.converged else f"between {low:.6g} and {high:.6g}"
        verdict = "diverges" if self.diverges else "converges" if high < 1 else "may not converge"
        return f"spectral radius {text}: gradient descent {verdict} at this step"


def spectral_radius(
    X: Any, eta: float, support: Any = None, tol: float = 1e-7, max_iter: int = 300
) -> SpectralRadius:
    """Find the spectral radius of D_J (I - eta X'X), with D_J the projection on a support J.

    It is the largest |1 - eta s^2| of the singular values s of X[:, J] (R-10.4), found without a
    copy of X: densely where the rows or J are at most 400, else by Lanczos iteration.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    eta : float
        Step of w <- w + eta X'(y - Xw).
    support : boolean mask or indices, optional
        J; None is all columns.
    tol : float
        Accuracy of the squared singular values that Lanczos finds, relative to the largest.
    max_iter : int
        Restarts of the Lanczos iteration.

    Examples
    --------
    >>> print(spectral_radius(np.diag([2.0, 1.0, 9.0]), eta=0.25, support=[0, 1]))
    spectral radius 0.75: gradient descent converges at this step
    """
    X, _, at, values = checked(X)
    if not 0 < eta < math.inf:
        raise ParameterError(f"eta must be a finite number > 0; got {eta!r}")
    mask = np.full(X.shape[1], support is None)
    try:
        mask[[] if support is None else support] = True
    except IndexError as error:
        raise ParameterError(f"support must be columns of X, or a mask: {error}") from None
    if not mask.any():
        return SpectralRadius(0.0, 0.0, 0.0, False, True, (0.0, 0.0))
    squares = summed(at, values, X.shape[1], power=2)
    bounds = _extremes(X, squares[mask], None if mask.all() else mask, tol, max_iter)
    growth = [[abs(1 - eta * s) for s in ends] for ends in bounds]
    inside = [eta * low < 1 < eta * high for low, high in bounds]
    least = max(0.0 if zero else min(g) for zero, g in zip(inside, growth, strict=True))
    most, (high, low) = max(map(max, growth)), bounds
    found = high[0] == high[1] and low[0] == low[1]
    roots = math.sqrt(high[1]), math.sqrt(low[1])
    return SpectralRadius(most, *roots, eta * high[0] > 2 * (1 + tol), found, (least, most))


@dataclass(frozen=True)
class SafeStep:
    """Rates that cannot diverge; None where there are none, and the reason."""

    batch: float | None  # for the gradient of the sum over all rows: the loss falls
    online: float | None  # for the gradient of a row: no step overshoots; twice this may diverge
    largest_row: float  # largest norm of a row; clipped_square divides rows by sqrt(nonzeros)
    reason: str = ""

    def __str__(self) -> str:
        if self.batch is None or self.online is None:
            return f"safe step: not available, because {self.reason}"
        return f"safe step: {self.online:.4g} a row, {self.batch:.4g} for all rows at once"


def safe_step(
    X: Any, loss: str = "squared", sample_weight: ArrayLike | None = None,
    fit_intercept: bool = False,
) -> SafeStep:  # fmt: skip
    """Find rates that are certain not to diverge: 1 / (curvature of the loss * largest square).

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    loss : str
    sample_weight : array of shape (rows,), optional
    fit_intercept : bool
        An intercept is learned too, at the same rate.

    Examples
    --------
    >>> print(safe_step([[3.0, 0.0], [0.0, 1.0]], loss="squared"))
    safe step: 0.1111 a row, 0.1111 for all rows at once
    """
    X, rows, at, values = checked(X)
    if loss not in _LOSSES:
        raise ParameterError(f"loss must be one of {', '.join(_LOSSES)}; got {loss!r}")
    n, width = X.shape
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ParameterError("sample_weight must be a finite number >= 0 for each row")
    if loss == "clipped_square":
        values = values / np.sqrt(np.bincount(rows, minlength=n))[rows]
    squares = summed(rows, values, n, power=2)
    largest_row = math.sqrt(squares.max(initial=0.0))
    if loss not in CURVATURE:
        reason = f"{loss} has a bounded slope and no curvature: no rate diverges, none is safe"
        poisson = "the curvature of poisson, exp(p), has no bound"
        return SafeStep(None, None, largest_row, poisson if loss == "poisson" else reason)
    if fit_intercept or sample_weight is not None or loss == "clipped_square":
        from scipy.sparse import csr_array

        if fit_intercept:
            rows, at = np.append(rows, np.arange(n)), np.append(at, np.full(n, width))
            values, squares, width = np.append(values, np.ones(n)), squares + 1.0, width + 1
        values = values * np.sqrt(weights)[rows]
        X = csr_array((values, (rows, at)), shape=(n, width))
    largest = _extremes(X, summed(at, values, width, power=2), smallest=False)[0][1]
    pair = largest, float((weights * squares).max(initial=0.0))
    batch, online = (1 / (CURVATURE[loss] * s) if s > 0 else math.inf for s in pair)
    return SafeStep(batch, online, largest_row)


def potential(X: Any, y: ArrayLike, w: ArrayLike) -> float:
    """Return ||y - Xw||^2 / 2, which a safe step of gradient descent never raises (R-10.2).

    Examples
    --------
    >>> potential(np.eye(2), [3.0, 4.0], [0.0, 0.0])
    12.5
    """
    X, target, weights = X if is_sparse(X) else np.asarray(X), np.asarray(y), np.asarray(w)
    if X.shape != (*target.shape, *weights.shape):
        raise ParameterError(f"X {X.shape}, y {target.shape} and w {weights.shape} do not fit")
    return 0.5 * float(np.sum(np.square(target - X @ weights, dtype=np.float64)))


class OddColumn(NamedTuple):
    """A column whose largest absolute value is `ratio` times that of the median column."""

    column: int
    name: str | None
    ratio: float

    def __str__(self) -> str:
        name = "" if self.name is None else f" {self.name!r}"
        than = "larger" if self.ratio > 1 else "smaller"
        times = self.ratio if self.ratio > 1 else 1 / self.ratio if self.ratio else math.inf
        scale = "scale it (thresher.preprocessing.UnitVarianceScaler)"
        text = f"column {self.column}{name} is {times:.2g} times {than} than the median column"
        return f"{text}: {scale}"


@dataclass(frozen=True)
class DynamicRange:
    """How far apart the magnitudes of values lie; of no values, the numbers are None."""

    columns: tuple[OddColumn, ...]  # the odd ones, farthest from the median first
    median: float | None  # over columns, of their largest absolute value
    largest: float | None  # absolute value
    smallest: float | None  # that is not zero
    ratio: float | None  # of the two
    subnormal: float  # share of the values below 2^-126, which single precision blurs
    constant: tuple[int, ...]  # columns of one value, not zero, in all rows
    empty: int  # columns without values

    @property
    def warnings(self) -> list[str]:
        """What is wrong, a line each."""
        lines = [str(column) for column in self.columns[:10]]
        if len(self.columns) > 10:
            lines.append(f"{len(self.columns) - 10:,} more columns are far from the median")
        if self.subnormal:
            lines.append(f"{self.subnormal:.2%} of the values are too small for single precision")
        return lines

    def __str__(self) -> str:
        if self.median is None:
            return "no values that are not zero"
        text = f"values from {self.smallest:.4g} to {self.largest:.4g}, {len(self.constant):,} "
        return "\n".join([f"{text}constant and {self.empty:,} empty columns", *self.warnings])


def dynamic_range(X: Any, names: Sequence[str] | None = None, factor: float = 1e6) -> DynamicRange:
    """Find the columns that dwarf the others, or are dwarfed by them.

    Parameters
    ----------
    X : CSR matrix, array or DataFrame of shape (rows, features)
    names : sequence of str, optional
        Names of all columns; those of a DataFrame are known.
    factor : float
        How many times larger or smaller than the median column is odd.

    Examples
    --------
    >>> print(dynamic_range([[1.0, 2.0, 3e7]], names=["a", "b", "salary"]).columns[0])
    column 2 'salary' is 1.5e+07 times larger than the median column: scale it ...
    """
    names = getattr(X, "columns", None) if names is None else names
    X, _, at, values = checked(X)
    n, width = X.shape
    if names is not None and len(names) != width:
        raise ParameterError(f"names must be {width}, one for each column; got {len(names)}")
    if not factor > 1:
        raise ParameterError(f"factor must be > 1; got {factor!r}")
    if not len(values):
        return DynamicRange((), None, None, None, None, 0.0, (), width)
    counts, high, low = np.bincount(at, minlength=width), np.zeros(width), np.full(width, np.inf)
    size = np.abs(values)
    np.maximum.at(high, at, size)
    np.minimum.at(low, at, size)
    signs = np.abs(summed(at, np.sign(values), width))
    median = float(np.median(high[counts > 0]))
    with np.errstate(over="ignore", divide="ignore"):
        ratio = np.divide(high, median, out=np.ones(width), where=counts > 0)
        far = np.maximum(ratio, 1 / ratio)
    odd = [int(j) for j in np.argsort(-far, kind="stable") if far[j] >= factor]
    return DynamicRange(
        tuple(OddColumn(j, None if names is None else str(names[j]), float(ratio[j])) for j in odd),
        median, float(size.max()), float(size.min()), float(size.max()) / float(size.min()),
        float(np.mean(size < 2.0**-126)),
        tuple(np.flatnonzero((signs == n) & (high == low)).tolist()), int(np.sum(counts == 0)),
    )  # fmt: skip


@dataclass(frozen=True)
class HealthReport:
    """What `check` found."""

    range: DynamicRange
    step: SafeStep
    exponents: ExponentSpread | None  # of a fitted estimator
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        first = str(self.range).split("\n")[0]
        lines = [first, str(self.step), *([str(self.exponents)] if self.exponents else [])]
        return "\n".join(lines + ([f"warning: {w}" for w in self.warnings] or ["healthy"]))


def check(X: Any, y: Any = None, estimator: Any = None) -> HealthReport:
    """Examine data, and the estimator that learns or has learned from it.

    Parameters
    ----------
    X : CSR matrix, array or DataFrame of shape (rows, features)
    y : array of shape (rows,), optional
    estimator : estimator, optional
        Its loss, rate and weights are examined too.

    Examples
    --------
    >>> from thresher import TruncatedGradientRegressor
    >>> print(check([[3.0], [4.0]], estimator=TruncatedGradientRegressor(eta0=0.5)))
    values from 3 to 4, 0 constant and 0 empty columns
    safe step: 0.05882 a row, 0.03709 for all rows at once
    warning: eta0 = 0.5 may diverge: it is above 0.118, twice the safe step
    """
    extent, loss = dynamic_range(X), getattr(estimator, "loss", "squared")
    loss = loss if loss in _LOSSES else "squared"
    step = safe_step(X, loss, fit_intercept=bool(getattr(estimator, "fit_intercept", False)))
    found = extent.warnings
    steep = loss in ("squared", "square", "squared_hinge")  # no others can explode
    for name, safe in (("eta0", step.online), ("step", step.batch)):
        rate = getattr(estimator, name, None)
        if steep and isinstance(rate, (int, float)) and safe is not None and rate > 2 * safe:
            found.append(
                f"{name} = {rate:g} may diverge: it is above {2 * safe:.3g}, twice the safe step"
            )
    if steep and getattr(estimator, "_rule", "") == "averaged-sgd":
        ratio = step.largest_row**2 / estimator.alpha
        if ratio > 50:
            found.append(f"steps of 1/(alpha t) explode: largest row^2 / alpha is {ratio:.3g} > 50")
    spread = None
    if hasattr(estimator, "model_") or hasattr(estimator, "coef_"):
        spread = exponents(estimator)
        if spread.within_single not in (None, 1.0) and getattr(estimator, "dtype", "") == "float32":
            found.append(f"{spread}; dtype='float64' keeps more")
    labels = np.zeros(0) if y is None else np.asarray(y)
    if y is not None and len(labels) != np.shape(X)[0]:
        raise ParameterError(
            f"y must have {np.shape(X)[0]} labels, as X has rows; got {len(labels)}"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError(f"row {np.flatnonzero(~np.isfinite(labels))[0]}: the label is not finite")
    if len(labels) > 1 and (labels == labels[0]).all():
        found.append("all labels are equal: there is nothing to learn")
    return HealthReport(extent, step, spread, tuple(found))


def _extremes(
    X: Any, squares: NDArray[np.float64], mask: NDArray[np.bool_] | None = None,
    tol: float = 1e-7, max_iter: int = 300, smallest: bool = True,
) -> tuple[tuple[float, float], tuple[float, float]]:  # fmt: skip
    """Bound the largest and the smallest squared singular value; equal bounds where found.

    Of the columns in the mask, whose squared norms are `squares`. X is not copied.
    """

    def forward(v: NDArray[np.float64]) -> NDArray[np.float64]:
        if mask is not None:
            v, inner = np.zeros(len(mask)), v
            v[mask] = inner
        return np.asarray(X @ v)

    def back(u: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(X.T @ u if mask is None else (X.T @ u)[mask])

    rows, width = X.shape[0], len(squares)
    if not squares.any() or not math.isfinite(squares.sum()):
        return (squares.max(), squares.max()), (0.0, 0.0)
    first, then = (back, forward) if rows < width else (forward, back)
    short = min(rows, width)
    if short <= _DENSE:
        if smallest and rows * width <= _DENSE * 10_000:
            values = np.linalg.svd([first(e) for e in np.eye(short)], compute_uv=False)[::-1] ** 2
        else:
            values = np.linalg.eigvalsh([then(first(e)) for e in np.eye(short)]).clip(0.0)
        high, low = float(values[-1]), 0.0 if rows < width else float(values[0])
        return (high, high), (low, low)
    found = _largest(lambda v: then(first(v)), short, tol, max_iter)
    top = (float(squares.max()), float(squares.sum())) if found is None else (found, found)
    if rows < width or squares.min() == 0 or not smallest:
        return top, (0.0, 0.0)
    gap = _largest(lambda v: top[1] * v - then(first(v)), short, tol, max_iter)
    low = min(float(squares.min()), math.inf if gap is None else max(top[1] - gap, 0.0))
    return top, (0.0 if gap is None else low, low)


def _largest(
    product: Callable[[NDArray[np.float64]], Any], size: int, tol: float, max_iter: int
) -> float | None:
    """Return the largest eigenvalue of a symmetric operator, None where Lanczos gives up."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=size)
    options = {"v0": start, "ncv": 64, "tol": tol, "maxiter": max_iter}
    try:
        return float(eigsh(operator, 1, which="LA", return_eigenvectors=False, **options)[0])
    except ArpackNoConvergence:
        return None


class DivergenceWarning(UserWarning):
    """Training diverges, or is about to: the rate is too high for the data."""


class DivergenceWatch:
    """Tell from the records of training that it diverges, before numbers overflow.

    It does where the progressive loss is not finite, is 1e12 times that of predicting zero, or is
    `factor` times that and has doubled `patience` times in a row. Records of few rows are joined.
    A watch is for one fit.

    Parameters
    ----------
    zero_loss : float, optional
        Mean loss of predicting zero; without it the first record stands in for it.
    factor : float
    patience : int

    Examples
    --------
    >>> from thresher import Progress
    >>> watch = DivergenceWatch(zero_loss=0.5)
    >>> for examples, loss in ((128, 0.9), (256, 40.0), (512, 3000.0)):
    ...     message = watch.see(Progress(examples, loss, None, 0.1, 0.0))
    >>> message
    'training diverges: the mean loss of the last 256 rows is 3e+03, that of predicting zero ...'
    """

    def __init__(
        self, zero_loss: float | None = None, factor: float = 10.0, patience: int = 2
    ) -> None:
        self.zero_loss, self.factor, self.patience = zero_loss, factor, patience
        self._examples, self._rows, self._sum = 0, 0, 0.0  # seen; of them not yet judged
        self._before: float | None = None
        self._rises, self._told = 0, False

    def see(self, record: Progress, zero_loss: float | None = None) -> str | None:
        """Return what to warn of, once; None as long as all is well.

        `zero_loss` is that of the rows of this record, where it is known.
        """
        rows, self._examples = record.examples - self._examples, record.examples
        self._rows, self._sum = self._rows + rows, self._sum + rows * record.loss
        if self._told or (self._rows < _JOINED and math.isfinite(record.loss)):
            return None
        rows, mean = self._rows, self._sum / max(self._rows, 1)
        self._rows, self._sum = 0, 0.0
        if self.zero_loss is None:
            self.zero_loss = mean
        usual = max(self.zero_loss, zero_loss or 0.0)
        rises = mean > usual * self.factor and mean > 2 * (self._before or 0.0)
        self._rises, self._before = self._rises + 1 if rises else 0, mean
        hopeless, lasting = mean > 1e12 * usual, self._rises >= self.patience
        self._told = not math.isfinite(mean) or (usual > 0 and (hopeless or lasting))
        if not self._told:
            return None
        return (
            f"training diverges: the mean loss of the last {rows:,} rows is {mean:.3g}, that of "
            f"predicting zero {usual:.3g}; lower the rate (now {record.rate:.3g}), or scale the "
            f"features"
        )
