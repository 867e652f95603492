"""Kappa, densities of selected features, stability selection and its bounds."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from thresher import FTRLClassifier, FTRLRegressor, ParameterError, TruncatedGradientClassifier
from thresher.preprocessing import UnitVarianceScaler
from thresher.stability import (
    Bound,
    PairsDone,
    StabilitySelection,
    false_selections_bound,
    kappa,
    selected_by_density,
    stability_score,
)

RNG = np.random.default_rng(11)
X = RNG.normal(size=(301, 40))
Y = np.where(X[:, 4] - X[:, 9] + 0.5 * RNG.normal(size=301) > 0, "spam", "ham")
SPARSE = FTRLClassifier(l1=60.0, passes=5)

masks = st.integers(2, 12).flatmap(
    lambda p: st.lists(st.lists(st.booleans(), min_size=p, max_size=p), min_size=2, max_size=6)
)

# ---- kappa ------------------------------------------------------------------------------------


def by_the_book(one: np.ndarray, other: np.ndarray) -> float:
    """Kappa as R-15.3 writes it."""
    p = len(one)
    p11, p12 = (one & other).sum(), (one & ~other).sum()
    p21, p22 = (~one & other).sum(), (~one & ~other).sum()
    qo = (p11 + p22) / p
    qe = ((p11 + p12) * (p11 + p21) + (p12 + p22) * (p21 + p22)) / p**2
    return 1.0 if qe == 1 else (qo - qe) / (1 - qe)


@given(masks)
def test_kappa_is_that_of_the_paper_and_of_scikit_learn(drawn: list[list[bool]]) -> None:
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
    assert kappa([0, 1], [2, 3], 4) == -1.0  # complete disagreement of halves
    assert kappa([0], range(1, 10), 10) == pytest.approx(-0.2195, abs=1e-4)
    assert kappa([3], [3], 1_000) == 1.0


@pytest.mark.parametrize("p", [2**31, 2**53 + 1, 2**62])
def test_kappa_is_exact_for_any_number_of_features(p: int) -> None:
    one, other = [0, p - 1, 5], [p - 1, 5, 7, 8]
    exact = 2 * (p * 2 - 12) / (p * 7 - 24)  # whole numbers without limit
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


def test_stability_of_more_supports_than_a_block_holds() -> None:
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
        ([0, 5], r"one must hold feature numbers in 0\.\.4; it holds 5"),
        ([-1], r"one must hold feature numbers in 0\.\.4; it holds -1"),
        (np.array([2**63], np.uint64), r"it holds 9223372036854775808"),
        ([True, False], r"one is a boolean mask .* n_features = 5; its length is 2"),
        (np.zeros(0, bool), r"its length is 0"),
        ([1.0, 2.0], r"one must hold whole numbers"),
        (["a"], r"one must hold whole numbers"),
        (np.zeros((2, 2), int), r"one must have one dimension"),
    ],
)
def test_supports_that_are_none(support: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kappa(support, [0], 5)
    with pytest.raises(ParameterError, match=message.replace("one ", r"supports\[1\] ", 1)):
        stability_score([[0], support], 5)


@pytest.mark.parametrize("support", [3, 2.5, None])
def test_numbers_are_no_supports(support: Any) -> None:
    with pytest.raises(ParameterError, match="one must be feature numbers, a boolean mask or a M"):
        kappa(support, [0], 5)
    with pytest.raises(ParameterError, match=r"supports\[1\] must be feature numbers"):
        stability_score([[0], support], 5)
    with pytest.raises(ParameterError, match="supports must hold at least 2 supports; got"):
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
def test_densities_by_recount(seed: int, bins: Any, form: str) -> None:
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
    if isinstance(bins, int):  # all features that occur are in a bin
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


def test_densities_of_a_matrix_with_columns_without_number() -> None:
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
def test_bins_that_make_no_sense(bins: Any) -> None:
    with pytest.raises(ParameterError, match="bins must be"):
        selected_by_density(np.eye(3), [0], bins)


def test_densities_need_a_matrix() -> None:
    for shape in [(3,), (0, 3), (3, 0)]:
        with pytest.raises(ParameterError, match="X must have rows and columns"):
            selected_by_density(np.zeros(shape), [])


# ---- bounds -----------------------------------------------------------------------------------


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
    """Return the largest P(Z >= j/B) of a unimodal Z on 0, 1/B, ..., 1 of this mean."""
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
    """A feature selected with probability theta is in both halves with theta^2.

    If it is selected in a share of tau of the 2 B fits, both halves of at least 2 tau - 1 of the
    pairs select it: the theorem bounds the probability of that by C theta^2.
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
    assert max(ratios) > 0.85  # and not far above


