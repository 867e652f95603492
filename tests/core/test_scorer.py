"""Predictions of many rows: every kernel gives the sum of the products, in their order."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from thresher import _core

WIDE = 1 << 40  # too many features for a table


def has(level: str) -> bool:
    """Return whether this machine has a vector level."""
    try:
        scorer(np.ones((1, 1)), level=level)
    except ValueError:
        return False
    return True


def scorer(
    W: NDArray[Any], width: int | None = None, intercepts: Any = None, level: str = "auto"
) -> _core.Scorer:
    """Return the scorer with the weights W of shape (outputs, features)."""
    rows = sp.csr_matrix(W)
    b = np.zeros(len(W)) if intercepts is None else np.asarray(intercepts, np.float64)
    keys, starts = rows.indices.astype(np.uint64), rows.indptr.astype(np.int64)
    width = W.shape[1] if width is None else width
    return _core.Scorer(starts, keys, rows.data.astype(np.float64), b, width, level)


LEVELS = [level for level in ("portable", "avx2", "avx512") if has(level)]


def naive(W: NDArray[Any], b: Any, rows: list[list[tuple[int, float]]]) -> NDArray[np.float64]:
    """Return the predictions, one product after the other."""
    out = np.zeros((len(rows), len(W)))
    for r, row in enumerate(rows):
        for key, x in row:
            out[r] = out[r] + W[:, key] * np.float64(x)
        out[r] = out[r] + np.asarray(b)
    return out


numbers = st.one_of(st.just(0.0), st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3))
outputs_of = st.sampled_from([1, 2, 3, 8, 9, 17, 40])


@st.composite
def problems(draw: Any) -> tuple[NDArray[Any], NDArray[Any], list[list[tuple[int, float]]]]:
    """Return weights, intercepts, and rows: unsorted, with repeated keys and explicit zeros."""
    outputs, width = draw(outputs_of), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    W = rng.normal(size=(outputs, width)) * (rng.random((outputs, width)) < 0.6)
    if draw(st.booleans()):
        W = W.astype(np.float32).astype(np.float64)
    row = st.lists(st.tuples(st.integers(0, width - 1), numbers), max_size=40)
    return W, rng.normal(size=outputs), draw(st.lists(row, max_size=30))


def csr(rows: list[list[tuple[int, float]]], key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Return starts, keys and values of rows."""
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(key)
    pairs = [pair for row in rows for pair in row]
    return starts, np.array([k for k, _ in pairs], key), np.array([x for _, x in pairs], value)


@given(problems(), st.sampled_from(["i4", "i8"]), st.sampled_from(["f4", "f8"]), st.integers(1, 4))
def test_csr_rows(problem: Any, key: str, value: str, threads: int) -> None:
    W, b, rows = problem
    starts, keys, values = csr(rows, key, value)
    rounded = [[(k, float(np.dtype(value).type(x))) for k, x in row] for row in rows]
    expected = naive(W, b, rounded)
    for level in LEVELS:
        found = scorer(W, None, b, level).sparse(starts, keys, values, threads)
        assert np.array_equal(found, expected)
    table = scorer(W, WIDE, b)
    assert not table.is_table
    assert np.array_equal(table.sparse(starts, keys, values, threads), expected)


@given(problems(), st.sampled_from(["f4", "f8"]), st.integers(1, 4))
def test_arrays(problem: Any, value: str, threads: int) -> None:
    W, b, rows = problem
    X = np.zeros((len(rows), W.shape[1]), value)
    for r, row in enumerate(rows):
        for key, x in row:
            X[r, key] = x
    expected = naive(W, b, [list(enumerate(row.tolist())) for row in X])
    for level in LEVELS:
        each = scorer(W, None, b, level)
        assert np.array_equal(each.dense(X, threads), expected)
        assert np.array_equal(each.dense(np.asfortranarray(X), threads), expected)
    assert np.array_equal(scorer(W, WIDE, b).dense(X, threads), expected)


