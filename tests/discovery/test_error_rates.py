"""q-values, p-values and expected numbers against a naive count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.discovery.error_rates import ErrorRates


def counted(strength, redrawn, rows):
    """Count for each feature, from the definitions, in single precision."""
    strength, redrawn = strength.astype(np.float32), redrawn.astype(np.float32)
    features, redraws = redrawn.shape
    expected, q, p, alike = (np.zeros(features) for _ in range(4))
    bins = [int(np.floor(2 * np.log2(max(r, 1.0)))) for r in rows]
    for j in range(features):
        expected[j] = (1 + sum(z >= strength[j] for row in redrawn for z in row)) / redraws
    for j in range(features):
        shares = [
            expected[i] / sum(strength[k] >= strength[i] for k in range(features))
            for i in range(features)
            if 2 <= strength[i] <= strength[j]
        ]
        q[j] = min([1.0, *shares])
        reach = 2
        while True:
            like = [i for i in range(features) if abs(bins[i] - bins[j]) <= reach]
            if len(like) >= min(50, features):
                break
            reach += 1
        stronger = sum(z >= strength[j] for i in like for z in redrawn[i])
        alike[j], p[j] = len(like), (1 + stronger) / (1 + len(like) * redraws)
    return expected, q, p, alike


@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.integers(1, 90),
    redraws=st.integers(2, 7),
    ties=st.booleans(),
)
def test_rates_equal_a_count(seed, features, redraws, ties):
    rng = np.random.default_rng(seed)
    strength = np.abs(rng.normal(size=features)) * rng.choice([1.0, 3.0], features)
    redrawn = np.abs(rng.normal(size=(features, redraws)))
    if ties:
        strength, redrawn = strength.round(1), redrawn.round(1)
    rows = np.floor(10 ** rng.uniform(0, 5, features))
    found = ErrorRates.of(strength, redrawn, rows)
    expected, q, p, alike = counted(strength, redrawn, rows)
    np.testing.assert_allclose(found.expected_false, expected)
    np.testing.assert_allclose(found.qvalues, q)
    np.testing.assert_allclose(found.pvalues, p)
    np.testing.assert_array_equal(found.alike, alike)
    np.testing.assert_array_equal(found.by_fdr(0.5), np.flatnonzero(q <= 0.5))
    np.testing.assert_array_equal(
        found.by_number(2.0), np.flatnonzero((expected <= 2.0) & (strength.astype(np.float32) >= 2))
    )
    stronger = np.argsort(strength)
    assert (np.diff(found.qvalues[stronger]) <= 1e-12).all()


def test_nothing_to_compare():
    rates = ErrorRates.of(np.zeros(0), np.zeros((0, 20)), np.zeros(0))
    assert len(rates.by_fdr(1.0)) == len(rates.by_number(1e9)) == len(rates.alike) == 0


def test_the_strongest_feature_needs_enough_redraws():
    """With R redraws, no q-value is below 1 / R divided by the number of features selected."""
    for redraws, least in ((2, 0.5), (20, 0.05), (100, 0.01)):
        null = np.abs(np.random.default_rng(0).normal(size=(50, redraws)))
        rates = ErrorRates.of(np.r_[99.0, np.full(49, 0.1)], null, np.full(50, 9.0))
        assert rates.qvalues[0] == rates.expected_false[0] == pytest.approx(least)


def test_pvalues_of_redraws_are_uniform():
    rng = np.random.default_rng(1)
    spread = np.repeat([1.0, 3.0], 500)  # rare features have heavier tails
    null = np.abs(rng.normal(size=(1000, 20))) * spread[:, None]
    rates = ErrorRates.of(
        np.abs(rng.normal(size=1000)) * spread, null, np.repeat([1000.0, 3.0], 500)
    )
    for half in (rates.pvalues[:500], rates.pvalues[500:]):
        assert abs((half < 0.1).mean() - 0.1) < 0.05
        assert abs((half < 0.5).mean() - 0.5) < 0.08
