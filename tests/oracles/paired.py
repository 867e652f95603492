"""Naive tests of two models on the same rows."""

from __future__ import annotations

import math

import numpy as np


def delong(first, second, positive) -> tuple[float, float, float]:
    """DeLong, DeLong and Clarke-Pearson (1988), with one loop over all pairs of rows."""

    def kernel(a: float, b: float) -> float:
        return 1.0 if a > b else 0.5 if a == b else 0.0

    own, other = np.flatnonzero(positive), np.flatnonzero(~positive)
    above = [[np.mean([kernel(s[i], s[j]) for j in other]) for i in own] for s in (first, second)]
    below = [[np.mean([kernel(s[i], s[j]) for i in own]) for j in other] for s in (first, second)]
    difference = float(np.mean(above[0]) - np.mean(above[1]))
    covariance = np.cov(above) / len(own) + np.cov(below) / len(other)
    contrast = np.array([1.0, -1.0])
    error = math.sqrt(max(0.0, float(contrast @ covariance @ contrast)))
    return difference, error, math.erfc(abs(difference) / error / math.sqrt(2)) if error else 1.0


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the share of outcomes of fair coins that are as uneven, by counting them."""
    total = only_first + only_second
    uneven = abs(only_first - only_second)
    chances = [math.comb(total, k) for k in range(total + 1) if abs(2 * k - total) >= uneven]
    return sum(chances) / 2**total
