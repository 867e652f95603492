"""Unusual but valid matrices are learned like any other; damaged matrices raise errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

from oracles.truncated_gradient import truncated_gradient
from support.streams import learner
from thresher import (
    AveragedSGDClassifier,
    AveragedSGDRegressor,
    DataError,
    ForwardBackwardClassifier,
    FTRLClassifier,
    FTRLRegressor,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
    _core,
)

ESTIMATORS = {
    "truncated": TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, period=3),
    "truncated average": TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, average=True),
    "truncated hashed": TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, store="hashed"),
    "round": TruncatedGradientClassifier(eta0=0.1, shrink="round", ceiling=0.013),
    "subgradient": TruncatedGradientClassifier(eta0=0.1, shrink="subgradient", gravity=0.0),
    "clipped": TruncatedGradientClassifier(eta0=0.1, gravity=1e-3, loss="clipped_square"),
    "regressor": TruncatedGradientRegressor(eta0=0.002, gravity=1e-3),
    "forward-backward": ForwardBackwardClassifier(eta0=0.1, l1=1e-3),
    "averaged": AveragedSGDClassifier(alpha=0.1),
    "last": AveragedSGDClassifier(alpha=0.1, average=False),
    "centred": AveragedSGDRegressor(alpha=1.0, loss="huber", center=True),
    "ftrl": FTRLClassifier(alpha=0.1, l1=0.1),
    "ftrl hashed": FTRLRegressor(alpha=0.1, l1=0.1, store="hashed"),
}
every_rule = pytest.mark.parametrize("rule", ESTIMATORS)
RNG = np.random.default_rng(8)
DENSE = RNG.integers(-8, 9, size=(80, 15)) / 4 * (RNG.random((80, 15)) < 0.5)
DENSE[[3, 40, 79]] = 0.0
CSR = sp.csr_matrix(DENSE)
SIGNAL = DENSE[:, 0] - DENSE[:, 3]
LABELS = np.where(SIGNAL > 0, 1, 0)


def fitted(rule: str, X: Any) -> Any:
    """Return an estimator in double precision, after two passes over the rows of X."""
    estimator = clone(ESTIMATORS[rule]).set_params(dtype="float64", passes=2, shuffle=False)
    return estimator.fit(X, LABELS if is_classifier(estimator) else SIGNAL)


def assert_close(one: Any, other: Any) -> None:
    coefs = [e.coef_.toarray() if sp.issparse(e.coef_) else e.coef_ for e in (one, other)]
    np.testing.assert_allclose(*coefs, atol=1e-11)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-11)
    np.testing.assert_allclose(
        [record.loss for record in one.history_],
        [record.loss for record in other.history_],
        rtol=1e-10,
    )


def raw(indptr: Any, indices: Any, data: Any, shape: tuple[int, int] = CSR.shape) -> sp.csr_matrix:
    """Return a CSR matrix of these arrays, without a check."""
    X = sp.csr_matrix(shape)
    X.indptr, X.indices, X.data = np.asarray(indptr), np.asarray(indices), np.asarray(data)
    return X


# ---- unusual but valid ------------------------------------------------------------------------


@every_rule
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_repeated_indices_add_up(rule: str, index: Any) -> None:
    """Each value is the sum of three entries, in different places of the row."""
    rows = [slice(a, b) for a, b in zip(CSR.indptr[:-1], CSR.indptr[1:], strict=True)]
    X = raw(
        CSR.indptr.astype(index) * 3,
        np.concatenate([np.tile(CSR.indices[row], 3) for row in rows]).astype(index),
        np.concatenate([np.kron([2, -3, 2], CSR.data[row]) for row in rows]),
    )
    once = X.copy()
    once.sum_duplicates()
    np.testing.assert_array_equal(once.toarray(), DENSE)
    model = fitted(rule, X)
    assert_close(model, fitted(rule, CSR))
    np.testing.assert_allclose(model.predict(X), model.predict(CSR), atol=1e-11)
    assert len(X.data) == 3 * CSR.nnz  # X was not changed


@every_rule
def test_repeated_neighbours_add_up(rule: str) -> None:
    """The most common case: two equal indices next to each other, in sorted rows."""
    X = raw(CSR.indptr * 2, np.repeat(CSR.indices, 2), np.repeat(CSR.data / 2, 2))
    assert_close(fitted(rule, X), fitted(rule, CSR))


@every_rule
def test_unsorted_indices(rule: str) -> None:
    X = CSR.copy()
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = RNG.permutation(np.arange(a, b))
        X.indices[a:b], X.data[a:b] = X.indices[order], X.data[order]
    X.has_sorted_indices = False
    model = fitted(rule, X)
    assert_close(model, fitted(rule, CSR))
    np.testing.assert_allclose(model.predict(X), model.predict(CSR), atol=1e-11)


@every_rule
def test_stored_zeros_are_ignored(rule: str) -> None:
    """R-0.7: they do not count in |x|_0 either."""
    full = raw(np.arange(81) * 15, np.tile(np.arange(15), 80), DENSE.ravel())
    assert full.nnz == DENSE.size
    model = fitted(rule, full)
    assert_close(model, fitted(rule, CSR))
    assert_close(model, fitted(rule, DENSE))
    np.testing.assert_allclose(model.predict(full), model.predict(DENSE), atol=1e-11)
    assert model.model_.nnz == fitted(rule, CSR).model_.nnz


@every_rule
def test_matrix_of_empty_rows(rule: str) -> None:
    model = fitted(rule, sp.csr_matrix((80, 15)))
    assert model.model_.nnz == 0
    assert model.model_.density == 0.0
    assert np.isfinite(model.intercept_).all()
    assert len(set(model.predict(sp.csr_matrix((5, 15))).tolist())) == 1
    np.testing.assert_array_equal(
        model.predict(np.zeros((2, 15))), model.predict(sp.csr_matrix((2, 15)))
    )


@every_rule
def test_arrays_of_any_layout_and_type(rule: str) -> None:
    reference = fitted(rule, DENSE)
    wide = np.repeat(DENSE, 2, axis=1)
    fixed, fixed_csr = DENSE.copy(), CSR.copy()
    for array in (fixed, fixed_csr.data, fixed_csr.indices, fixed_csr.indptr):
        array.flags.writeable = False
    layouts = (fixed, fixed_csr, wide[:, ::2], np.asfortranarray(DENSE), DENSE[::-1][::-1])
    for X in (*layouts, DENSE.astype(np.float16), DENSE.astype(object), CSR.astype(np.float32)):
        assert_close(fitted(rule, X), reference)
    whole = (DENSE * 4).astype(np.int8)
    reference = fitted(rule, whole.astype(np.float64))
    for X in (whole, whole.astype(np.int64), sp.csr_matrix(whole), whole.tolist()):
        assert_close(fitted(rule, X), reference)
    flags = DENSE > 0
    assert_close(fitted(rule, flags), fitted(rule, flags.astype(np.float64)))
    assert_close(fitted(rule, sp.csr_matrix(flags)), fitted(rule, flags.astype(np.float64)))


def test_labels_and_weights_of_any_layout() -> None:
    weight = np.linspace(0.1, 2.0, 80)
    estimator = TruncatedGradientRegressor(eta0=0.01, shuffle=False)
    reference = clone(estimator).fit(DENSE, SIGNAL, sample_weight=weight).coef_
    y, w = np.repeat(SIGNAL, 2)[::2], np.repeat(weight, 3)[::3]
    y.flags.writeable = w.flags.writeable = False
    np.testing.assert_array_equal(clone(estimator).fit(DENSE, y, w).coef_, reference)
    listed = clone(estimator).fit(DENSE, y.tolist(), w.tolist())
    np.testing.assert_array_equal(listed.coef_, reference)


@pytest.mark.parametrize(
    ("store", "dtype", "tolerance"),
    [
        ("hashed", "float32", 1e-4),
        pytest.param("hashed", "float64", 1e-10, marks=pytest.mark.soak),
        pytest.param("dense", "float32", 1e-4, marks=pytest.mark.soak),
        pytest.param("dense", "float64", 1e-10, marks=pytest.mark.soak),
    ],
)
def test_row_of_a_million_values(store: str, dtype: str, tolerance: float) -> None:
    width = 1_000_000
    rng = np.random.default_rng(0)
    X = np.zeros((4, width))
    X[0], X[2] = rng.normal(size=(2, width)) / 1000
    X[1, ::5], X[3, 7] = 1e-3, 1.0
    y = np.array([1, 0, 0, 1])
    params = {"eta0": 0.3, "gravity": 1e-6, "period": 2, "decay": 1.0}
    model = TruncatedGradientClassifier(
        store=store, dtype=dtype, passes=2, shuffle=False, **params
    ).fit(sp.csr_matrix(X), y)
    oracle = truncated_gradient(
        X, 2.0 * y - 1, [range(4)] * 2, loss="logistic", fit_intercept=True, **params
    )
    coef = np.asarray(model.coef_.todense()) if store == "hashed" else model.coef_
    scale = np.abs(oracle.weights).max()
    np.testing.assert_allclose(coef[0], oracle.weights, rtol=0, atol=tolerance * scale)
    assert model.intercept_[0] == pytest.approx(oracle.intercept, abs=tolerance)


def test_indices_beyond_two_to_the_31() -> None:
    """Only columns that occur take memory; the weights are those of a narrow matrix."""
    columns = np.array([0, 5, 2**31 - 1, 2**31, 2**33 + 7, 2**40 - 1])
    narrow = RNG.normal(size=(200, 6))
    y = np.where(narrow[:, 3] - narrow[:, 5] > 0, "b", "a")
    wide = sp.csr_matrix(
        (narrow.ravel(), np.tile(columns, 200), np.arange(0, 1201, 6)), shape=(200, 2**40)
    )
    assert wide.indices.dtype == np.int64
    estimator = TruncatedGradientClassifier(eta0=0.1, gravity=0.01, random_state=0)
    small = clone(estimator).fit(narrow, y)
    large = clone(estimator).set_params(store="hashed").fit(wide, y)
    np.testing.assert_array_equal(large.model_.indices, columns[small.model_.indices.astype(int)])
    np.testing.assert_array_equal(large.model_.weights, small.model_.weights)
    assert large.coef_.shape == (1, 2**40)
    assert {feature.name for feature in large.model_.top(2)} == {2**31, 2**40 - 1}
    assert large.model_.density == large.model_.nnz / 2**40
    np.testing.assert_array_equal(large.predict(wide), small.predict(narrow))
    np.testing.assert_array_equal(large.model_.predict(wide), small.model_.predict(narrow))
    large.partial_fit(wide, y)
    with pytest.raises(MemoryError, match="hashed"):
        clone(estimator).fit(sp.csr_matrix((2, 2**50)), ["a", "b"])


@pytest.mark.parametrize("rule", ["truncated_gradient", "ftrl", "averaged_sgd"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_64_bit_key(rule: str, dtype: str) -> None:
    """Every key can be used, even 2^64 - 1, which is -1 as int64."""
    keys = np.array([0, 1, 2**63 - 1, -(2**63), -2, -1], np.int64)
    rows, starts = RNG.normal(size=(50, 6)), np.arange(0, 301, 6)
    y = np.sign(rows[:, 5] - rows[:, 0])
    batch = _core.sparse_batch(starts, np.tile(keys, 50), rows.ravel(), 0, y)
    model = learner(rule, 0, store="hashed", dtype=dtype, gravity=0.001, l1=0.01)
    model.learn(batch)
    plain = learner(rule, 6, store="dense", dtype=dtype, gravity=0.001, l1=0.01)
    dense = _core.dense_batch(rows, y)
    plain.learn(dense)
    found, weights = model.weights()
    np.testing.assert_array_equal(found, keys.astype(np.uint64))
    assert found[-1] == np.uint64(2**64 - 1)
    np.testing.assert_array_equal(weights, plain.weights()[1])
    np.testing.assert_array_equal(model.predict(batch), plain.predict(dense))
    twin = learner(rule, 0, store="hashed", dtype=dtype, gravity=0.001, l1=0.01)
    twin.restore(model.state())
    np.testing.assert_array_equal(twin.predict(batch), plain.predict(dense))


# ---- damaged ----------------------------------------------------------------------------------

ROW = int(np.flatnonzero(np.diff(CSR.indptr) >= 3)[5])
PLACE = int(CSR.indptr[ROW])


LAST = int(CSR.indptr[ROW + 1]) - 1
BAD_INDICES = [(p, v) for p in (PLACE, PLACE + 1, LAST) for v in (15, 2**31 - 1, -1, -(2**31))]
END = int(CSR.indptr[-1])
BAD_STARTS = [(10, 0), (10, 10**6), (10, -1), (0, -5), (80, 10**6), (80, END + 1), (80, -1)]
sound_rules = pytest.mark.parametrize("rule", [name for name in ESTIMATORS if name != "centred"])


def with_index(place: int, value: int, index: Any = np.int32) -> sp.csr_matrix:
    indices = CSR.indices.astype(index)
    indices[place] = value
    return raw(CSR.indptr.astype(index), indices, CSR.data)


def with_start(place: int, value: int) -> sp.csr_matrix:
    starts = CSR.indptr.copy()
    starts[place] = value
    return raw(starts, CSR.indices, CSR.data)


@sound_rules
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_indices_outside_the_matrix(rule: str, index: Any) -> None:
    model = fitted(rule, CSR)
    for place, value in BAD_INDICES:
        X = with_index(place, value, index)
        with pytest.raises(DataError, match=rf"row {ROW}\b.*feature number {value} .*0\.\.14"):
            fitted(rule, X)
        with pytest.raises(DataError, match=rf"row {ROW}\b.*{value}\b"):
            model.predict(X)
        with pytest.raises(DataError, match=rf"row {ROW}\b.*{value}\b"):
            model.model_.predict(X)


@sound_rules
@pytest.mark.parametrize(("place", "value"), BAD_STARTS)
def test_invalid_row_starts(rule: str, place: int, value: int) -> None:
    model = fitted(rule, CSR)
    for refuse in (lambda X: fitted(rule, X), model.predict, model.model_.predict):
        with pytest.raises(DataError, match="row starts"):
            refuse(with_start(place, value))


CENTRED = """
from data.test_bad_matrices import BAD_INDICES, BAD_STARTS, fitted, with_index, with_start