def test_bounds_that_are_not_there() -> None:
    assert "above 1/2" in str(false_selections_bound(5, 100, threshold=0.5))
    assert "above 1/2" in str(false_selections_bound(5, 100, threshold=0.2, unimodal=True))
    assert "1/sqrt(3)" in str(false_selections_bound(60, 100, threshold=0.9, unimodal=True))
    few = false_selections_bound(1, 100, threshold=0.6, pairs=2, unimodal=True)
    assert few.number is None
    assert "with 2 pairs and q/p = 0.01 the threshold must be at least 1" in str(few)
    assert false_selections_bound(0, 100).number == 0.0
    assert "at most 0 false" in str(false_selections_bound(0, 100))
    assert "unimodal" in false_selections_bound(1, 100, unimodal=True).assumptions


def test_bounds_that_say_nothing() -> None:
    for q, useful in ((10, True), (44, True), (45, False), (100, False)):  # 5 q^2 / p, p = 100
        bound = false_selections_bound(q, 100, threshold=0.6)
        assert bound.number == pytest.approx(q * q / 20)
        assert str(bound).startswith("at most" if useful else "no useful bound: ")
        assert len(str(bound)) < 200
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


class StrongestColumns(RegressorMixin, BaseEstimator):
    """Select the columns of largest covariance with y: no model, but fast."""

    def __init__(self, count: int = 10) -> None:
        self.count = count

    def fit(self, X: Any, y: Any) -> StrongestColumns:
        strength = np.abs((y - y.mean()) @ X)
        self.coef_ = np.zeros(X.shape[1])
        self.coef_[np.argpartition(-strength, self.count)[: self.count]] = 1.0
        return self


def test_false_selections_on_noise_stay_below_the_bounds() -> None:
    """Of noise, all selections are false; the bounds hold for their mean."""
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
    assert counts[:, 0].mean() > 0.5  # there was something to bound


# ---- stability selection ----------------------------------------------------------------------


class Recorder(ClassifierMixin, BaseEstimator):
    """Select by chance, and write down what was fitted on which rows."""

    log: list[tuple[np.ndarray, np.ndarray, int, np.ndarray]] = []  # noqa: RUF012

    def __init__(self, size: int = 3, random_state: Any = None) -> None:
        self.size = size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Recorder:
        self.classes_ = np.unique(y)
        chosen = np.random.default_rng(self.random_state).permutation(X.shape[1])[: self.size]
        self.coef_ = np.zeros((2, X.shape[1]))
        self.coef_[RNG.integers(2, size=len(chosen)), chosen] = 1.0
        Recorder.log.append((X[:, 0].astype(int), y, self.size, np.sort(chosen)))
        return self


