"""Certificates: guarantees for a trained model that follow from theorems, with their assumptions.

If a certificate is not available, it has the reason. There are certificates of the regret of
truncated gradient, after Langford, Li and Zhang (R-7.2, R-7.7), and of the norm, the mistakes and
the generalisation of the soft-thresholded margin perceptron (R-9.7 to R-9.12). This module imports
neither scikit-learn nor SciPy.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thresher.data import checked, summed
from thresher.errors import ParameterError
from thresher.losses import LOSSES, SELECTABLE_LOSSES
from thresher.sparse_checks import refuse_malformed

__all__ = [
    "Assumption", "Certificate", "generalisation_certificate", "loss_constants",
    "mistake_certificate", "norm_certificate", "regret_certificate",
]  # fmt: skip

DELTA = 0.05  # probability that a generalisation certificate is wrong
_ROUNDING = 1e-6  # largest relative rounding error of sums with float32 weights


class Assumption(NamedTuple):
    """An assumption of a theorem; `holds` is None if it was not checked."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Certificate:
    """A guaranteed number, or the reason why there is none.

    Examples
    --------
    >>> print(Certificate("regret", None, "", (), "the rate was not constant"))
    regret: not available, because the rate was not constant
    """

    name: str
    value: float | None  # the guaranteed number; None if it is not available
    statement: str  # its meaning, as a sentence
    assumptions: tuple[Assumption, ...] = ()
    reason: str = ""  # why it is not available

    @property
    def available(self) -> bool:
        """Whether there is a guarantee."""
        return self.value is not None

    def __str__(self) -> str:
        if not self.available:
            return f"{self.name}: not available, because {self.reason}"
        unknown = [a.text for a in self.assumptions if a.holds is None]
        return f"{self.name}: {self.statement}" + (
            f" (not checked: {'; '.join(unknown)})" if unknown else ""
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate in types that JSON has."""
        return asdict(self) | {"assumptions": [list(a) for a in self.assumptions]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Certificate:
        """Return a certificate from the result of `to_dict`; raise ValueError for anything else."""
        assumptions = tuple(Assumption(*a) for a in values["assumptions"])
        found = cls(**{**values, "assumptions": assumptions})
        texts = (found.name, found.statement, found.reason, *(a.text for a in assumptions))
        if (
            not all(isinstance(text, str) for text in texts)
            or not all(isinstance(a.holds, bool | None) for a in assumptions)
            or not isinstance(found.value, float | int | None)
        ):
            raise ValueError("a certificate cannot be read")
        return found


def loss_constants(
    loss: str, largest_row: float, epsilon: float | None = None
) -> tuple[float, float] | None:
    """Return A and B of ||gradient||^2 <= A loss + B, or None if they do not exist (R-1.*).

    Parameters
    ----------
    loss : str
    largest_row : float
        C, a bound of ||x||; for clipped_square of ||x|| / sqrt(number of nonzeros).
    epsilon : float, optional
        For huber, which has two pairs: A = 2 C^2, B = 0 without epsilon, and A = 0,
        B = C^2 epsilon^2 with it.

    Examples
    --------
    >>> loss_constants("square", 2.0), loss_constants("hinge", 2.0), loss_constants("poisson", 2.0)
    ((16.0, 0.0), (0.0, 4.0), None)
    """
    c2 = _number("largest_row", largest_row, 0.0) ** 2
    if loss not in SELECTABLE_LOSSES:
        known = ", ".join(SELECTABLE_LOSSES)
        raise ParameterError(parameter="loss", value=loss, allowed=f"one of {known}")
    spec = LOSSES[loss]
    if epsilon is not None and spec.largest_slope == "epsilon":
        return 0.0, c2 * _number("epsilon", epsilon, 0.0) ** 2
    if spec.slope_bound is None:
        return None
    A, B = spec.slope_bound
    return A * c2, B * c2


def regret_certificate(
    *, loss: str, steps: int, eta: float, largest_row: float,
    loss_sum: float, pull_sum: float, gravity_sum: float,
    comparator_loss_sum: float, comparator_norm2: float, comparator_l1: float,
    epsilon: float | None = None, fit_intercept: bool = False,
    ceiling: float = math.inf, l2: float = 0.0,
    constant_rate: bool | None = True, truncates: bool | None = True,
    starts_at_zero: bool | None = True, unit_weights: bool | None = True,
) -> Certificate:  # fmt: skip
    """Certify the progressive loss of truncated gradient against a comparator wbar (R-7.2, R-7.7).

    Its value is the right side of Theorem 1.1 minus the left side, which is never negative:
    eta B T / 2 + ||wbar||^2 / (2 eta) + sum L(wbar, z_i) + ||wbar||_1 sum g_i
    - (1 - A eta / 2) sum L(w_i, z_i) - sum g_i ||w_{i+1}||_1.

    Parameters
    ----------
    loss : str
    steps : int
        T, over all passes.
    eta, ceiling, l2 : float
    largest_row : float
        C, the largest ||x||, as for `loss_constants`.
    loss_sum, pull_sum, gravity_sum : float
        Sums over the steps i of the loss before the row was learned, of g_i ||w_{i+1}||_1, and of
        g_i, which is period * gravity if the period divides i, else 0.
    comparator_loss_sum, comparator_norm2, comparator_l1 : float
        The sum of the losses of wbar on the T rows, ||wbar||^2, and ||wbar||_1.
    epsilon : float, optional
        For huber; with it the certificate is available for large rates too.
    fit_intercept : bool
        Whether there was an intercept: a feature that is 1 in every row and does not shrink. The
        comparator's intercept is part of comparator_norm2, but not of comparator_l1.
    constant_rate, truncates, starts_at_zero, unit_weights : bool or None
        Whether these assumptions hold; None if that is not known.

    Examples
    --------
    >>> print(regret_certificate(
    ...     loss="hinge", steps=100, eta=0.1, largest_row=1.0, loss_sum=40.0, pull_sum=0.0,
    ...     gravity_sum=0.0, comparator_loss_sum=30.0, comparator_norm2=4.0, comparator_l1=2.0))
    regret: 100 steps lost 40 in total, 0.4 a step; at most 55 is guaranteed ...
    """
    T = _count("steps", steps, 1)
    _number("eta", eta, 0.0, strict=True)
    C = math.sqrt(_number("largest_row", largest_row, 0.0) ** 2 + fit_intercept)
    constants = loss_constants(loss, C)
    if constants and epsilon is not None and constants[0] * eta >= 2.0:
        constants = loss_constants(loss, C, epsilon)
    A, B = constants or (0.0, math.inf)
    share = 1.0 - 0.5 * A * eta
    assumptions = (
        Assumption(f"the gradient of {loss} is bounded by its value", constants is not None),
        Assumption(f"eta = {eta:g} is below 2 / A = {2 / A if A else math.inf:g}", share > 0),
        Assumption("the rate is constant", constant_rate),
        Assumption("shrinkage is truncation", truncates),
        Assumption("the ceiling is infinite", math.isinf(ceiling)),
        Assumption("there is no l2 penalty", l2 == 0),
        Assumption("the first weights are zero", starts_at_zero),
        _weights(unit_weights),
    )
    right = eta * B * T / 2 + comparator_norm2 / (2 * eta)
    right += comparator_loss_sum + comparator_l1 * gravity_sum
    value = right - share * loss_sum - pull_sum
    bound = (right - pull_sum) / share if share > 0 else math.inf
    statement = (
        f"{T:,} steps lost {loss_sum:.6g} in total, {loss_sum / T:.4g} a step; at most {bound:.6g} "
        f"is guaranteed against a comparator that lost {comparator_loss_sum:.6g}"
    )
    broken = "the sums contradict the theorem: rounding errors, or sums of another run"
    within = value >= -_ROUNDING * max(abs(right), 1.0)
    return _certificate("regret", value, statement, assumptions, "" if within else broken)


def norm_certificate(
    updates: int, bound_sum: float, *, eta: float, margin: float, radius: float,
    weights_norm2: float, least_eps: float | None = None, unit: float = 2.0**-53,
    unit_weights: bool | None = True,
) -> Certificate:  # fmt: skip
    """Certify a bound on the norm of the weights of the margin perceptron (R-9.8, R-9.9).

    Its value bounds ||w||^2: the sum over updates of eta^2 ||x||^2 + 2 eta z - eps_t, where z is
    the margin y w.x before the update and eps_t is its shrinkage (R-9.7).

    Parameters
    ----------
    updates : int
    bound_sum : float
        The sum over updates above.
    eta, margin : float
    radius : float
        The largest ||x||, including the 1 of an intercept, if there is one.
    weights_norm2 : float
        ||w||^2 of the model, including its intercept.
    least_eps : float, optional
        The smallest eps_t. It decides whether Lemma 2 applies, and for how many updates it holds
        despite rounding errors.
    unit : float
        Rounding error of a weight: 2^-53 for float64, 2^-24 for float32.
    unit_weights : bool or None
        Whether all rows have weight 1.

    Examples
    --------
    >>> print(norm_certificate(9, 6.0, eta=1.0, margin=0.0, radius=1.0, weights_norm2=5.0))
    norm: ||w||^2 is 5 after 9 updates; the bound is 6 for these updates and 9 for any 9 updates
    """
    t, tau = _count("updates", updates, 0), _number("margin", margin, 0.0)
    slack = 2 * _number("eta", eta, 0.0, strict=True) * tau
    lemma = slack <= (least_eps or 0.0)
    most = t * (eta**2 * _number("radius", radius, 0.0) ** 2 + (0.0 if lemma else slack))
    value = min(bound_sum, most)
    statement = f"||w||^2 is {weights_norm2:.6g} after {t:,} updates; the bound is {value:.6g} for "
    statement += f"these updates and {most:.6g} for any {t:,} updates"
    if lemma and least_eps and radius:  # Theorem 1, scaled to eta = 1
        last = (least_eps - slack) / (2 * unit * (eta * radius) ** 2) - slack / (eta * radius) ** 2
        statement += f", despite rounding errors up to update {max(last, 0.0):.3g}"
    within = weights_norm2 <= value + _ROUNDING * most
    broken = f"||w||^2 = {weights_norm2:.6g} is above its bound {value:.6g}: another rule was "
    broken = "" if within else broken + "used, or there were rounding errors"
    return _certificate("norm", value, statement, [_weights(unit_weights)], broken)


def mistake_certificate(
    X: Any, y: ArrayLike, u: ArrayLike, *, eta: float, margin: float, l1: float,
    updates: int | None = None, intercept: float | None = None,
) -> Certificate:  # fmt: skip
    """Certify the largest number of updates of the margin perceptron on these rows (R-9.10).

    It holds for any number of passes. Its value is (eta^2 R^2 + 2 eta margin) / geff^2, where R is
    the largest ||x|| and geff the smallest eta y x.u - l1 sum of |u_j| over the features of x, for
    u scaled to norm 1.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
    y : array of -1 and 1
    u : array of shape (features,)
        Any weights that separate the rows, for example the learned ones.
    eta, margin, l1 : float
    updates : int, optional
        Number of updates made.
    intercept : float, optional
        The intercept of u, if an intercept is learned; it does not shrink.

    Examples
    --------
    >>> print(mistake_certificate(np.eye(2), [1, -1], [1, -1], eta=1.0, margin=0.0, l1=0.0))
    mistakes: at most 2 updates can ever happen on these 2 rows
    """
    refuse_malformed(X)
    X, rows, at, values = checked(X)
    labels, w = np.asarray(y, dtype=np.float64), np.asarray(u, dtype=np.float64).ravel()
    if X.shape != (len(labels), len(w)) or not len(labels):
        raise ParameterError(
            f"X must have a row for each of the {len(labels)} labels, at least one, and a column "
            f"for each of the {len(w)} weights u; its shape is {X.shape}"
        )
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise ParameterError(parameter="y", allowed="-1 and 1")
    b = 0.0 if intercept is None else float(intercept)
    size = math.hypot(float(np.linalg.norm(w)), b) or 1.0
    w, b = w / size, b / size
    pulls = summed(rows, np.abs(w)[at], len(labels))
    radius2 = float(summed(rows, values, len(labels), power=2).max()) + (intercept is not None)
    _number("eta", eta, 0.0, strict=True)
    gap = float((eta * labels * (X @ w + b) - _number("l1", l1, 0.0) * pulls).min())
    return mistakes_at(gap, radius2, len(labels), eta, margin, updates)


def mistakes_at(
    gap: float, radius2: float, rows: int, eta: float, margin: float,
    updates: int | None = None, unit_weights: bool | None = True,
) -> Certificate:  # fmt: skip
    """Return the certificate of `mistake_certificate` for geff = gap and R^2 = radius2."""
    bound = _updates_at(gap, radius2, eta, _number("margin", margin, 0.0)) if gap > 0 else 0.0
    if gap > 0 and radius2 < np.finfo(np.float64).tiny:
        bound = math.inf  # the squares of the rows have underflowed
    tiny = math.isinf(bound) and math.isfinite(radius2)
    most = math.floor(bound) if math.isfinite(bound) else 0
    assumptions = [Assumption(f"u separates the rows with this shrinkage (by {gap:.3g})", gap > 0)]
    if updates is not None and gap > 0:
        happened = _count("updates", updates, 0) <= bound * (1 + _ROUNDING)
        assumptions.append(Assumption(f"the {updates:,} updates are those of this rule", happened))
    assumptions.append(_weights(unit_weights))
    statement = f"at most {most:,} updates can ever happen on these {rows:,} rows"
    statement += "" if updates is None else f"; there were {updates:,}"
    broken = "the margin is too small to be distinguished from 0" if tiny else ""
    return _certificate("mistakes", 0.0 if tiny else bound, statement, assumptions, broken)


def _updates_at(gap: float, radius2: float, eta: float, margin: float) -> float:
    """Return (eta^2 radius2 + 2 eta margin) / gap^2; inf if it overflows."""
    shift = -math.frexp(gap)[1]  # a common power of two, which does not change the quotient
    try:
        gap, eta, margin = (math.ldexp(value, shift) for value in (gap, eta, margin))
        return (eta**2 * radius2 + 2 * eta * margin) / gap**2
    except OverflowError:
        return math.inf


def generalisation_certificate(
    m: int, k: int, delta: float = DELTA, *, consistent: bool | None, same_order: bool | None,
    complete: bool | None = True, unit_weights: bool | None = True,
) -> Certificate:  # fmt: skip
    """Certify the error on new rows of a perceptron that k of m rows have updated (R-9.12).

    Its value bounds the error, with probability 1 - delta over the draw of the rows:
    (ln C(m, k) + ln m + ln(1 / delta)) / (m - k). The bound is valid but loose (A-11).

    Parameters
    ----------
    m : int
        Number of training rows.
    k : int
        Number of distinct rows that caused an update.
    delta : float
        Probability that the statement is wrong.
    consistent : bool or None
        Whether the final weights classify all m rows correctly, at margin 0.
    same_order : bool or None
        Whether the rows had the same order in every pass.
    complete : bool or None
        Whether training ended by the rule or after all passes, not by a test on other rows.
    unit_weights : bool or None
        Whether all rows have weight 1.

    Examples
    --------
    >>> print(generalisation_certificate(4278, 400, consistent=True, same_order=True))
    generalisation: error on new rows at most 0.345, with probability 0.95
    """
    m, k = _count("m", m, 1), _count("k", k, 0)
    if not 0 < _number("delta", delta, 0.0) < 1:
        raise ParameterError(parameter="delta", value=delta, allowed="above 0 and below 1")
    assumptions = (
        Assumption("the model classifies every training row correctly", consistent),
        Assumption("the rows came in the same order in every pass", same_order),
        Assumption(f"some of the {m:,} rows caused no update", k < m),
        Assumption("neither tol nor a callback ended learning", complete),
        _weights(unit_weights),
    )
    choices = math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1) if k < m else 0.0
    value = (choices + math.log(m) - math.log(delta)) / max(m - k, 1)
    statement = f"error on new rows at most {value:.3f}, with probability {1 - delta:g}"
    statement += ", which is no information" if value >= 1 else ""
    return _certificate("generalisation", value, statement, assumptions)


def _weights(unit: bool | None) -> Assumption:
    return Assumption("all rows have weight 1", unit)


def _certificate(
    name: str, value: float, statement: str, assumptions: Iterable[Assumption], broken: str = ""
) -> Certificate:
    """Return a certificate; without a value if an assumption fails or `broken` has a reason."""
    assumptions = tuple(assumptions)
    failed = [f"it does not hold that {a.text}" for a in assumptions if a.holds is False]
    if not failed and not math.isfinite(value):
        broken = "its number is not finite"
    reason = "; ".join(failed) or broken
    return Certificate(
        name, None if reason else float(value), "" if reason else statement, assumptions, reason
    )


def _number(name: str, value: Any, low: float, strict: bool = False) -> float:
    """Check a number."""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not good or not (low < value if strict else low <= value) or math.isinf(value):
        sign = ">" if strict else ">="
        raise ParameterError(parameter=name, value=value, allowed=f"a finite number {sign} {low:g}")
    return float(value)


def _count(name: str, value: Any, low: int) -> int:
    """Check a whole number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ParameterError(parameter=name, value=value, allowed=f"a whole number >= {low}")
    return int(value)
