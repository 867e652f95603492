"""Scaling of columns: the formula, streams, extreme values, and what must not change."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from thresher import DataError, FTRLClassifier, ParameterError
from thresher.preprocessing import UnitVarianceScaler

FORMS = [np.array, sp.csr_matrix]


def drawn(seed: int, rows: int = 30, columns: int = 12) -> np.ndarray:
    """Return rows whose columns differ in size, from 2^-40 to 2^40, and in density."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, columns)) * 2.0 ** rng.integers(-40, 40, columns)
    return np.asarray(values * (rng.random((rows, columns)) < rng.random(columns) ** 2))


def by_the_book(X: np.ndarray, min_count: int) -> np.ndarray:
    """Return the scales by the formula, one column at a time."""
    n = len(X)
    scales = np.ones(X.shape[1])
    for j, column in enumerate(X.T):
        count = np.count_nonzero(column)
        if count:
            mean_square = (column**2).sum() / count
            scales[j] = np.sqrt(mean_square * max(count, min(min_count, n)) / max(n - 1, 1))
    return scales


seeds = st.integers(0, 10**6)
forms = st.sampled_from([np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array])


@given(seeds, st.integers(1, 40), forms, st.integers(1, 30))
def test_scales_equal_the_formula(seed: int, min_count: int, make: Any, rows: int) -> None:
    X = drawn(seed, rows)
    scaler = UnitVarianceScaler(min_count=min_count).fit(make(X))
    expected = by_the_book(X, min_count)
    np.testing.assert_allclose(scaler.scale_, expected, rtol=1e-13)
    np.testing.assert_array_equal(scaler.nonzero_counts_, (X != 0).sum(axis=0))
    assert scaler.n_samples_seen_ == rows
    scaled = scaler.transform(make(X))
    if make is np.asarray:
        assert isinstance(scaled, np.ndarray)
    else:
        assert scaled.format == "csr"
        assert scaled.nnz == np.count_nonzero(X)
        scaled = scaled.toarray()
    np.testing.assert_allclose(scaled, X / expected, rtol=1e-13)


@given(seeds)
def test_scaled_columns_have_unit_variance(seed: int) -> None:
    X = drawn(seed)
    scaled = UnitVarianceScaler(min_count=1).fit_transform(X)
    np.testing.assert_allclose((scaled**2).sum(axis=0), 29 * X.any(axis=0), rtol=1e-12)
    kind = UnitVarianceScaler(min_count=8).fit_transform(X)
    counts = (X != 0).sum(axis=0)
    np.testing.assert_allclose(
        (kind**2).sum(axis=0), 29 * counts / np.maximum(counts, 8), rtol=1e-12
    )


def test_the_authors_scaling_of_centred_columns_is_standard_deviation() -> None:
    X = drawn(1)
    X = np.vstack([X, -X])
    scaler = UnitVarianceScaler(min_count=1).fit(X)
    seen = X.any(axis=0)
    np.testing.assert_allclose(scaler.scale_[seen], X.std(axis=0, ddof=1)[seen], rtol=1e-12)


@given(seeds, forms, st.lists(st.integers(0, 30), max_size=4))
def test_stream_equals_one_fit(seed: int, make: Any, cuts: list[int]) -> None:
    X = drawn(seed)
    whole = UnitVarianceScaler(min_count=5).fit(make(X))
    stream = UnitVarianceScaler(min_count=5)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 30], strict=True):
        if start < stop:
            stream.partial_fit(make(X[start:stop]))
    assert stream.n_samples_seen_ == 30
    np.testing.assert_array_equal(stream.nonzero_counts_, whole.nonzero_counts_)
    np.testing.assert_allclose(stream.scale_, whole.scale_, rtol=1e-13)


def test_single_rows_give_bit_identical_scales() -> None:
    """Sums are scaled by powers of two, and values are added in the order of the rows."""
    X = sp.csr_matrix(drawn(3, rows=200))
    whole, stream = UnitVarianceScaler().fit(X), UnitVarianceScaler()
    for row in X:
        stream.partial_fit(row)
    np.testing.assert_array_equal(stream.scale_, whole.scale_)
    np.testing.assert_array_equal(UnitVarianceScaler().fit(X.toarray()).scale_, whole.scale_)


def test_fit_starts_again_and_partial_fit_continues() -> None:
    X = drawn(4)
    scaler = UnitVarianceScaler().fit(100 * X).fit(X)
    np.testing.assert_allclose(scaler.scale_, by_the_book(X, 20), rtol=1e-13)
    scaler.partial_fit(X)
    np.testing.assert_allclose(scaler.scale_, by_the_book(np.vstack([X, X]), 20), rtol=1e-13)
    with pytest.raises(ValueError, match="features"):
        scaler.partial_fit(X[:, :5])
    assert scaler.n_samples_seen_ == 60