@given(st.integers(6, 41), st.integers(1, 6), st.floats(0.05, 1.0), st.integers(0, 10**6))
def test_probabilities_by_recount(rows: int, pairs: int, threshold: float, seed: int) -> None:
    """P-17: count again which fits selected which features."""
    Recorder.log.clear()
    numbered = np.column_stack([np.arange(rows), np.ones((rows, 7))])
    y = np.random.default_rng(seed).permutation(np.arange(rows) % 3 == 0)
    selector = StabilitySelection(
        Recorder(),
        param_name="size",
        param_values=[1, 4],
        pairs=pairs,
        threshold=threshold,
        refit=False,
        random_state=seed,
    ).fit(numbered, y)
    assert len(Recorder.log) == 4 * pairs
    seen = np.zeros((2, 8))
    unions = []
    for number in range(2 * pairs):
        (r1, y1, size1, s1), (r2, _, size2, s2) = Recorder.log[2 * number : 2 * number + 2]
        assert (size1, size2) == (1, 4)
        np.testing.assert_array_equal(r1, r2)
        assert np.all(np.diff(r1) > 0)  # rows keep their order
        np.testing.assert_array_equal(y1, y[r1])
        seen[0, s1] += 1
        seen[1, s2] += 1
        unions.append(len(set(s1) | set(s2)))
    for number in range(pairs):
        first, second = Recorder.log[4 * number], Recorder.log[4 * number + 2]
        assert len(first[0]) == len(second[0]) == rows // 2
        assert not set(first[0]) & set(second[0])
        assert abs(int(first[1].sum()) - int(second[1].sum())) <= 1  # stratified
    found = selector.selection_probabilities_
    assert sp.issparse(found)
    assert found.shape == (2, 8)
    assert found.nnz == np.count_nonzero(seen)
    np.testing.assert_array_equal(found.toarray(), seen / (2 * pairs))
    assert selector.n_selected_mean_ == pytest.approx(np.mean(unions))
    mask = (seen / (2 * pairs)).max(axis=0) >= threshold
    np.testing.assert_array_equal(selector.get_support(), mask)
    np.testing.assert_array_equal(selector.get_support(indices=True), np.flatnonzero(mask))
    assert selector.false_selections_bound_ == false_selections_bound(
        selector.n_selected_mean_, 8, threshold=threshold, pairs=pairs
    )
    assert [p for _, p in selector.top(8)] == sorted(
        (p for p in (seen / (2 * pairs)).max(axis=0) if p), reverse=True
    )


def test_halves_without_strata_and_of_both_kinds() -> None:
    y = np.arange(40) % 2 == 0
    differences = []
    for stratify in (True, False):
        Recorder.log.clear()
        StabilitySelection(
            Recorder(), pairs=20, stratify=stratify, refit=False, random_state=3
        ).fit(np.column_stack([np.arange(40), np.ones(40)]), y)
        differences.append(max(abs(int(part.sum()) - 10) for _, part, _, _ in Recorder.log))
    assert differences[0] == 0
    assert differences[1] > 0


def test_every_row_is_left_out_at_times() -> None:
    """Of an odd number of rows one is left out, and not always the same."""
    Recorder.log.clear()
    rows = np.column_stack([np.arange(9), np.ones(9)])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    StabilitySelection(Recorder(), pairs=100, refit=False, random_state=0).fit(rows, y)
    out = [
        set(range(9)) - set(Recorder.log[2 * i][0]) - set(Recorder.log[2 * i + 1][0])
        for i in range(100)
    ]
    assert all(len(left) == 1 for left in out)
    assert {next(iter(left)) for left in out} == set(range(9))


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_change_nothing(n_jobs: int) -> None:
    estimator = FTRLClassifier(l1=10.0, passes=5)
    one = StabilitySelection(estimator, pairs=5, random_state=1).fit(X, Y)
    many = clone(one).set_params(n_jobs=n_jobs).fit(X, Y)
    assert (one.selection_probabilities_ != many.selection_probabilities_).nnz == 0
    assert one.selection_probabilities_.nnz == many.selection_probabilities_.nnz > 2
    np.testing.assert_array_equal(one.estimator_.coef_, many.estimator_.coef_)
    other = clone(one).set_params(random_state=2).fit(X, Y)
    assert (one.selection_probabilities_ != other.selection_probabilities_).nnz > 0


