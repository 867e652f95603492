"""Kappa, and densities of selected features."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from support.stability_cases import RNG, X, Y
from thresher import FTRLClassifier, ParameterError
from thresher.stability import (
    kappa,
    selected_by_density,
    stability_score,
)

masks = st.integers(2, 12).flatmap(
    lambda p: st.lists(st.lists(st.booleans(), min_size=p, max_size=p), min_size=2, max_size=6)
)

# ---- kappa ------------------------------------------------------------------------------------


def by_the_book(one: np.ndarray, other: np.ndarray) -> float:
    """Kappa by the formula of R-15.3."""
    p = len(one)
    p11, p12 = (one & other).sum(), (one & ~other).sum()
    p21, p22 = (~one & other).sum(), (~one & ~other).sum()
    qo = (p11 + p22) / p
    qe = ((p11 + p12) * (p11 + p21) + (p12 + p22) * (p21 + p22)) / p**2
    return 1.0 if qe == 1 else (qo - qe) / (1 - qe)


@given(masks)
def test_kappa_equals_the_paper_and_scikit_learn(drawn: list[list[bool]]) -> None:
    one, other = np.array(drawn[0]), np.array(drawn[1])
    p = len(one)
    found = kappa(one, other, p)
    assert found == pytest.approx(by_the_book(one, other), abs=1e-12)
    if one.any() and not one.all():
        assert found == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)
    assert found == kappa(np.flatnonzero(one), set(np.flatnonzero(other).tolist()), p)
    assert found == kappa(other, one, p)


def test_kappa_of_extremes() -> None:
    assert kappa([], [], 5) == 1.0
    assert kappa(range(5), np.ones(5, bool), 5) == 1.0
    assert kappa([], range(5), 5) == 0.0
    assert kappa([0, 1], [2, 3], 4) == -1.0  # complete disagreement
    assert kappa([0], range(1, 10), 10) == pytest.approx(-0.2195, abs=1e-4)
    assert kappa([3], [3], 1_000) == 1.0


@pytest.mark.parametrize("p", [2**31, 2**53 + 1, 2**62])
def test_kappa_is_exact_for_any_number_of_features(p: int) -> None:
    one, other = [0, p - 1, 5], [p - 1, 5, 7, 8]
    exact = 2 * (p * 2 - 12) / (p * 7 - 24)  # integers of Python do not overflow
    assert kappa(one, other, p) == exact
    assert stability_score([one, other], p) == exact
    assert stability_score([one, one, []], p) == pytest.approx(1 / 3)


@given(masks)
def test_stability_is_the_mean_over_pairs(drawn: list[list[bool]]) -> None:
    supports = np.array(drawn)
    p = supports.shape[1]
    pairs = itertools.combinations(range(len(supports)), 2)
    mean = np.mean([kappa(supports[i], supports[j], p) for i, j in pairs])
    assert stability_score(supports, p) == pytest.approx(mean, abs=1e-12)
    assert stability_score(map(np.flatnonzero, supports), p) == stability_score(supports, p)


def test_stability_of_many_supports() -> None:
    supports = [RNG.choice(500, size=k % 7, replace=False) for k in range(1100)]
    some = RNG.integers(0, 1100, (200, 2))
    incidence = np.zeros((1100, 500))
    for row, support in zip(incidence, supports, strict=True):
        row[support] = 1
    a, c = incidence.sum(axis=1), incidence @ incidence.T
    apart = 500 * (a[:, None] + a) - 2 * np.outer(a, a)
    with np.errstate(invalid="ignore"):
        table = np.where(apart == 0, 1.0, 2 * (500 * c - np.outer(a, a)) / apart)
    for i, j in some:
        assert table[i, j] == pytest.approx(kappa(supports[i], supports[j], 500))
    mean = (table.sum() - np.trace(table)) / (1100 * 1099)
    assert stability_score(supports, 500) == pytest.approx(mean, rel=1e-12)


def test_a_feature_given_twice_counts_once() -> None:
    assert kappa([1, 1, 2], [2, 1], 10) == 1.0
    assert stability_score([[1, 1, 2], [2, 1]], 10) == 1.0


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ([0, 5], r"one must have feature numbers in 0\.\.4; it has 5"),
        ([-1], r"one must have feature numbers in 0\.\.4; it has -1"),
        (np.array([2**63], np.uint64), r"it has 9223372036854775808"),
        ([True, False], r"one is a boolean mask .* n_features = 5; its length is 2"),
        (np.zeros(0, bool), r"its length is 0"),
        ([1.0, 2.0], r"one must have whole numbers"),
        (["a"], r"one must have whole numbers"),
        (np.zeros((2, 2), int), r"one must have one dimension"),
    ],
)
def test_invalid_supports(support: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kappa(support, [0], 5)
    with pytest.raises(ParameterError, match=message.replace("one ", r"supports\[1\] ", 1)):
        stability_score([[0], support], 5)


@pytest.mark.parametrize("support", [3, 2.5, None])
def test_numbers_are_not_supports(support: Any) -> None:
    with pytest.raises(ParameterError, match="one must be feature numbers, a boolean mask or a M"):
        kappa(support, [0], 5)
    with pytest.raises(ParameterError, match=r"supports\[1\] must be feature numbers"):
        stability_score([[0], support], 5)
    with pytest.raises(ParameterError, match="supports must have at least 2 supports; got"):
        stability_score(support, 5)


def test_models_are_supports() -> None:
    one, other, three = (
        FTRLClassifier(l1=l1, passes=5, random_state=0).fit(X, y).model_
        for l1, y in ((60.0, Y), (5.0, Y), (20.0, np.digitize(X[:, 4] + X[:, 1], [-0.5, 0.5])))
    )
    assert len(three.intercept) == 3
    sets = [set(model.indices.tolist()) for model in (one, other, three)]
    assert kappa(one, other, 40) == kappa(sets[0], sets[1], 40) < 1
    assert kappa(one, sets[2], 40) == kappa(sets[0], three, 40)
    assert stability_score([one, other, three], 40) == stability_score(sets, 40)
    bins = selected_by_density(X, three, bins=1)
    assert bins.selected.tolist() == [len(sets[2])]
    with pytest.raises(ParameterError, match="one is a model of 40 features; n_features is 41"):
        kappa(one, other, 41)


def test_numbers_of_supports_and_features() -> None:
    for supports in ([], [[1]]):
        with pytest.raises(ParameterError, match=rf"at least 2 supports; got {len(supports)}"):
            stability_score(supports, 5)
    for n_features in (0, -1, 2.0, True, None):
        with pytest.raises(ParameterError, match="n_features must be a whole number >= 1"):
            kappa([], [], n_features)  # type: ignore[arg-type]
    assert kappa([], [0], np.int32(5)) == 0.0  # type: ignore[arg-type]


# ---- selection by density ---------------------------------------------------------------------


@given(
    st.integers(0, 10**6),
    st.one_of(st.integers(1, 12), st.just([0.0, 0.2, 0.5, 1.0]), st.just([0.3, 0.4])),
    st.sampled_from(["csr", "csc", "coo", "dense"]),
)
def test_densities_equal_a_simple_count(seed: int, bins: Any, form: str) -> None:
    rng = np.random.default_rng(seed)
    dense = (rng.random((20, 30)) < rng.random(30) ** 3) * rng.normal(size=(20, 30))
    matrix = dense if form == "dense" else sp.csr_matrix(dense).asformat(form)
    mask = rng.random(30) < 0.4
    found = selected_by_density(matrix, mask, bins)
    density = (dense != 0).mean(axis=0)
    for k, (low, high) in enumerate(itertools.pairwise(found.edges)):
        last = k == len(found.features) - 1
        inside = (low <= density) & ((density < high) | (last & (density == high)))
        assert found.features[k] == inside.sum()
        assert found.selected[k] == (inside & mask).sum()
    assert found.unseen == (density == 0).sum()
    assert found.n_features == 30
    if isinstance(bins, int):  # every feature that occurs is in a bin
        assert found.features.sum() == 30 - found.unseen
        assert len(found.features) == bins or density[density > 0].min() == density.max()
    again = selected_by_density(matrix, np.flatnonzero(mask), bins)
    np.testing.assert_array_equal(again.selected, found.selected)


def test_densities_of_stored_zeros_and_repeated_entries() -> None:
    matrix = sp.csr_matrix(([0.0, 1.0, -1.0, 2.0], [0, 1, 1, 2], [0, 4, 4]), shape=(2, 4))
    before = matrix.data.copy()
    found = selected_by_density(matrix, [2, 3], bins=[0.0, 0.1, 1.0])
    assert found.features.tolist() == [3, 1]
    assert found.selected.tolist() == [1, 1]
    assert found.unseen == 3
    np.testing.assert_array_equal(matrix.data, before)


def test_densities_of_a_very_wide_matrix() -> None:
    wide = sp.csr_matrix(([1.0, 1.0], [5, 2**40], [0, 1, 2]), shape=(2, 2**41))
    found = selected_by_density(wide, [2**40, 2**40 + 1])
    assert found.unseen == 2**41 - 2
    assert (found.features.tolist(), found.selected.tolist()) == ([2], [1])
    assert stability_score([[2**40], [2**40]], 2**41) == 1.0


def test_shares_and_table_of_densities() -> None:
    found = selected_by_density(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]), [1], bins=3)
    np.testing.assert_allclose(found.feature_share, [1 / 3, 0, 1 / 3])
    np.testing.assert_array_equal(found.selected_share, [0, np.nan, 1])
    lines = repr(found).splitlines()
    assert lines[0].split() == ["density", "features", "share", "selected", "share"]
    assert lines[1].split() == ["0.5", "-", "0.63", "1", "33.33%", "0", "0.00%"]
    assert lines[2].split()[-1] == "-"
    assert lines[-1] == "1 of 3 features in no row"
    empty = selected_by_density(np.zeros((2, 3)), [])
    assert (empty.features.tolist(), empty.unseen) == ([3], 3)


@pytest.mark.parametrize("bins", [0, -1, 1.5, True, [], [0.5], [0.5, 0.5], [0.5, 0.1], [-0.1, 1.0]])
def test_invalid_bins(bins: Any) -> None:
    with pytest.raises(ParameterError, match="bins must be"):
        selected_by_density(np.eye(3), [0], bins)


def test_densities_need_a_matrix() -> None:
    for shape in [(3,), (0, 3), (3, 0)]:
        with pytest.raises(ParameterError, match="X must have rows and columns"):
            selected_by_density(np.zeros(shape), [])