@given(seeds, forms, st.sampled_from([np.float32, np.float64]))
def test_inverse_transform(seed: int, make: Any, dtype: Any) -> None:
    X = drawn(seed).astype(dtype)
    scaler = UnitVarianceScaler(min_count=3).fit(make(X))
    scaled = scaler.transform(make(X))
    back = scaler.inverse_transform(scaled)
    assert scaled.dtype == back.dtype == dtype
    back = back if make is np.asarray else back.toarray()
    np.testing.assert_allclose(back, X, rtol=4 * np.finfo(dtype).eps)


def test_rare_columns_do_not_become_huge() -> None:
    """A-26: a column with one nonzero in 1000 rows would be scaled up to sqrt(999)."""
    X = sp.csr_matrix(([0.1], ([5], [0])), shape=(1000, 2))
    assert UnitVarianceScaler(min_count=1).fit_transform(X)[5, 0] == pytest.approx(999**0.5)
    assert UnitVarianceScaler().fit_transform(X)[5, 0] == pytest.approx((999 / 20) ** 0.5)
    few = UnitVarianceScaler().fit_transform(X[:8])  # fewer rows than min_count
    assert few[5, 0] == pytest.approx((7 / 8) ** 0.5)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300, 1.5e308, 5e-324])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_values_of_any_size(size: float, make: Any) -> None:
    X = np.outer([1.0, 0.0, 1.0, -1.0, 0.0], [size, 1.0, 0.0])
    with np.errstate(all="raise", under="ignore"):
        scaler = UnitVarianceScaler(min_count=1).fit(make(X))
        scaled = scaler.transform(make(X))
    scaled = scaled if make is np.asarray else scaled.toarray()
    assert np.isfinite(scaler.scale_).all()
    if size > 1e-307:
        np.testing.assert_allclose(scaler.scale_, [size * 0.75**0.5, 0.75**0.5, 1.0])
        np.testing.assert_allclose(scaled[:, 0], scaled[:, 1])
    np.testing.assert_allclose(scaled[:, 1], np.array([1, 0, 1, -1, 0]) / 0.75**0.5)


def test_sizes_that_change_in_a_stream() -> None:
    values = [1e-200, 3.0, 1e200, 2e200, 5.0]
    stream = UnitVarianceScaler(min_count=1)
    for value in values:
        stream.partial_fit([[value]])
    assert stream.scale_[0] == pytest.approx((5 / 4) ** 0.5 * 1e200)
    assert stream.partial_fit([[0.0]]).scale_[0] == pytest.approx(1e200)


