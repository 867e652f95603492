"""Bounds on the number of false selections of stability selection."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

from thresher.errors import ParameterError
from thresher.model.supports import checked_n_features, is_whole

_PREMISE = (
    "these are all noise features if noise features are exchangeable and selection is not worse "
    "than random guessing"
)
NOTHING = f"false means selected by a fit with a probability of at most q/p; {_PREMISE}"
UNIMODAL = (
    "false means selected by a fit with a probability of at most q/p, and the share of pairs that "
    f"select one twice is unimodal; {_PREMISE}"
)


@dataclass(frozen=True)
class Bound:
    """A bound on the expected number of features selected falsely.

    Attributes
    ----------
    number : float or None
        The bound; None if there is none.
    assumptions : str
        The assumptions of the bound.
    reason : str or None
        Why there is no bound.
    n_features : int or None
        Number of features that could be selected. A bound of this size or more is useless.

    Examples
    --------
    >>> from thresher.stability import Bound
    >>> print(Bound(2.5, "none"))
    at most 2.5 false selections are expected; assumptions: none
    >>> print(Bound(120.0, "none", n_features=100))
    no useful bound: 120 false selections, of 100 features
    """

    number: float | None
    assumptions: str
    reason: str | None = None
    n_features: int | None = None

    def __str__(self) -> str:
        """Return the bound as a sentence."""
        if self.number is None:
            return f"not available, because {self.reason}"
        if self.n_features is not None and self.number >= self.n_features:
            all_of_them = f"{self.n_features:,} features"
            return f"no useful bound: {self.number:.3g} false selections, of {all_of_them}"
        return (
            f"at most {self.number:.3g} false selections are expected; "
            f"assumptions: {self.assumptions}"
        )


def false_selections_bound(
    n_selected: float,
    n_features: int,
    *,
    threshold: float = 0.6,
    pairs: int = 50,
    unimodal: bool = False,
) -> Bound:
    """Bound the expected number of features that stability selection selects falsely.

    With q features selected by a fit on half of the rows on average, p features in all, B
    complementary pairs, and features selected in a share of at least tau > 1/2 of the 2 B fits,
    the bound is C q^2 / p, where ::

        C = 1 / (2 tau - 1)                         in general
        C = 1 / (2 (2 tau - 1 - 1/(2B)))            if unimodal and tau <= 3/4
        C = 4 (1 - tau + 1/(2B)) / (1 + 1/B)        if unimodal and tau > 3/4

    A feature is false if a fit on half of the rows selects it with a probability of at most q/p
    (Shah and Samworth, Theorems 1 and 2). The general bound also holds for all noise features, if
    they are exchangeable and selection is not worse than guessing (Meinshausen and Buehlmann,
    Theorem 1). Features of sparse data are often not exchangeable: a frequent word is selected by
    chance more often than a rare one. Then noise features can be selected many times more often
    than the bound says; `StabilitySelection.selected_without_signal_` shows it. The mean q is
    estimated from the same fits.

    The unimodal bound needs q/p <= 1/sqrt(3), tau >= 1/2 + 1/B and tau > 1/2 +
    min((q/p)^2, 1/(2B) + 3/4 (q/p)^2).

    A bound of p or more holds for any selection: "no useful bound".

    Parameters
    ----------
    n_selected : float
        Mean number of features selected by a fit, q; with several values of a parameter, by the
        fits of all values together.
    n_features : int
        Number of features that could be selected, p, without columns that are always zero.
    threshold : float, default=0.6
        Share of fits that must select a feature. Shares are multiples of 1/(2B); tau is the
        smallest multiple that is not below the threshold.
    pairs : int, default=50
        Number of complementary pairs, B.
    unimodal : bool, default=False
        Assume that the share of pairs that select a feature in both halves has a unimodal
        distribution.

    References
    ----------
    Meinshausen and Buehlmann, Stability selection, JRSS B 72, 2010.
    Shah and Samworth, Variable selection with error control: another look at stability selection,
    JRSS B 75, 2013.

    Examples
    --------
    >>> from thresher.stability import false_selections_bound
    >>> round(false_selections_bound(20, 1000, threshold=0.6).number, 3)
    2.0
    >>> round(false_selections_bound(20, 1000, threshold=0.9, unimodal=True).number, 3)
    0.173
    >>> false_selections_bound(20, 1000, threshold=0.5).reason
    'the threshold must be above 1/2'
    """
    p = checked_n_features(n_features)
    check_threshold(threshold, "threshold")
    check_pairs(pairs, "pairs")
    if not 0 <= n_selected <= p:
        raise ParameterError(f"n_selected must be in 0..n_features = {p}; got {n_selected!r}")
    q, theta = float(n_selected), n_selected / p
    needed = fits_needed(threshold, pairs)  # tau = needed / 2B
    assumptions = UNIMODAL if unimodal else NOTHING
    if needed <= pairs:
        return Bound(None, assumptions, "the threshold must be above 1/2")
    if not unimodal:
        return Bound(q * theta * pairs / (needed - pairs), assumptions, n_features=p)
    if theta > 1 / math.sqrt(3):
        return Bound(
            None, assumptions, f"q/p = {theta:.3g} is above 1/sqrt(3): fits select too many"
        )
    tau = needed / (2 * pairs)
    least = 0.5 + min(theta**2, 1 / (2 * pairs) + 0.75 * theta**2)
    if needed < pairs + 2 or (tau <= 0.75 and tau <= least):
        reason = (
            f"with {pairs} pairs and q/p = {theta:.3g} the threshold must be at least "
            f"{0.5 + 1 / pairs:.4g} and above {least:.4g}; it is {tau:.4g}"
        )
        return Bound(None, assumptions, reason)
    if tau <= 0.75:
        number = q * theta * pairs / (2 * (needed - pairs) - 1)
    else:
        number = q * theta * 2 * (2 * pairs - needed + 1) / (pairs + 1)
    return Bound(number, assumptions, n_features=p)


def fits_needed(threshold: float, pairs: int) -> int:
    """Return the smallest number of the 2 B fits whose share is at least the threshold."""
    fits = round(threshold * 2 * pairs)
    return fits + 1 if fits / (2 * pairs) < threshold else fits


def check_threshold(threshold: Any, name: str) -> None:
    """Raise ParameterError if a share of fits is not in (0, 1]."""
    real = isinstance(threshold, numbers.Real) and not isinstance(threshold, bool)
    if not real or not 0 < threshold <= 1:
        raise ParameterError(f"{name} must be a number in (0, 1]; got {threshold!r}")


def check_pairs(pairs: Any, name: str) -> None:
    """Raise ParameterError if a number of pairs is not a whole number >= 1."""
    if not is_whole(pairs) or pairs < 1:
        raise ParameterError(f"{name} must be a whole number >= 1; got {pairs!r}")
