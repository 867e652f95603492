"""Bounds on false selections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from support.stability_cases import StrongestColumns
from thresher import ParameterError
from thresher.stability import (
    StabilitySelection,
    false_selections_bound,
)


@given(
    st.integers(2, 200),
    st.floats(0.501, 1.0),
    st.integers(2, 10**6),
    st.floats(0.0, 1.0),
)
def test_bounds_are_the_published_ones(B: int, threshold: float, p: int, share: float) -> None:
    q = share * p
    tau = math.ceil(round(threshold * 2 * B, 9)) / (2 * B)
    theta = q / p
    worst = false_selections_bound(q, p, threshold=threshold, pairs=B)
    sharp = false_selections_bound(q, p, threshold=threshold, pairs=B, unimodal=True)
    assert worst.number == pytest.approx(q**2 / ((2 * tau - 1) * p))
    least = min(0.5 + theta**2, 0.5 + 1 / (2 * B) + 0.75 * theta**2)
    if theta > 1 / math.sqrt(3) or tau < 0.5 + 1 / B - 1e-12 or (tau <= 0.75 and tau <= least):
        assert sharp.number is None
        assert str(sharp) == f"not available, because {sharp.reason}"
    else:
        if tau <= 0.75:
            constant = 1 / (2 * (2 * tau - 1 - 1 / (2 * B)))
        else:
            constant = 4 * (1 - tau + 1 / (2 * B)) / (1 + 1 / B)
        assert sharp.number == pytest.approx(constant * q**2 / p)
        assert sharp.number <= worst.number
        assert sharp.reason is None


def largest_tail(B: int, mean: float, j: int) -> float:
    """Return the largest P(Z >= j/B) over unimodal Z on 0, 1/B, ..., 1 with this mean."""
    values, best = np.arange(B + 1) / B, 0.0
    rise = np.eye(B + 1)[:-1] - np.eye(B + 1)[1:]  # f[i] - f[i + 1]
    for mode in range(B + 1):
        signs = np.where(np.arange(B) < mode, 1.0, -1.0)
        found = linprog(
            -(np.arange(B + 1) >= j).astype(float),
            A_ub=signs[:, None] * rise,
            b_ub=np.zeros(B),
            A_eq=[np.ones(B + 1), values],
            b_eq=[1.0, mean],
        )
        if found.status == 0:
            best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("theta", [0.05, 0.3, 0.55])
@pytest.mark.parametrize("B", [5, 10])
def test_unimodal_bound_is_above_the_worst_unimodal_distribution(B: int, theta: float) -> None:
    """A feature selected with probability theta is selected by both halves with theta^2.

    If a share of tau of the 2 B fits selects it, both halves select it in a share of at least
    2 tau - 1 of the pairs. The theorem bounds the probability of that by C theta^2.
    """
    ratios = []
    for needed in range(B + 1, 2 * B + 1):
        bound = false_selections_bound(
            theta * 100, 100, threshold=needed / (2 * B), pairs=B, unimodal=True
        )
        if bound.number is None:
            continue
        tail = largest_tail(B, theta**2, needed - B)
        constant = bound.number / (theta**2 * 100)
        assert tail <= constant * theta**2 * (1 + 1e-9), needed
        ratios.append(tail / (constant * theta**2))
    assert max(ratios) > 0.85  # the bound is tight


def test_bounds_that_do_not_exist() -> None:
    assert "above 1/2" in str(false_selections_bound(5, 100, threshold=0.5))
    assert "above 1/2" in str(false_selections_bound(5, 100, threshold=0.2, unimodal=True))
    assert "1/sqrt(3)" in str(false_selections_bound(60, 100, threshold=0.9, unimodal=True))
    few = false_selections_bound(1, 100, threshold=0.6, pairs=2, unimodal=True)
    assert few.number is None
    assert "with 2 pairs and q/p = 0.01 the threshold must be at least 1" in str(few)
    assert false_selections_bound(0, 100).number == 0.0
    assert "at most 0 false" in str(false_selections_bound(0, 100))
    assert "unimodal" in false_selections_bound(1, 100, unimodal=True).assumptions


def test_useless_bounds() -> None:
    for q, useful in ((10, True), (44, True), (45, False), (100, False)):  # 5 q^2 / p, p = 100
        bound = false_selections_bound(q, 100, threshold=0.6)
        assert bound.number == pytest.approx(q * q / 20)
        assert str(bound).startswith("at most" if useful else "no useful bound: ")
        assert len(str(bound)) < 300
    assert "of 100 features" in str(bound)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_selected": 101}, r"n_selected must be in 0\.\.n_features = 100"),
        ({"n_selected": math.nan}, "n_selected must be"),
        ({"n_features": 0}, "n_features must be"),
        ({"threshold": 0.0}, r"threshold must be a number in \(0, 1\]"),
        ({"threshold": 1.01}, "threshold must be"),
        ({"threshold": "high"}, "threshold must be"),
        ({"pairs": 0}, "pairs must be a whole number >= 1"),
        ({"pairs": 2.0}, "pairs must be"),
    ],
)
def test_bounds_of_bad_numbers(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        false_selections_bound(**({"n_selected": 1, "n_features": 100} | bad))


def test_false_selections_on_noise_stay_below_the_bounds() -> None:
    """On noise, all selections are false; their mean is below the bounds."""
    p, rounds = 100, 40
    thresholds = [0.55, 0.6, 0.7, 0.75, 0.8, 0.9]
    counts = np.zeros((rounds, len(thresholds)))
    for round_ in range(rounds):
        rng = np.random.default_rng(round_)
        noise, y = rng.normal(size=(40, p)), rng.normal(size=40)
        selector = StabilitySelection(
            StrongestColumns(), pairs=20, refit=False, random_state=round_
        ).fit(noise, y)
        assert selector.n_selected_mean_ == 10
        shares = selector.selection_probabilities_.data
        counts[round_] = [(shares >= threshold).sum() for threshold in thresholds]
        assert counts[round_, 1] == len(selector.selected_)
    for threshold, mean in zip(thresholds, counts.mean(axis=0), strict=True):
        worst = false_selections_bound(10, p, threshold=threshold, pairs=20)
        sharp = false_selections_bound(10, p, threshold=threshold, pairs=20, unimodal=True)
        assert mean <= sharp.number < worst.number, threshold
    assert counts[:, 0].mean() > 0.5  # there were false selections