def test_errors_name_scaled_values_that_overflow() -> None:
    scaler = UnitVarianceScaler().fit([[1e-200, 1.0]])
    rows = np.array([[1e-200, 1.0], [1e200, 1.0]])
    for X in (rows, sp.csr_matrix(rows)):
        with pytest.raises(DataError, match=r"row 1, column 0: .*scaled, in float64, becomes inf"):
            scaler.transform(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
def test_errors_name_values_that_are_not_finite(value: float, make: Any) -> None:
    X = drawn(5)
    X[7, 3], X[9, 1] = value, np.nan
    name = "NaN" if np.isnan(value) else str(value)
    scaler = UnitVarianceScaler().fit(drawn(5))
    before = scaler.scale_.copy()
    for ask in (UnitVarianceScaler().fit, scaler.partial_fit, scaler.transform):
        with pytest.raises(DataError, match=f"row 7, column 3: the value is {name}; .*finite"):
            ask(make(X))
    np.testing.assert_array_equal(scaler.scale_, before)
    assert scaler.n_samples_seen_ == 30


def test_stored_zeros_and_repeated_entries() -> None:
    X = sp.csr_matrix(([0.0, 1.0, 2.0, 4.0], [0, 1, 1, 1], [0, 3, 4]), shape=(2, 2))
    scaler = UnitVarianceScaler(min_count=1).fit(X)
    assert X.nnz == 4  # the caller's matrix was not changed
    assert scaler.nonzero_counts_.tolist() == [0, 2]
    np.testing.assert_allclose(scaler.scale_, [1.0, 5.0])
    np.testing.assert_allclose(scaler.transform(X).toarray(), [[0, 0.6], [0, 0.8]])


def test_copy_or_not() -> None:
    for make in (np.array, sp.csr_matrix):
        X = make(drawn(6))
        before = X.copy()
        scaler = UnitVarianceScaler().fit(X)
        kept = scaler.transform(X)
        assert abs(X - before).max() == 0
        moved = UnitVarianceScaler(copy=False).fit(X).transform(X)
        assert abs(moved - kept).max() == 0
        assert abs(X - kept).max() == 0  # scaled in place
        values = X if isinstance(X, np.ndarray) else X.data
        assert np.shares_memory(values, moved if isinstance(X, np.ndarray) else moved.data)
    locked = drawn(6)
    locked.setflags(write=False)
    again = UnitVarianceScaler(copy=False).fit(locked).transform(locked)
    np.testing.assert_array_equal(locked, drawn(6))
    assert not np.array_equal(again, locked)


def test_whole_numbers_become_floats() -> None:
    X = np.array([[3, 0], [0, 0], [4, 0]])
    for form in (X, sp.csr_matrix(X), X.tolist()):
        found = UnitVarianceScaler(min_count=1, copy=False).fit(form).transform(form)
        assert found.dtype == np.float64
    assert X.tolist() == [[3, 0], [0, 0], [4, 0]]


def test_float32_sums_are_exact_enough() -> None:
    X = np.full((100_000, 1), 0.1, np.float32)
    scaler = UnitVarianceScaler().fit(sp.csr_matrix(X))
    exact = float(np.float32(0.1)) * (100_000 / 99_999) ** 0.5
    assert scaler.scale_[0] == pytest.approx(exact, rel=1e-10)


def test_names_pipeline_clone_and_pickle() -> None:
    frame = pd.DataFrame(drawn(7), columns=[f"word {j}" for j in range(12)])
    scaler = UnitVarianceScaler().fit(frame)
    assert scaler.get_feature_names_out().tolist() == list(frame)
    assert list(scaler.set_output(transform="pandas").transform(frame)) == list(frame)
    labels = np.arange(30) % 2
    pipeline = make_pipeline(UnitVarianceScaler(), FTRLClassifier(random_state=0))
    assert pipeline.fit(sp.csr_matrix(frame), labels).score(sp.csr_matrix(frame), labels) > 0.5
    twin = pickle.loads(pickle.dumps(scaler)).partial_fit(frame)
    np.testing.assert_array_equal(twin.scale_, scaler.partial_fit(frame).scale_)
    with pytest.raises(NotFittedError):
        clone(scaler).transform(frame)


def state(scaler: UnitVarianceScaler) -> bytes:
    """Return the whole state of a scaler."""
    return pickle.dumps({key: value for key, value in sorted(vars(scaler).items())})


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize("place", ["_add", "_scales"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_or_interrupted_fit_changes_nothing(
    method: str, place: str, make: Any, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = drawn(3)
    new, old = UnitVarianceScaler(), UnitVarianceScaler().fit(make(X))
    before = state(new), state(old)
    real = getattr(UnitVarianceScaler, place)

    def fails(self: Any, *args: Any) -> None:
        real(self, *args)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(UnitVarianceScaler, place, fails)
        for scaler in (new, old):
            with pytest.raises(error):
                getattr(scaler, method)(make(X if method == "partial_fit" else X[:, :5]))
    assert (state(new), state(old)) == before
    assert not hasattr(new, "n_features_in_")
    old.partial_fit(make(X))
    twice = UnitVarianceScaler().fit(make(np.vstack([X, X])))
    np.testing.assert_allclose(old.scale_, twice.scale_)


def test_bad_rows_change_nothing() -> None:
    scaler = UnitVarianceScaler().fit(drawn(3))
    before = state(scaler)
    bad = drawn(4)[:, :5]
    bad[2, 3] = np.nan
    for fit in (scaler.fit, scaler.partial_fit):
        with pytest.raises(ValueError, match=r"column 3|features"):
            fit(bad)
        assert state(scaler) == before


@pytest.mark.parametrize("block", [4, 1 << 22])
@pytest.mark.parametrize("make", FORMS)
def test_values_that_cannot_be_scaled_in_place_are_not_changed(
    make: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.preprocessing._BLOCK", block)
    scaler = UnitVarianceScaler(min_count=1, copy=False).fit(np.full((9, 2), 1e-30))
    X = np.ones((9, 2), np.float32)
    X[6, 1] = 1e20
    for rows in (make(X), make(np.asfortranarray(X))):
        with pytest.raises(DataError, match="row 6, column 1: the value scaled, in float32, becom"):
            scaler.transform(rows)
        np.testing.assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, X)
    X[6, 1] = 1.0
    rows = make(X)
    scaled = scaler.transform(rows)
    dense = rows.toarray() if sp.issparse(rows) else rows
    np.testing.assert_allclose(dense, X / scaler.scale_, rtol=1e-6)  # scaled in place
    assert scaled is rows or np.shares_memory(getattr(scaled, "data", scaled), rows.data)


@pytest.mark.parametrize("min_count", [0, -3, 2.5, "many", None, True])
def test_bad_min_count(min_count: Any) -> None:
    for ask in ("fit", "partial_fit"):
        with pytest.raises(ParameterError, match="min_count must be a whole number >= 1; got"):
            getattr(UnitVarianceScaler(min_count=min_count), ask)(drawn(0))


def test_whole_numbers_of_numpy_are_allowed() -> None:
    assert UnitVarianceScaler(min_count=np.int64(3)).fit(drawn(0)).scale_[0] > 0


@parametrize_with_checks([UnitVarianceScaler(), UnitVarianceScaler(min_count=1)])
def test_estimator_checks(estimator: Any, check: Any) -> None:
    """One of scikit-learn's checks."""
    check(estimator)
