"""Features selected when there is no signal at all: permuted labels beside the bound."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

import thresher
from support.files import svmlight
from support.stability_cases import SPARSE, X, Y
from thresher import ParameterError
from thresher.stability import (
    Bound,
    StabilitySelection,
    StreamingStabilitySelection,
    WithoutSignal,
)
from thresher.stability.no_signal import RandomLabels
from thresher.stability.stream_halves import HalfAssigner

ONE_PASS = {"passes": 1, "shuffle": False, "dtype": "float64"}
FTRL = thresher.FTRLClassifier(l1=8.0, **ONE_PASS)
BOTH = [StabilitySelection, StreamingStabilitySelection]


def zipf_columns(rows: int, columns: int, seed: int) -> sp.csr_matrix:
    """Return columns of 0 and 1; column j has a frequency in proportion to 1 / (j + 1)."""
    frequencies = np.minimum(0.5, 15 / np.arange(1, columns + 1))
    drawn = np.random.default_rng(seed).random((rows, columns)) < frequencies
    return sp.csr_matrix(drawn.astype(float))


# ---- the warning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", BOTH)
def test_frequent_and_rare_features_give_a_warning(make: Any) -> None:
    """Random labels select far more Zipf columns than the bound says."""
    rows = zipf_columns(500, 4000, 0)
    y = np.random.default_rng(1).random(500) < 0.5
    selector = make(thresher.FTRLClassifier(l1=5.0, passes=1), pairs=20, random_state=0)
    with pytest.warns(UserWarning, match="features are not exchangeable") as caught:
        selector.fit(rows, y)
    found, bound = selector.selected_without_signal_, selector.false_selections_bound_
    assert len(found.counts) == 5
    assert found.mean == np.mean(found.counts) > 2 * bound.number
    (said,) = [str(w.message) for w in caught if "exchangeable" in str(w.message)]
    assert said.startswith(f"{make.__name__}: ")
    assert f"{found.mean:.3g} features are selected" in said
    assert f"bound on false selections is {bound.number:.3g}" in said
    assert len(selector.selected_) > 2 * bound.number  # labels are random: all are false


@pytest.mark.parametrize("make", BOTH)
def test_independent_gaussian_columns_give_no_warning(make: Any) -> None:
    rng = np.random.default_rng(2)
    rows, y = rng.normal(size=(300, 400)), rng.random(300) < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = make(thresher.FTRLClassifier(l1=12.0, passes=1), pairs=20, random_state=0)
        selector.fit(rows, y)
    assert selector.n_selected_mean_ > 10
    assert selector.selected_without_signal_.mean <= selector.false_selections_bound_.number


def test_when_counts_contradict_a_bound() -> None:
    found = WithoutSignal((2, 3), 10.0, Bound(0.5, ""))
    assert found.contradicts(Bound(1.0, ""))
    assert not found.contradicts(Bound(1.25, ""))  # exactly twice
    assert not found.contradicts(Bound(None, "", "no bound"))
    assert not WithoutSignal((2, 3), 50.0, Bound(2.0, "")).contradicts(Bound(1.0, ""))
    assert not WithoutSignal().contradicts(Bound(0.0, ""))
    assert np.isnan(WithoutSignal().mean)


# ---- counts --------------------------------------------------------------------------------------


def recounted(selector: StreamingStabilitySelection, rows: Any, labels: list[Any]) -> list[int]:
    """Fit each half separately with each of the labels; return the numbers selected."""
    seeds = np.random.RandomState(selector.random_state).randint(2**31 - 1, size=2 + len(labels))
    counts = []
    for seed, y in zip(seeds[2:].tolist(), labels, strict=True):
        strata = np.zeros(len(y), np.int64)
        if hasattr(selector, "classes_"):
            strata = np.searchsorted(selector.classes_, y).astype(np.int64)
        assigner = HalfAssigner(selector.pairs, seed)
        votes = np.zeros(rows.shape[1])
        for half in assigner.members(strata, assigner.numbered(strata)).T.astype(bool):
            alone = clone(selector.estimator).fit(rows[half], y[half])
            votes[np.unique(alone.model_.indices.astype(int))] += 1
        counts.append(int((votes / (2 * selector.pairs) >= selector.threshold).sum()))
    return counts


def null_seeds(selector: StreamingStabilitySelection) -> list[int]:
    random = np.random.RandomState(selector.random_state)
    return random.randint(2**31 - 1, size=2 + selector.permutations)[2:].tolist()


NUMBERS = X[:, 4] - X[:, 9]
CLASSES = np.where(Y == "spam", 2, np.where(X[:, 3] > 1, 1, 0))


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (FTRL, Y),
        (FTRL, CLASSES),
        (clone(FTRL).set_params(passes=3, class_weight={"spam": 3.0}), Y),
        (thresher.FTRLRegressor(l1=8.0, **{**ONE_PASS, "passes": 2}), NUMBERS),
    ],
    ids=["two", "three", "weights", "numbers"],
)
def test_counts_equal_separate_fits_on_permuted_labels(estimator: Any, y: Any) -> None:
    selector = StreamingStabilitySelection(
        estimator, pairs=4, threshold=0.6, permutations=3, random_state=3
    ).fit(X, y)
    orders = [np.random.default_rng(s).permutation(len(y)) for s in null_seeds(selector)]
    found = selector.selected_without_signal_
    assert list(found.counts) == recounted(selector, X, [y[order] for order in orders])
    assert sum(found.counts) > 0
    plain = clone(selector).set_params(permutations=0).fit(X, y)
    assert (plain.selection_probabilities_ != selector.selection_probabilities_).nnz == 0
    assert plain.selected_without_signal_.counts == ()


@pytest.mark.parametrize("store", ["dense", "hashed"])
@pytest.mark.parametrize("classes", [(-1, 1), (1, 2, 5)])
def test_a_source_draws_labels_of_earlier_rows(tmp_path: Any, store: str, classes: Any) -> None:
    """Counts do not depend on the size of blocks, and equal separate fits."""
    path = svmlight(tmp_path / "rows.svm", rows=300, classes=classes)
    rows, y = load_svmlight_file(str(path))
    estimator = clone(FTRL).set_params(l1=0.5, store=store)
    selector = StreamingStabilitySelection(estimator, pairs=4, permutations=2, random_state=3)
    selector.fit(thresher.scan(path))
    rows = sp.csr_matrix((rows.data, rows.indices, rows.indptr), (300, selector.n_features_in_))
    labels = [RandomLabels(seed).drawn(y) for seed in null_seeds(selector)]
    assert list(selector.selected_without_signal_.counts) == recounted(selector, rows, labels)
    assert sum(selector.selected_without_signal_.counts) > 0
    batches = ((rows[i : i + 110], y[i : i + 110]) for i in range(0, 300, 110))
    again = clone(selector).fit(thresher.scan(batches), classes=classes)
    assert again.selected_without_signal_ == selector.selected_without_signal_


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=80),
    st.integers(1, 30),
    st.lists(st.integers(0, 80), max_size=3),
    st.integers(0, 2**31),
)
def test_random_labels_are_those_of_a_plain_loop(
    labels: list[int], kept: int, cuts: list[int], seed: int
) -> None:
    y = np.array(labels)
    made = RandomLabels(seed, kept)
    found = np.concatenate([made.drawn(part) for part in np.split(y, sorted(cuts))])
    random, sample, expected = np.random.default_rng(seed), [], []
    for row, label in enumerate(labels, 1):
        replaced, drawn = random.random(2)
        expected.append(sample[int(drawn * len(sample))] if sample else label)
        place = row - 1 if row <= kept else int(replaced * row)
        if place < kept:
            sample[place : place + 1] = [label]
    np.testing.assert_array_equal(found, expected)
    made.begin()
    np.testing.assert_array_equal(made.drawn(y), found)


@pytest.mark.parametrize("make", BOTH)
def test_seeds_and_threads(make: Any) -> None:
    one = make(SPARSE, pairs=5, threshold=0.51, random_state=1).fit(X, Y)
    many = clone(one).set_params(n_jobs=2).fit(X, Y)
    assert one.selected_without_signal_ == many.selected_without_signal_
    assert one.selected_without_signal_.n_selected_mean > 0
    other = clone(one).set_params(random_state=2).fit(X, Y)
    assert one.selected_without_signal_ != other.selected_without_signal_


def test_estimators_that_do_not_train_together() -> None:
    """Other estimators are fitted on one half after the other, with the same pairs."""
    sparse = LogisticRegression(solver="liblinear", l1_ratio=1.0, C=0.2)
    selector = StabilitySelection(sparse, pairs=3, permutations=2, random_state=0).fit(X, Y)
    found = selector.selected_without_signal_
    assert len(found.counts) == 2
    assert found.n_selected_mean > 0
    again = clone(selector).set_params(n_jobs=2).fit(X, Y)
    assert again.selected_without_signal_ == found


# ---- parameters and text -------------------------------------------------------------------------


@pytest.mark.parametrize("make", BOTH)
def test_text_of_the_result(make: Any) -> None:
    selector = make(SPARSE, pairs=4, random_state=0).fit(X, Y)
    first, bound, last = selector.summary().splitlines()
    assert first == f"{len(selector.selected_)} of 40 features selected"
    assert bound == f"bound: {selector.false_selections_bound_}"
    assert last == str(selector.selected_without_signal_)
    assert last.startswith("selected when there is no signal at all: ")
    none = clone(selector).set_params(permutations=0).fit(X, Y)
    assert none.summary().endswith("selected when there is no signal at all: not measured")


@pytest.mark.parametrize("make", BOTH)
def test_selectors_that_were_pickled_before_there_were_permutations(make: Any) -> None:
    selector = make(SPARSE, pairs=2, random_state=0).fit(X, Y)
    old = pickle.loads(pickle.dumps(selector))
    del old.permutations, old.selected_without_signal_
    assert old.summary().endswith("not measured")
    assert clone(old).permutations == 5


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("bad", [-1, 2.5, True, "5"])
def test_bad_numbers_of_permutations(make: Any, bad: Any) -> None:
    with pytest.raises(ParameterError, match="permutations must be a whole number >= 0"):
        make(SPARSE, permutations=bad).fit(X, Y)


def test_a_callback_that_ends_the_selection_ends_the_permutations() -> None:
    selector = StabilitySelection(SPARSE, pairs=5, random_state=0, callback=lambda done: True)
    assert selector.fit(X, Y).selected_without_signal_ == WithoutSignal()


@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_fewer_permutations_if_memory_is_short(tmp_path: Any, store: str) -> None:
    path = svmlight(tmp_path / "rows.svm", rows=200)
    estimator = clone(FTRL).set_params(store=store)
    given = {"pairs": 20, "random_state": 0}
    full = StreamingStabilitySelection(estimator, **given).fit(thresher.scan(path))
    short = StreamingStabilitySelection(estimator, memory_limit=10_000_000, **given)
    for limit in 4.0 ** np.arange(6, 16):
        short.set_params(memory_limit=int(limit))
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                short.fit(thresher.scan(path))
        except MemoryError:
            continue
        break
    kept = len(short.selected_without_signal_.counts)
    assert kept < 5
    assert any(f"{kept} of 5 permutations" in str(w.message) for w in caught)
    assert (short.selection_probabilities_ != full.selection_probabilities_).nnz == 0
    assert short.selected_without_signal_.counts == full.selected_without_signal_.counts[:kept]
