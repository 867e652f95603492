"""Metrics of a ranking of rows, from counts of the rows at each score.

All functions take a `Curve`: cumulated weights from the largest score to the smallest. They also
take the curves of many bootstrap replicates at once, in the columns of two-dimensional arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.evaluation.metric import ratio

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Weights of positive and negative rows with a score of at least each threshold.

    Attributes
    ----------
    thresholds : array of shape (groups,)
        Decreasing. A group has one score or, in a sketch, a range of scores that ends here.
    hits, misses : array of shape (groups,) or (groups, replicates)
        Weights of the positive and of the negative rows down to this threshold.
    mixed : array of bool or None
        Whether the scores of a group differ, so that the order of its rows is unknown.

    Examples
    --------
    >>> curve = Curve.of(np.array([0.9, 0.4, 0.4, 0.1]), np.array([True, True, False, False]))
    >>> curve.hits.tolist(), curve.misses.tolist()
    ([1.0, 2.0, 2.0], [0.0, 1.0, 2.0])
    >>> float(roc_auc(curve)), float(average_precision(curve))
    (0.875, 0.8333333333333333)
    """

    thresholds: Floats
    hits: Floats
    misses: Floats
    mixed: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls, scores: Floats, positive: NDArray[np.bool_], weights: Floats | None = None
    ) -> Curve:
        """Return the exact curve of rows.

        Parameters
        ----------
        scores : array of shape (rows,)
        positive : array of bool
        weights : array of shape (rows,), optional
        """
        order = np.argsort(-scores, kind="stable")
        scores, positive = scores[order], positive[order]
        last = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
        if len(scores) == 0:
            last = np.zeros(0, np.intp)
        weights = np.ones(len(order)) if weights is None else weights[order]
        hits = np.cumsum(np.where(positive, weights, 0.0))[last]
        misses = np.cumsum(np.where(positive, 0.0, weights))[last]
        return cls(scores[last], hits, misses)

    @property
    def steps(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights of each group, positive and negative, and those before it."""
        own, other = (np.diff(a, axis=0, prepend=np.zeros_like(a[:1])) for a in self.parts)
        return own, other, self.hits - own, self.misses - other

    @property
    def parts(self) -> tuple[Floats, Floats]:
        """Hits and misses."""
        return self.hits, self.misses

    @property
    def totals(self) -> tuple[Any, Any]:
        """Weights of all positive and of all negative rows."""
        if len(self.hits) == 0:
            return np.zeros(self.hits.shape[1:]), np.zeros(self.hits.shape[1:])
        return self.hits[-1], self.misses[-1]


def roc_auc(curve: Curve) -> Any:
    """Return the probability that a positive row is above a negative one; ties count as half.

    Parameters
    ----------
    curve : Curve
    """
    own, other, before, _ = curve.steps
    positive, negative = curve.totals
    return ratio((other * (before + own / 2)).sum(axis=0), positive * negative)


def roc_auc_bound(curve: Curve) -> float:
    """Return how far the AUC can be from the exact one: half of the pairs inside of mixed groups.

    Parameters
    ----------
    curve : Curve
    """
    if curve.mixed is None:
        return 0.0
    own, other, _, _ = curve.steps
    positive, negative = curve.totals
    pairs = (own * other)[curve.mixed].sum() / 2
    return float(pairs / (positive * negative)) if positive * negative > 0 else 0.0


def average_precision(curve: Curve) -> Any:
    """Return the mean precision over the positive rows, each at its own score.

    Parameters
    ----------
    curve : Curve
    """
    own, _, _, _ = curve.steps
    positive, _ = curve.totals
    precision = np.nan_to_num(ratio(curve.hits, curve.hits + curve.misses))
    return ratio((precision * own).sum(axis=0), positive)


def average_precision_bound(curve: Curve) -> float:
    """Return how far the average precision can be from the exact one.

    In a mixed group, all positive rows may be above all negative ones, or below.

    Parameters
    ----------
    curve : Curve
    """
    if curve.mixed is None:
        return 0.0
    own, other, before, others = curve.steps
    positive, _ = curve.totals
    if not positive > 0:
        return 0.0
    value = np.nan_to_num(ratio(curve.hits, curve.hits + curve.misses))
    low = np.nan_to_num(ratio(before, before + others + other))
    high = np.nan_to_num(ratio(before + own, before + own + others), nan=1.0)
    below, above = (own * (value - low))[curve.mixed], (own * (high - value))[curve.mixed]
    return float(max(below.sum(), above.sum()) / positive)


def lift(curve: Curve, share: float) -> Any:
    """Return how much more frequent positive rows are among those with the largest scores.

    Rows with the same score at the end of the share count in part.

    Parameters
    ----------
    curve : Curve
    share : float
        Share of the weight of all rows.
    """
    positive, negative = curve.totals
    if curve.hits.ndim > 1:
        columns = zip(curve.hits.T, curve.misses.T, strict=True)
        return np.array([lift(Curve(curve.thresholds, *pair), share) for pair in columns])
    total = positive + negative
    if not (positive > 0 and total > 0):
        return np.nan
    found = np.interp(
        share * total, np.append(0.0, curve.hits + curve.misses), np.append(0.0, curve.hits)
    )
    return found / (share * positive)


def lift_bound(curve: Curve, share: float) -> float:
    """Return how far the lift can be from the exact one.

    Only the group in which the share ends matters: its positive rows may be above its negative
    ones, or below.

    Parameters
    ----------
    curve : Curve
    share : float
        As for `lift`.
    """
    own, other, before, others = curve.steps
    positive, negative = curve.totals
    if curve.mixed is None or not positive > 0:
        return 0.0
    ends = curve.hits + curve.misses
    at = min(int(np.searchsorted(ends, share * (positive + negative))), len(ends) - 1)
    if not curve.mixed[at]:
        return 0.0
    taken = share * (positive + negative) - before[at] - others[at]
    value = taken * own[at] / (own[at] + other[at])
    most, least = min(own[at], taken), max(0.0, taken - other[at])
    return float(max(most - value, value - least) / (share * positive))


def at_thresholds(curve: Curve, thresholds: Floats) -> tuple[Floats, Floats]:
    """Return hits and misses among rows with a score of at least each threshold.

    Parameters
    ----------
    curve : Curve
    thresholds : array
    """
    count = np.searchsorted(-curve.thresholds, -thresholds, side="right")
    hits, misses = np.append(0.0, curve.hits), np.append(0.0, curve.misses)
    return hits[count], misses[count]


def thinned(x: Floats, y: Floats, most: int = 200) -> list[tuple[float, float]]:
    """Return points of a curve, evenly along its length, with its first and last points.

    Parameters
    ----------
    x, y : array
        Coordinates from 0 to 1.
    most : int
        About how many points.
    """
    way = np.append(0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y))))
    at = np.unique(np.searchsorted(way, np.linspace(0, way[-1], most)))
    at = np.unique(np.clip(np.concatenate([[0], at, [len(x) - 1]]), 0, len(x) - 1))
    return [(float(a), float(b)) for a, b in zip(x[at], y[at], strict=True)]
