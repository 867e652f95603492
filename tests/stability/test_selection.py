"""Stability selection: the halves, the fits, and the selected features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.pipeline import make_pipeline

from support.stability_cases import RNG, SPARSE, StrongestColumns, X, Y
from thresher import FTRLClassifier, FTRLRegressor, ParameterError, TruncatedGradientClassifier
from thresher.preprocessing import UnitVarianceScaler
from thresher.stability import (
    StabilitySelection,
    false_selections_bound,
)


class Recorder(ClassifierMixin, BaseEstimator):
    """Selects features at random, and records the rows of each fit."""

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
    """P-17: probabilities equal counts of the recorded fits."""
    Recorder.log.clear()
    numbered = np.column_stack([np.arange(rows), np.ones((rows, 7))])
    y = np.random.default_rng(seed).permutation(np.arange(rows) % 3 == 0)
    selector = StabilitySelection(
        Recorder(),
        param_name="size",
        param_values=[1, 4],
        pairs=pairs,
        threshold=threshold,
        permutations=0,
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


def test_halves_without_strata_of_classifiers_and_regressors() -> None:
    y = np.arange(40) % 2 == 0
    differences = []
    for stratify in (True, False):
        Recorder.log.clear()
        StabilitySelection(
            Recorder(), pairs=20, stratify=stratify, permutations=0, refit=False, random_state=3
        ).fit(np.column_stack([np.arange(40), np.ones(40)]), y)
        differences.append(max(abs(int(part.sum()) - 10) for _, part, _, _ in Recorder.log))
    assert differences[0] == 0
    assert differences[1] > 0


def test_every_row_is_sometimes_left_out() -> None:
    """If the number of rows is odd, one is left out, and not always the same."""
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
def test_selects_the_relevant_features(estimator: Any, make: Any) -> None:
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
    with pytest.raises(ParameterError, match=r"RandomForestClassifier has none; give support_of"):
        StabilitySelection(forest, pairs=1).fit(X, Y)
    selector = StabilitySelection(
        forest, pairs=3, support_of=lambda f: f.feature_importances_ > 0.1, random_state=0
    ).fit(X, Y)
    assert selector.selected_.tolist() == [4, 9]
    bad = StabilitySelection(forest, pairs=1, support_of=lambda _: [40])
    with pytest.raises(ParameterError, match=r"support_of\(estimator\) must have .* 0\.\.39"):
        bad.fit(X, Y)


def test_pipeline_that_changes_the_columns() -> None:
    from sklearn.feature_selection import SelectKBest

    changed = make_pipeline(SelectKBest(k=5), SPARSE)
    with pytest.raises(ParameterError, match="weights for 5 features, but X has 40 columns"):
        StabilitySelection(changed, pairs=1).fit(X, Y)


def test_no_dense_array_of_features_times_values() -> None:
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