for damage, cases in ((with_index, BAD_INDICES), (with_start, BAD_STARTS)):
    for place, value in cases:
        try:
            fitted("centred", damage(place, value))
            print("learned from", damage.__name__, place, value)
        except ValueError as error:
            assert "row" in str(error), error
print("done")
"""


def test_damaged_matrices_do_not_crash_the_mean() -> None:
    """The mean of the rows is computed before they are checked; a crash would end pytest."""
    done = subprocess.run(
        [sys.executable, "-c", CENTRED],
        capture_output=True, text=True, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_arrays_of_unequal_lengths() -> None:
    for starts, keys, values, words in (
        (CSR.indptr, CSR.indices[:-1], CSR.data, "keys and values"),
        (CSR.indptr, CSR.indices, CSR.data[:-1], "keys and values"),
        (CSR.indptr[:0], CSR.indices, CSR.data, "starts"),
        (CSR.indptr, CSR.indices.astype(np.int16), CSR.data, "keys: int32 or int64"),
        (CSR.indptr, CSR.indices, CSR.data.astype(np.float16), "values: float32 or float64"),
    ):
        with pytest.raises(ValueError, match=words):
            _core.sparse_batch(starts, keys, values, 15, SIGNAL)
    for y, weight, words in ((SIGNAL[:-1], None, "labels"), (SIGNAL, SIGNAL[:-1], "weights")):
        with pytest.raises(ValueError, match=words):
            _core.sparse_batch(CSR.indptr, CSR.indices, CSR.data, 15, y, weight)
        with pytest.raises(ValueError, match=words):
            _core.dense_batch(DENSE, y, weight)
