"""Groups of features: the sum of z^2 against a naive computation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.discovery_cases import discovered, signal
from thresher import ParameterError
from thresher.discovery.error_rates import ErrorRates
from thresher.discovery.feature_groups import GroupEvidence, groups_of


@given(seed=st.integers(0, 2**32 - 1), redraws=st.integers(3, 8), words=st.booleans())
def test_evidence_equals_a_naive_computation(seed, redraws, words):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 7, 40)
    z, null = 2 * rng.normal(size=40), rng.normal(size=(40, redraws))
    rows = rng.integers(1, 50, 40).astype(float)
    names = np.array([f"group {g}" for g in range(7)])
    found = GroupEvidence.of(names[groups] if words else groups, z, null, rows)
    present = sorted(set(groups.tolist()))
    assert found.labels.tolist() == [names[g] if words else g for g in present]
    strength, against, sizes = [], [], []
    for group in present:
        own = groups == group
        sums = (null[own] ** 2).sum(axis=0)
        strength.append(((z[own] ** 2).sum() - sums.mean()) / sums.std(ddof=1))
        against.append([
            (sums[r] - np.delete(sums, r).mean()) / np.delete(sums, r).std(ddof=1)
            for r in range(redraws)
        ])  # fmt: skip
        sizes.append(rows[own].sum())
    expected = ErrorRates.of(
        np.maximum(strength, 0.0), np.maximum(against, 0.0), np.array(sizes)
    )  # a group that is weaker than the mean has no evidence
    for name in ("strength", "expected_false", "qvalues", "pvalues"):
        np.testing.assert_allclose(getattr(found.rates, name), getattr(expected, name), rtol=1e-6)
    np.testing.assert_array_equal(found.labels[found.members].astype(str), (
        names[groups] if words else groups
    ).astype(str))  # fmt: skip


def test_groups_without_evidence_have_no_strength():
    groups = np.array([0, 0, 1])
    found = GroupEvidence.of(groups, np.zeros(3), np.zeros((3, 5)), np.ones(3))
    assert found.rates.strength.tolist() == [0.0, 0.0]
    assert (found.rates.qvalues == 1.0).all()


@pytest.mark.parametrize("groups", [[1, 2], np.zeros((3, 2)), 5, []])
def test_groups_of_another_length_are_refused(groups):
    with pytest.raises(ParameterError, match="feature_groups must be the group of each of the 3"):
        groups_of(groups, 3)


def test_joint_drops_no_members_of_groups():
    X, y = signal()
    with pytest.raises(ParameterError, match=r"form='joint' drops single features, and feature_gr"):
        discovered(form="joint", feature_groups=np.arange(40) // 4).fit(X, y)
