"""Feature discovery in the core: rows without effect, bad values, and calls that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.discovery_cases import SUMS, Rows, core, rows_of, same
from thresher import _core

TASKS = ("classification", "regression")
tasks = pytest.mark.parametrize("task", TASKS)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@tasks
def test_rows_of_weight_0_change_nothing(task: str) -> None:
    rows = rows_of(3, task)
    rows.weight = np.where(np.arange(60) % 3 == 0, 0.0, 1.5)
    made, without = core(task, 9), core(task, 9)
    made.stream(rows.batch(), 0)
    for t in np.flatnonzero(rows.weight):  # row by row, with the same numbers
        one = Rows(rows.X[[t]], rows.y[[t]], rows.weight[[t]], rows.order, rows.folds)
        without.stream(one.batch(), int(t))
    same(made, without)


def test_empty_rows_and_values_of_0() -> None:
    rows = rows_of(2, "classification", width=4)
    rows.X[:30] = 0.0
    rows.X[:, 2] = 0.0
    dense, sparse = core("classification", 4), core("classification", 4, store="hashed")
    dense.stream(rows.batch(sparse=False), 0)
    sparse.stream(rows.batch(), 0)
    same(dense, sparse)
    assert 2 not in dense.sums()["keys"].tolist()
    nothing = core("regression", 4)
    nothing.stream(Rows(np.zeros((3, 4)), np.ones(3), None, rows.order, rows.folds).batch(), 0)
    assert all(values.size == 0 for values in nothing.sums().values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"redraws": 0}, "redraws must be from 1 to 1000"),
        ({"redraws": 1001}, "redraws must be from 1 to 1000"),
        ({"folds": 0}, "folds must be from 1 to 64"),
        ({"folds": 65}, "folds must be from 1 to 64"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64'"),
        ({"store": "paper"}, "unknown store 'paper'"),
        ({"level": "mmx"}, "mmx"),
        ({"task": "ranking"}, "task must be 'classification' or 'regression'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], message: str) -> None:
    given = {"task": "classification", "width": 3} | options
    with pytest.raises(ValueError, match=message):
        core(**given)


def test_calls_in_the_wrong_order() -> None:
    rows = rows_of(1, "classification")
    batch, stream, folds = rows.batch(), core("classification", 9), core(TASKS[0], 9, folds=3)
    for call in (
        lambda: stream.learn(batch, rows.folds, 0),
        lambda: stream.finish(0),
        lambda: folds.stream(batch, 0),
    ):
        with pytest.raises(ValueError, match="a stream has no folds"):
            call()
    with pytest.raises(ValueError, match="all folds must be finished"):
        folds.score(batch, rows.folds, 0)
    for call in (lambda: folds.learn(batch, rows.folds, 3), lambda: folds.finish(3)):
        with pytest.raises(ValueError, match="there is no such fold"):
            call()
    with pytest.raises(ValueError, match="folds: one for each row"):
        folds.learn(batch, rows.folds[:5], 0)
    for fold in range(3):
        folds.finish(fold)
    with pytest.raises(ValueError, match="this fold has been finished"):
        folds.learn(batch, rows.folds, 0)
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match="there is no such fold"):
            folds.score(batch, np.full(60, wrong), 0)
    unlabelled = _core.dense_batch(rows.X, None, None)
    with pytest.raises(ValueError, match="discovery needs labels"):
        stream.stream(unlabelled, 0)


@pytest.mark.parametrize(
    ("value", "label", "message"),
    [
        (np.nan, 1.0, "finite|nan"),
        (np.inf, 1.0, "finite|inf"),
        (1e200, 1.0, "feature 3 is .*values must be finite, with finite squares"),
        (1e17, 1.0, "too large for feature discovery"),
        (1.0, np.nan, "label|target"),
        (1.0, 2.0, "the label must be 0 or 1"),
    ],
)
@dtypes
def test_bad_values_name_the_row(value: float, label: float, message: str, dtype: str) -> None:
    rows = rows_of(1, "classification")
    rows.X[17, 3], rows.y[17] = value, label
    made = core("classification", 9, dtype=dtype)
    if value == 1e17 and dtype == "float64":
        rows.X[17, 3] = 1e130
    with pytest.raises(_core.DataError, match=message) as caught:
        made.stream(rows.batch(sparse=False), 0)
    assert "17" in str(caught.value)
    assert all(np.isfinite(made.sums()[name]).all() for name in SUMS)


def test_large_targets_and_values_keep_sums_finite() -> None:
    rows = rows_of(1, "regression")
    made = core("regression", 9)
    rows.y[20], rows.y[30] = 1e99, -1e99
    rows.X[40, 0] = 1e100
    made.stream(rows.batch(), 0)
    assert all(np.isfinite(made.sums()[name]).all() for name in SUMS[:3])
    rows.y[50] = 1e101
    with pytest.raises(_core.DataError, match="larger than 1e100"):
        made.stream(rows.batch(), 0)


def test_memory_is_proportional_to_the_features_that_occur() -> None:
    rows = rows_of(1, "classification")
    hashed = core("classification", 0, store="hashed", dtype="float32", redraws=20)
    empty = hashed.bytes()
    hashed.stream(rows.batch(), 0)
    assert hashed.bytes() < empty + (1 << 20)
    dense = core("classification", 10_000, dtype="float32", redraws=20)
    assert 10_000 * 256 <= dense.bytes() <= 10_000 * 512


@dtypes
def test_lengths_and_hashes_of_rows(dtype: str) -> None:
    rows = rows_of(2, "classification", rows=80, width=6)
    rows.X[40:60], rows.y[40:60] = rows.X[:20], rows.y[:20]  # copies
    rows.X[60:], rows.y[60:] = rows.X[:20], 1 - rows.y[:20]  # copies with the other label
    found = {}
    for sparse in (True, False):
        _, lengths, hashes = core("classification", 6, dtype=dtype).stream(rows.batch(sparse), 0)
        np.testing.assert_array_equal(lengths, (rows.X != 0).sum(axis=1))
        found[sparse] = hashes
    np.testing.assert_array_equal(found[True], found[False])
    hashes = found[True]
    np.testing.assert_array_equal(hashes[40:60], hashes[:20])
    assert (hashes[60:] != hashes[:20]).all()
    different = {(*x, y) for x, y in zip((rows.X + 0.0).tolist(), rows.y.tolist(), strict=True)}
    assert len(set(hashes.tolist())) == len(different)
    order = rows.order
    made = core("classification", 6, dtype=dtype, folds=3)
    for fold in range(3):
        made.finish(fold)
    scored = made.score(rows.batch(), rows.folds, 0, order, 5, 50)
    np.testing.assert_array_equal(scored[2], hashes[order[5:50]])


@given(seed=st.integers(0, 2**32), values=st.integers(0, 300), ties=st.booleans())
def test_exceedances_equal_a_count(seed: int, values: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    drawn = np.abs(rng.normal(size=values) * 10.0 ** rng.integers(-30, 30, values))
    limits = np.abs(rng.normal(size=20))
    if ties:
        drawn, limits = drawn.clip(0, 5).round(1), np.r_[limits.round(1), 0.0]
    drawn, limits = drawn.astype(np.float32), np.sort(limits).astype(np.float32)
    found = _core.exceedances(drawn, limits)
    np.testing.assert_array_equal(found, (drawn >= limits[:, None]).sum(axis=1))


@pytest.mark.parametrize(
    ("values", "limits"), [([-1.0], [1.0]), ([np.nan], [1.0]), ([1.0], [2.0, 1.0]), ([1.0], [-1.0])]
)
def test_exceedances_of_bad_numbers(values: list[float], limits: list[float]) -> None:
    with pytest.raises(ValueError, match="must not be negative, and thresholds must increase"):
        _core.exceedances(np.array(values, np.float32), np.array(limits, np.float32))
