"""Safe steps of gradient descent, and steps that diverge (R-10.2 to R-10.6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thresher.data import checked, is_sparse, summed
from thresher.errors import ParameterError
from thresher.health.columns import seen
from thresher.health.spectra import extremes
from thresher.losses import LOSSES, canonical_loss
from thresher.sparse_checks import refuse_malformed

_ROUNDING = 1e-9  # a radius this far below 1 counts as 1


@dataclass(frozen=True)
class SpectralRadius:
    """Spectral radius of gradient descent restricted to a support (R-10.3)."""

    radius: float  # largest growth of the error per iteration; 1 is normal for dependent columns
    largest_singular: float  # singular values of the columns; upper bounds if not converged
    smallest_singular: float
    diverges: bool  # whether it certainly diverges: eta * largest_singular^2 > 2
    converged: bool  # whether both singular values were found
    interval: tuple[float, float]  # bounds of the radius; `radius` is the upper one
    unseen: bool = False  # whether it is 1 only because of directions in the null space of X

    def __str__(self) -> str:
        low, high = self.interval
        text = f"{high:.6g}" if self.converged else f"between {low:.6g} and {high:.6g}"
        verdict = "diverges" if self.diverges else "converges" if high < 1 else "may not converge"
        verdict = "converges" if self.unseen else verdict
        where = ", except in the null space of X" if self.unseen else ""
        return f"spectral radius {text}: gradient descent {verdict} at this step{where}"


def spectral_radius(
    X: Any, eta: float, support: Any = None, tol: float = 1e-7, max_iter: int = 300
) -> SpectralRadius:
    """Compute the spectral radius of D_J (I - eta X'X), with D_J the projection on a support J.

    It is the largest |1 - eta s^2| over the singular values s of X[:, J] (R-10.4), computed
    without a copy of X: densely if the number of rows or of columns in J is at most 400, else by
    Lanczos iteration. With a safe step it is 1 if columns depend on each other: weights do not
    change in the null space of X, and gradient descent converges in all other directions.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    eta : float
        Step of w <- w + eta X'(y - Xw).
    support : boolean mask or indices, optional
        J; None: all columns.
    tol : float
        Accuracy of the squared singular values that Lanczos finds, relative to the largest.
    max_iter : int
        Restarts of the Lanczos iteration.

    Examples
    --------
    >>> print(spectral_radius(np.diag([2.0, 1.0, 9.0]), eta=0.25, support=[0, 1]))
    spectral radius 0.75: gradient descent converges at this step
    >>> print(spectral_radius([[1.0, 1.0]], eta=0.5))
    spectral radius 1: gradient descent converges at this step, except in the null space of X
    """
    refuse_malformed(X)
    X, _, at, values = checked(X)
    if not 0 < eta < math.inf:
        raise ParameterError(parameter="eta", value=eta, allowed="a finite number > 0")
    mask = np.full(X.shape[1], support is None)
    try:
        mask[[] if support is None else support] = True
    except IndexError as error:
        raise ParameterError(f"support must be columns of X, or a mask: {error}") from None
    if not mask.any():
        return SpectralRadius(0.0, 0.0, 0.0, False, True, (0.0, 0.0))
    squares = summed(at, values, X.shape[1], power=2)
    bounds = extremes(X, squares[mask], None if mask.all() else mask, tol, max_iter)
    growth = [[abs(1 - eta * s) for s in ends] for ends in bounds]
    inside = [eta * low < 1 < eta * high for low, high in bounds]
    least = max(0.0 if zero else min(g) for zero, g in zip(inside, growth, strict=True))
    most, (high, low) = max(map(max, growth)), bounds
    found = high[0] == high[1] and low[0] == low[1]
    roots = math.sqrt(high[1]), math.sqrt(low[1])
    unseen = found and growth[0][1] < 1 - _ROUNDING and most >= 1 - _ROUNDING
    unseen = unseen or (found and high[1] == 0)
    diverges = eta * high[0] > 2 * (1 + tol)
    return SpectralRadius(most, *roots, diverges, found, (least, most), unseen)


@dataclass(frozen=True)
class SafeStep:
    """Rates with which training cannot diverge; None, with a reason, if there are none."""

    batch: float | None  # for the gradient of the sum over all rows: the loss decreases
    online: float | None  # for the gradient of a row: no step overshoots; twice this may diverge
    largest_row: float  # largest norm of a row; clipped_square divides rows by sqrt(nonzeros)
    reason: str = ""
    loss: str = ""  # the loss that the rates are safe for

    def __str__(self) -> str:
        text = f"safe step for {self.loss} loss:" if self.loss else "safe step:"
        if self.batch is None or self.online is None:
            return f"{text} not available, because {self.reason}"
        if math.isinf(self.online) and not self.largest_row:
            return f"{text} any, because all rows are zero or almost zero"
        return f"{text} {self.online:.4g} per row, {self.batch:.4g} for all rows at once"


def safe_step(
    X: Any, loss: str = "squared", sample_weight: ArrayLike | None = None,
    fit_intercept: bool = False,
) -> SafeStep:  # fmt: skip
    """Compute rates that cannot diverge: 1 / (curvature of the loss * largest square).

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    loss : str
    sample_weight : array of shape (rows,), optional
    fit_intercept : bool
        Whether an intercept is learned too, at the same rate.

    Examples
    --------
    >>> print(safe_step([[3.0, 0.0], [0.0, 1.0]], loss="squared"))
    safe step for squared loss: 0.1111 per row, 0.1111 for all rows at once
    """
    refuse_malformed(X)
    X, rows, at, values = checked(X)
    loss = canonical_loss(loss)
    if loss not in LOSSES:
        raise ParameterError(parameter="loss", value=loss, allowed=f"one of {', '.join(LOSSES)}")
    n, width = X.shape
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ParameterError(parameter="sample_weight", allowed="a finite number >= 0 per row")
    spec = LOSSES[loss]
    if spec.scales_rows:
        values = values / np.sqrt(np.bincount(rows, minlength=n))[rows]
    squares = summed(rows, values, n, power=2)
    largest_row = math.sqrt(squares.max(initial=0.0))
    if spec.curvature is None:
        reason = f"{loss} has no curvature: its slope is bounded, so no rate diverges"
        if spec.largest_slope is None:
            reason = f"the curvature of {loss} is not bounded"
        return SafeStep(None, None, largest_row, reason, loss)
    columns, at = seen(at, width)
    thinned, width = len(columns) < width, len(columns)
    if thinned or fit_intercept or sample_weight is not None or spec.scales_rows:
        from scipy.sparse import csr_array

        if fit_intercept:
            rows, at = np.append(rows, np.arange(n)), np.append(at, np.full(n, width))
            values, squares, width = np.append(values, np.ones(n)), squares + 1.0, width + 1
        values = values * np.sqrt(weights)[rows]
        X = csr_array((values, (rows, at)), shape=(n, width))
    largest = extremes(X, summed(at, values, width, power=2), smallest=False)[0][1]
    pair = largest, float((weights * squares).max(initial=0.0))
    batch, online = (1 / (spec.curvature * s) if s > 0 else math.inf for s in pair)
    return SafeStep(batch, online, largest_row, loss=loss)


def potential(X: Any, y: ArrayLike, w: ArrayLike) -> float:
    """Return ||y - Xw||^2 / 2, which never increases in a safe step of gradient descent (R-10.2).

    Examples
    --------
    >>> potential(np.eye(2), [3.0, 4.0], [0.0, 0.0])
    12.5
    """
    X, target, weights = X if is_sparse(X) else np.asarray(X), np.asarray(y), np.asarray(w)
    if X.shape != (*target.shape, *weights.shape):
        raise ParameterError(f"X {X.shape}, y {target.shape} and w {weights.shape} do not fit")
    return 0.5 * float(np.sum(np.square(target - X @ weights, dtype=np.float64)))