@pytest.mark.parametrize("columns", [1, 7, 300, 3000])
@pytest.mark.parametrize("outputs", [1, 5])
@pytest.mark.parametrize("rows", [1, 3, 9, 2500])
def test_long_rows_and_many_rows(columns: int, outputs: int, rows: int) -> None:
    rng = np.random.default_rng(columns)
    W, X = rng.normal(size=(outputs, columns)), rng.normal(size=(rows, columns))
    X[rng.random(X.shape) < 0.5] = 0.0
    S = sp.csr_matrix(X)
    expected = scorer(W, level="portable").sparse(S.indptr, S.indices, S.data)
    assert np.allclose(expected, X @ W.T, rtol=1e-12, atol=1e-10)
    for level in LEVELS:
        each = scorer(W, level=level)
        assert np.array_equal(each.sparse(S.indptr, S.indices, S.data, 3), expected)
        assert np.array_equal(each.dense(X, 3), expected)
        assert np.array_equal(each.dense(np.asfortranarray(X), 3), expected)


@pytest.mark.parametrize("width", [50, WIDE])
@pytest.mark.parametrize("outputs", [1, 9])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_the_first_bad_value_is_named(width: int, outputs: int, bad: float) -> None:
    rng = np.random.default_rng(0)
    W = np.full((outputs, 50), 1e20)
    S = sp.random(500, 50, density=0.3, format="csr", random_state=rng)
    for row in (490, 310):
        S.data[S.indptr[row]] = bad
    key = S.indices[S.indptr[310]]
    for threads in (1, 4):
        with pytest.raises(_core.DataError, match=f"^row 310: the value of feature {key} is"):
            scorer(W, width).sparse(S.indptr, S.indices, S.data, threads)
        with pytest.raises(_core.DataError, match=r"^row 310: the value of feature"):
            scorer(W, width).dense(S.toarray(), threads)


def test_values_of_features_without_weight_must_be_finite() -> None:
    for width in (3, WIDE):
        with pytest.raises(_core.DataError, match="feature 2 is NaN"):
            scorer(np.array([[1.0, 0.0, 0.0]]), width).dense(np.array([[1.0, 0.0, np.nan]]))


def test_predictions_that_overflow() -> None:
    with pytest.raises(_core.DataError, match="row 0: the prediction overflows"):
        scorer(np.array([[1e200, 1e200]])).dense(np.array([[1e120, 1e120]]))


def test_unknown_features_are_refused_or_ignored() -> None:
    each = scorer(np.array([[1.0, 2.0]]))
    for keys in ([0, 5, 1], [0, -1, 1]):
        given = np.array([0, 3]), np.array(keys), np.array([1.0, 8.0, 1.0])
        with pytest.raises(_core.DataError, match=f"row 0: .*{keys[1]}"):
            each.sparse(*given)
        assert each.sparse(*given, ignores=True).tolist() == [[3.0]]
    with pytest.raises(_core.DataError):
        each.dense(np.zeros((2, 3)))


def test_starts_are_checked() -> None:
    each, values = scorer(np.ones((1, 4))), np.ones(3)
    for starts in ([0, 4], [0, 2, 1], [-1, 3], [2, 1]):
        with pytest.raises(_core.DataError, match="row starts"):
            each.sparse(np.array(starts), np.arange(3), values)
    with pytest.raises(ValueError, match="same length"):
        each.sparse(np.array([0, 2]), np.arange(2), values)
    with pytest.raises(ValueError, match="in C order or in Fortran order"):
        each.dense(np.ones((8, 8))[::2, ::2])


ROWS = sp.random(3000, 90, density=0.2, format="csr", random_state=np.random.default_rng(1))
SCORER = scorer(np.random.default_rng(2).normal(size=(1, 90)))


def predicted(threads: int) -> bytes:
    """Return the predictions of some rows."""
    return SCORER.sparse(ROWS.indptr, ROWS.indices, ROWS.data, threads).tobytes()


def test_calls_in_threads_and_in_forked_processes() -> None:
    """Calls that find the threads busy work alone; a forked process has threads of its own."""
    expected = predicted(1)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(predicted, [1, 2, 3, 4] * 20)) == {expected}
    if "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(2) as processes:
            assert set(processes.map(predicted, [1, 2, 3] * 4)) == {expected}
