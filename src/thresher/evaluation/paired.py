"""Tests of two models on the same rows: McNemar for labels, DeLong for the AUC."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from thresher.evaluation.bootstrap import Floats

_EXACT = 1000  # pairs of rows that disagree, up to which McNemar's test is exact


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the p value of McNemar's test: whether both models make errors equally often.

    With up to 1,000 rows that only one model predicts correctly it is exact: the two-sided binomial
    test. With more it is the normal approximation with a continuity correction.

    Parameters
    ----------
    only_first, only_second : int
        Numbers of rows that only the first, and only the second model predicts correctly.

    Examples
    --------
    >>> mcnemar(2, 10)
    0.03857421875
    """
    total, less = only_first + only_second, min(only_first, only_second)
    if total == 0:
        return 1.0
    if total <= _EXACT:
        from scipy.stats import binom

        return float(min(1.0, 2 * binom.cdf(less, total, 0.5)))
    z = max(abs(only_first - only_second) - 1, 0) / math.sqrt(total)
    return math.erfc(z / math.sqrt(2))


def delong(
    first: Floats, second: Floats, positive: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return the difference of two AUCs on the same rows, its standard error, and the p value.

    The variance is that of DeLong, DeLong and Clarke-Pearson (1988), from midranks (Sun and Xu,
    2014). The p value is two-sided; it is 1 if both rankings are the same.

    Parameters
    ----------
    first, second : array of shape (rows,)
        Scores.
    positive : array of bool
        At least two rows must be positive, and two negative.

    Examples
    --------
    >>> y = np.array([True, True, True, False, False, False])
    >>> good, bad = np.array([3.0, 2, 1, 0, -1, -2]), np.array([0.0, 2, -2, 1, -1, 3])
    >>> difference, error, p = delong(good, bad, y)
    >>> round(difference, 4), p < 0.05
    (0.6667, True)
    """
    above, below = [], []
    for scores in (first, second):
        own, other = scores[positive], scores[~positive]
        above.append(_below(np.sort(other), own))
        below.append(1.0 - _below(np.sort(own), other))
    difference = float(above[0].mean() - above[1].mean())
    variance = np.var(above[0] - above[1], ddof=1) / len(above[0])
    variance += np.var(below[0] - below[1], ddof=1) / len(below[0])
    error = math.sqrt(float(variance))
    if error == 0.0:
        return difference, 0.0, 1.0 if difference == 0 else 0.0
    return difference, error, math.erfc(abs(difference) / error / math.sqrt(2))


def _below(others: Floats, scores: Floats) -> Floats:
    """Return for each score the share of other scores, sorted, below it; ties count as half."""
    left, right = (np.searchsorted(others, scores, side) for side in ("left", "right"))
    return np.asarray((left + right) / (2.0 * len(others)))