@pytest.mark.parametrize(
    "estimator",
    [
        SPARSE,
        FTRLClassifier(l1=60.0, passes=5, store="hashed"),
        TruncatedGradientClassifier(gravity=0.1, eta0=0.05, passes=5),
        LogisticRegression(C=0.05, l1_ratio=1.0, solver="liblinear"),
        make_pipeline(UnitVarianceScaler(), SPARSE),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_finds_what_matters(estimator: Any, make: Any) -> None:
    selector = StabilitySelection(estimator, pairs=10, threshold=0.9, random_state=0)
    assert is_classifier(selector)
    selector.fit(make(X), Y)
    assert selector.selected_.tolist() == [4, 9]
    assert selector.transform(make(X)).shape == (301, 2)
    assert selector.score(make(X), Y) > 0.85
    assert set(selector.predict(make(X))) == {"spam", "ham"}
    assert selector.classes_.tolist() == ["ham", "spam"]
    np.testing.assert_array_equal(
        selector.predict(X), selector.estimator_.predict(X[:, selector.selected_])
    )


def test_several_classes() -> None:
    labels = np.digitize(X[:, 4], [-0.5, 0.5])
    selector = StabilitySelection(SPARSE, pairs=5, random_state=0).fit(X, labels)
    assert 4 in selector.selected_
    assert selector.selection_probabilities_.data.max() <= 1.0
    assert selector.predict_proba(X).shape == (301, 3)
    np.testing.assert_allclose(
        selector.predict_log_proba(X), np.log(selector.predict_proba(X)), atol=1e-12
    )
    assert selector.decision_function(X).shape == (301, 3)


def test_regression_and_weights_in_one_dimension() -> None:
    y = 2 * X[:, 1] - X[:, 2]
    for estimator in (Lasso(alpha=0.2), FTRLRegressor(l1=200.0, passes=5)):
        selector = StabilitySelection(estimator, pairs=5, random_state=0).fit(X, y)
        assert selector.selected_.tolist() == [1, 2]
        assert selector.score(X, y) > 0.5
        assert not hasattr(selector, "classes_")
        assert not hasattr(selector, "predict_proba")


def test_support_of_any_estimator() -> None:
    forest = RandomForestClassifier(n_estimators=10, max_depth=3)
    with pytest.raises(ParameterError, match=r"RandomForestClassifier has none; support_of can"):
        StabilitySelection(forest, pairs=1).fit(X, Y)
    selector = StabilitySelection(
        forest, pairs=3, support_of=lambda f: f.feature_importances_ > 0.1, random_state=0
    ).fit(X, Y)
    assert selector.selected_.tolist() == [4, 9]
    bad = StabilitySelection(forest, pairs=1, support_of=lambda _: [40])
    with pytest.raises(ParameterError, match=r"support_of\(estimator\) must hold .* 0\.\.39"):
        bad.fit(X, Y)


def test_pipeline_that_changes_the_columns() -> None:
    from sklearn.feature_selection import SelectKBest

    changed = make_pipeline(SelectKBest(k=5), SPARSE)
    with pytest.raises(ParameterError, match="weights for 5 features, and X has 40 columns"):
        StabilitySelection(changed, pairs=1).fit(X, Y)


def test_nothing_dense_of_the_size_of_features_times_values() -> None:
    wide = sp.csr_matrix((X.ravel(), np.tile(np.arange(40) * 10**6, 301), np.arange(302) * 40))
    wide.resize(301, 2**33)
    estimator = FTRLClassifier(passes=5, store="hashed")
    selector = StabilitySelection(
        estimator,
        param_name="l1",
        param_values=[50.0, 60.0, 80.0],
        pairs=3,
        threshold=0.9,
        random_state=0,
    ).fit(wide, Y)
    assert selector.selection_probabilities_.shape == (3, 2**33)
    assert selector.get_support(indices=True).tolist() == [4 * 10**6, 9 * 10**6]
    assert {name for name, _ in selector.top(2)} == {4 * 10**6, 9 * 10**6}
    assert selector.n_candidates_ == 40
    assert selector.score(wide, Y) > 0.85
    np.testing.assert_array_equal(selector.transform(wide).toarray(), X[:, [4, 9]])


def test_columns_of_zeros_do_not_improve_the_bounds() -> None:
    padded = sp.hstack([sp.csr_matrix(X), sp.csr_matrix((301, 1000))], format="csr")
    selector = StabilitySelection(SPARSE, pairs=10, threshold=0.9, random_state=0)
    bare, padded = clone(selector).fit(sp.csr_matrix(X), Y), clone(selector).fit(padded, Y)
    assert padded.n_features_in_ == 1040
    assert bare.n_candidates_ == padded.n_candidates_ == 40
    assert bare.false_selections_bound_ == padded.false_selections_bound_
    assert bare.unimodal_bound_ == padded.unimodal_bound_


@given(st.integers(0, 10**6), st.sampled_from([sp.csr_matrix, sp.csr_array]))
def test_columns_of_sparse_rows(seed: int, make: Any) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(12, 9)) * (rng.random((12, 9)) < 0.4)
    dense[:, 0] += dense[:, 1:].sum(axis=1)
    selector = StabilitySelection(StrongestColumns(4), pairs=2, random_state=seed)
    selector.set_params(refit=False).fit(make(dense), dense[:, 0])
    found = selector.transform(make(dense))
    assert isinstance(found, make)
    np.testing.assert_array_equal(found.toarray(), dense[:, selector.get_support()])


def test_grid_of_values_is_monotone_in_the_penalty() -> None:
    selector = StabilitySelection(
        SPARSE, param_name="l1", param_values=np.array([30.0, 60.0, 1e6]), pairs=5, random_state=0
    ).fit(X, Y)
    sums = np.asarray(selector.selection_probabilities_.sum(axis=1)).ravel()
    assert sums[0] > sums[1] > sums[2] == 0
    alone = StabilitySelection(
        clone(SPARSE).set_params(l1=60.0), pairs=5, random_state=0
    ).fit(X, Y)  # fmt: skip
    np.testing.assert_array_equal(
        selector.selection_probabilities_[1].toarray(), alone.selection_probabilities_.toarray()
    )
    assert selector.n_selected_mean_ >= alone.n_selected_mean_


def test_nothing_selected() -> None:
    selector = StabilitySelection(FTRLClassifier(l1=1e6), pairs=2, random_state=0).fit(X, Y)
    assert selector.selected_.tolist() == []
    assert selector.n_selected_mean_ == 0
    assert selector.false_selections_bound_.number == 0
    assert selector.top() == []
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(X).shape == (301, 0)
    for answer in (selector.predict, selector.decision_function, lambda X: selector.score(X, Y)):
        with pytest.raises(ValueError, match=r"no feature was selected.*threshold = 0\.6"):
            answer(X)
    fitted = StabilitySelection(clone(SPARSE), pairs=2, random_state=0).fit(X, Y)
    assert hasattr(fitted, "estimator_")
    fitted.set_params(estimator__l1=1e6).fit(X, Y)
    assert not hasattr(fitted, "estimator_")


def test_without_refit_there_are_no_predictions() -> None:
    selector = StabilitySelection(SPARSE, pairs=2, refit=False).fit(X, Y)
    assert not hasattr(selector, "estimator_")
    for method in ("predict", "score", "decision_function", "predict_proba"):
        assert not hasattr(selector, method)
    with pytest.raises(AttributeError, match="predict") as caught:
        selector.predict(X)
    assert "needs refit=True" in str(caught.value.__cause__)
    assert not is_classifier(selector)


def test_not_fitted() -> None:
    selector = StabilitySelection(SPARSE)
    for ask in (
        lambda: selector.transform(X),
        lambda: selector.predict(X),
        lambda: selector.get_support(),
        lambda: selector.top(),
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_callback_sees_every_pair_and_can_end_it() -> None:
    records: list[PairsDone] = []
    StabilitySelection(
        SPARSE, pairs=5, n_jobs=2, random_state=0, callback=records.append
    ).fit(X, Y)  # fmt: skip
    assert [(r.done, r.pairs) for r in records] == [(k, 5) for k in range(1, 6)]
    three = StabilitySelection(
        SPARSE, pairs=5, n_jobs=2, random_state=0, callback=lambda r: r.done == 3
    ).fit(X, Y)
    assert three.n_pairs_ == 3
    assert three.n_selected_mean_ == records[2].n_selected_mean
    shares = three.selection_probabilities_.data * 6
    np.testing.assert_allclose(shares, shares.round())
    assert three.unimodal_bound_.number is None  # three pairs are too few at 0.6


def test_seeds_of_the_estimator() -> None:
    """A random_state of the estimator's own is kept; None follows from the selection's."""
    own = StabilitySelection(clone(SPARSE).set_params(random_state=7), pairs=2, random_state=0)
    assert own.fit(X, Y).estimator_.random_state == 7
    free = StabilitySelection(SPARSE, pairs=2, random_state=0).fit(X, Y)
    assert isinstance(free.estimator_.random_state, int)
    assert SPARSE.random_state is None


def test_names_of_columns() -> None:
    frame = pd.DataFrame(X, columns=[f"size {j}" for j in range(40)])
    selector = StabilitySelection(SPARSE, pairs=5, threshold=0.9, random_state=0).fit(frame, Y)
    assert selector.get_feature_names_out().tolist() == ["size 4", "size 9"]
    assert {name for name, _ in selector.top(2)} == {"size 4", "size 9"}
    assert list(selector.set_output(transform="pandas").transform(frame)) == ["size 4", "size 9"]
    assert selector.score(frame, Y) > 0.85
    back = selector.set_output(transform="default").inverse_transform(X[:, [4, 9]])
    np.testing.assert_array_equal(np.flatnonzero(back.any(axis=0)), [4, 9])


def test_pipeline_search_clone_and_pickle() -> None:
    selector = StabilitySelection(SPARSE, pairs=3, threshold=0.9, random_state=0)
    pipeline = make_pipeline(UnitVarianceScaler(), selector, FTRLClassifier(random_state=0))
    assert pipeline.fit(X, Y).score(X, Y) > 0.85
    search = GridSearchCV(selector, {"estimator__l1": [20.0, 30.0]}, cv=2, error_score="raise")
    assert search.fit(X, Y).best_score_ > 0.85
    fitted = clone(selector).fit(X, Y)
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.predict(X), fitted.predict(X))
    assert twin.false_selections_bound_ == fitted.false_selections_bound_
    assert isinstance(twin.unimodal_bound_, Bound)
    assert not hasattr(clone(fitted), "selected_")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"pairs": 0}, "StabilitySelection: pairs must be a whole number >= 1; got 0"),
        ({"threshold": 1.5}, r"StabilitySelection: threshold must be a number in \(0, 1\]"),
        ({"param_name": "l1"}, "param_name and param_values must be given together"),
        ({"param_values": [1.0]}, "param_name and param_values must be given together"),
        ({"param_name": "l1", "param_values": []}, "param_values must hold at least one"),
        ({"param_name": "l3", "param_values": [1]}, "one of alpha, beta, .*; got 'l3'"),
        ({"support_of": "coef_"}, "support_of must be callable or None"),
        ({"callback": "print"}, "callback must be callable or None; got 'print'"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        StabilitySelection(SPARSE, **bad).fit(X, Y)


def fail(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_fails_or_is_interrupted_changes_nothing() -> None:
    new = StabilitySelection(SPARSE, pairs=2, random_state=0)
    old = clone(new).fit(pd.DataFrame(X, columns=[f"f{j}" for j in range(40)]), Y)
    before = [dict(vars(selector)) for selector in (new, old)]
    assert "estimator_" in before[1]
    others = np.where(Y == "spam", 1, 0)

    class Breaks(FTRLClassifier):
        def fit(self, X: Any, y: Any) -> Any:
            if len(y) > 200:  # all rows: the refit
                raise MemoryError
            return super().fit(X, y)

    breaks = Breaks(l1=60.0, passes=5)
    for changes, error in (({"callback": fail}, KeyboardInterrupt), ({"estimator": breaks}, None)):
        for selector, state in zip((new, old), before, strict=True):
            selector.set_params(**changes)
            with pytest.raises(error or MemoryError):
                selector.fit(X[:, :20], others)
            selector.set_params(**{name: state[name] for name in changes})
            assert vars(selector) == state
    for selector, state in zip((new, old), before, strict=True):
        with pytest.raises(ValueError, match="y has one class"):
            selector.fit(X[:, :7], np.zeros(301, int))
        assert vars(selector) == state
    assert not hasattr(new, "n_features_in_")


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_rows_of_zeros(make: Any) -> None:
    zeros = make(np.zeros((40, 6)))
    selector = StabilitySelection(SPARSE, pairs=2, random_state=0).fit(zeros, [0, 1] * 20)
    assert selector.n_candidates_ == 0
    assert selector.selected_.tolist() == []
    for bound in (selector.false_selections_bound_, selector.unimodal_bound_):
        assert bound.number is None
        assert str(bound) == (
            "not available, because X has no values other than zero: there is nothing to select"
        )


def test_classes_too_small_to_halve() -> None:
    with pytest.raises(ValueError, match=r"at least 2 rows of each class.*'rare' has 1"):
        StabilitySelection(SPARSE, pairs=1).fit(X[:5], ["a", "a", "rare", "b", "b"])
    with pytest.raises(ValueError, match="y has one class, 'a'"):
        StabilitySelection(SPARSE, pairs=1).fit(X[:5], ["a"] * 5)


@parametrize_with_checks(
    [
        StabilitySelection(FTRLClassifier(passes=5), pairs=2),
        StabilitySelection(FTRLRegressor(passes=5), pairs=2),
        StabilitySelection(FTRLClassifier(passes=5), pairs=2, refit=False),
    ]
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    """One of scikit-learn's checks."""
    check(estimator)
