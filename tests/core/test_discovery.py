"""Feature discovery in the core: its oracle, stores, vector levels, slices, folds and states.

R-18 describes the evidence.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import discovery as oracles
from support.discovery_cases import (
    SUMS,
    Rows,
    core,
    crossfitted,
    dense_sums,
    near,
    rows_of,
    some_rows,
)
from support.exactness import STORES
from support.lane_cases import levels
from thresher import _core
from thresher.errors import DataError

TASKS = ("classification", "regression")
REDRAWS = st.sampled_from([1, 2, 3, 4, 7, 16, 20, 21])
tasks = pytest.mark.parametrize("task", TASKS)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])
forms = pytest.mark.parametrize("form", ["stream", "crossfit"])


def oracle_of(rows: Rows, form: str, task: str, redraws: int, seed: int) -> oracles.Evidence:
    options = {"classifies": task == "classification", "redraws": redraws, "seed": seed}
    given = rows.X, rows.y, rows.h, rows.order.tolist()
    if form == "stream":
        return oracles.stream(*given, **options)
    return oracles.crossfit(*given, rows.folds.tolist(), **options)


def run(made: _core.Discovery, rows: Rows, form: str, batch: Any = None) -> np.ndarray:
    batch = batch or rows.batch()
    if form == "stream":
        return made.stream(batch, 0, rows.order)
    return crossfitted(made, rows, batch)


def made_for(form: str, task: str, rows: Rows, **options: Any) -> _core.Discovery:
    return core(task, rows.X.shape[1], folds=1 if form == "stream" else 3, **options)


# ---- the oracle ----------------------------------------------------------------------------------


@settings(max_examples=max(30, settings.default.max_examples))
@given(
    data=st.data(),
    task=st.sampled_from(TASKS),
    form=st.sampled_from(["stream", "crossfit"]),
    store=STORES,
    redraws=REDRAWS,
    seed=st.integers(0, 2**63 - 1),
    sparse=st.booleans(),
)
def test_the_core_equals_the_oracle(
    data: st.DataObject, task: str, form: str, store: str, redraws: int, seed: int, sparse: bool
) -> None:
    """Sums, redraws, predictions and calibration."""
    rows = data.draw(some_rows(task))
    expected = oracle_of(rows, form, task, redraws, seed)
    made = made_for(form, task, rows, store=store, redraws=redraws, seed=seed)
    p = run(made, rows, form, rows.batch(sparse))
    found = dense_sums(made, rows.X.shape[1], redraws)
    near(found, expected, task, 1e-9)
    np.testing.assert_allclose(p, expected.p, rtol=1e-9, atol=1e-9)
    facts = made.facts()
    assert facts["slope"] == pytest.approx(expected.slope, rel=1e-8, abs=1e-8)
    assert facts["intercept"] == pytest.approx(expected.intercept, rel=1e-8, abs=1e-8)
    assert facts["log_loss"] == pytest.approx(expected.loss, rel=1e-8, abs=1e-8)
    assert facts["weight"] == pytest.approx(rows.h.sum())
    if task == "classification":  # D replaces a sum of squares of the redraws
        variance = found["predicted"][:, None] + found["redrawn_D"] / 3
        scale = expected.V_redrawn.max(initial=1e-300)
        np.testing.assert_allclose(variance, expected.V_redrawn, rtol=0, atol=1e-6 * scale)
    else:
        variance = (found["realised"] + 2 * found["predicted"]) / 3
        np.testing.assert_allclose(
            np.repeat(variance[:, None], redraws, 1), expected.V_redrawn, rtol=1e-8, atol=1e-300
        )


@forms
@tasks
def test_single_precision_is_near_the_oracle(form: str, task: str) -> None:
    rows = rows_of(4, task, rows=150, weights="fractions")
    expected = oracle_of(rows, form, task, 20, 11)
    made = made_for(form, task, rows, dtype="float32", redraws=20, seed=11)
    p = run(made, rows, form, rows.batch(dtype=np.float32))
    near(dense_sums(made, 9, 20), expected, task, 1e-3)
    np.testing.assert_allclose(p, expected.p, rtol=1e-4, atol=1e-4)


@tasks
def test_the_oracle_of_a_long_stream(task: str) -> None:
    """Thresholds, pooled lanes and calibration matter after some hundred rows."""
    rows = rows_of(9, task, rows=600, width=5, density=1.0)
    made = core(task, 5, redraws=5, seed=3)
    p = made.stream(rows.batch(), 0, rows.order)
    expected = oracle_of(rows, "stream", task, 5, 3)
    near(dense_sums(made, 5, 5), expected, task, 1e-8)
    np.testing.assert_allclose(p, expected.p, rtol=1e-8)
    assert np.corrcoef(p[300:], rows.y[rows.order[300:]])[0, 1] > 0.5  # lanes have weights


# ---- the same bits -------------------------------------------------------------------------------


@forms
@tasks
@dtypes
@pytest.mark.parametrize("redraws", [3, 20, 37])
def test_all_instruction_sets_give_the_same_bits(
    form: str, task: str, dtype: str, redraws: int
) -> None:
    rows, states = rows_of(redraws, task, rows=200, width=30, weights="fractions"), []
    for level in levels():
        made = made_for(form, task, rows, dtype=dtype, redraws=redraws, level=level)
        p = run(made, rows, form, rows.batch(dtype=dtype))
        states.append((made.state(), p.tobytes()))
    assert all(state == states[0] for state in states)


@given(
    seed=st.integers(0, 2**20),
    task=st.sampled_from(TASKS),
    form=st.sampled_from(["stream", "crossfit"]),
    dtype=st.sampled_from(["float32", "float64"]),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    store=STORES,
)
def test_slices_and_stores_change_no_bit(
    seed: int, task: str, form: str, dtype: str, cuts: list[int], store: str
) -> None:
    rows = rows_of(seed, task, weights="fractions")
    whole = made_for(form, task, rows, dtype=dtype)
    expected = run(whole, rows, form)
    pieces = made_for(form, task, rows, dtype=dtype, store=store)
    ends = [0, *sorted(cuts), 60]
    parts, batch = list(zip(ends[:-1], ends[1:], strict=True)), rows.batch()
    if form == "stream":
        p = [pieces.stream(batch, 0, rows.order, *part) for part in parts]
    else:
        for fold in (2, 0, 1):
            for part in parts:
                pieces.learn(batch, rows.folds, fold, rows.order, *part)
            pieces.finish(fold)
        p = [pieces.score(batch, rows.folds, 0, rows.order, *part) for part in parts]
    np.testing.assert_array_equal(np.concatenate(p), expected)
    same(pieces, whole)


def same(one: _core.Discovery, other: _core.Discovery) -> None:
    first, second = one.sums(), other.sums()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    assert one.facts() == other.facts()


@tasks
def test_batches_of_a_stream_continue_the_numbers_of_rows(task: str) -> None:
    rows = rows_of(5, task)
    whole, pieces = core(task, 9), core(task, 9)
    whole.stream(rows.batch(), 100)
    for first, last in ((0, 13), (13, 14), (14, 60)):
        part = Rows(rows.X[first:last], rows.y[first:last], None, rows.order, rows.folds)
        pieces.stream(part.batch(), 100 + first)
    same(pieces, whole)
    other = core(task, 9)
    other.stream(rows.batch(), 101)
    assert (other.sums()["redrawn_S"] != whole.sums()["redrawn_S"]).any()
    np.testing.assert_array_equal(other.sums()["S"], whole.sums()["S"])


@tasks
@dtypes
def test_folds_learn_together_or_one_after_the_other(task: str, dtype: str) -> None:
    rows = rows_of(6, task, rows=300, width=20)
    alone, together = (core(task, 20, folds=3, dtype=dtype) for _ in range(2))
    batch = rows.batch()
    expected = crossfitted(alone, rows)
    with ThreadPoolExecutor(3) as pool:
        for first in range(0, 300, 50):
            list(pool.map(
                lambda fold, first=first: together.learn(
                    batch, rows.folds, fold, rows.order, first, first + 50
                ),
                range(3),
            ))  # fmt: skip
    for fold in (1, 2, 0):
        together.finish(fold)
    together.finish(1)  # once more: nothing happens
    np.testing.assert_array_equal(together.score(batch, rows.folds, 0, rows.order), expected)
    same(together, alone)
    assert together.state() == alone.state()


@tasks
def test_rows_of_one_group_have_the_same_redraws(task: str) -> None:
    rows = rows_of(8, task, folds=3)
    groups = np.arange(60) // 4
    made = core(task, 9, folds=3, seed=7)
    for fold in range(3):
        made.learn(rows.batch(), rows.folds, fold, rows.order)
        made.finish(fold)
    made.score(rows.batch(), rows.folds, 0, rows.order, 0, None, groups)
    expected = oracles.crossfit(
        rows.X, rows.y, rows.h, rows.order.tolist(), rows.folds.tolist(),
        classifies=task == "classification", redraws=6, seed=7, numbers=groups.tolist(),
    )  # fmt: skip
    near(dense_sums(made, 9, 6), expected, task, 1e-9)


@forms
@tasks
@dtypes
@pytest.mark.parametrize("redraws", [5, 20])
def test_a_state_continues_with_the_same_bits(
    form: str, task: str, dtype: str, redraws: int
) -> None:
    rows = rows_of(1, task, rows=90, width=15, weights="fractions")
    options = {"dtype": dtype, "redraws": redraws, "seed": 2**63 - 5}
    whole, batch = made_for(form, task, rows, **options), rows.batch()
    expected = run(whole, rows, form)
    steps: list[Any] = []
    for part in ((0, 1), (1, 33), (33, 90)):
        if form == "stream":
            steps.append(lambda d, part=part: d.stream(batch, 0, rows.order, *part))
    if form == "crossfit":
        for fold in range(3):
            steps += [
                lambda d, f=fold: d.learn(batch, rows.folds, f, rows.order, 0, 40),
                lambda d, f=fold: d.learn(batch, rows.folds, f, rows.order, 40, 90),
                lambda d, f=fold: d.finish(f),
            ]
        steps += [
            lambda d, part=part: d.score(batch, rows.folds, 0, rows.order, *part)
            for part in ((0, 20), (20, 90))
        ]
    pieces, found = made_for(form, task, rows, store="hashed", **options), []
    for step in steps:
        p = step(pieces)
        found += [] if p is None else [p]
        state = pieces.state()
        pieces.sums(), pieces.facts(), pieces.bytes()
        pieces = made_for(form, task, rows, store="hashed", **options)
        pieces.restore(state)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    same(pieces, whole)


def test_a_state_of_another_discovery_is_refused() -> None:
    rows = rows_of(1, "classification")
    made = core("classification", 9)
    made.stream(rows.batch(), 0)
    before, state = made.sums(), made.state()
    for other in (
        core("regression", 9), core("classification", 9, redraws=7), core("classification", 9, seed=1),
        core("classification", 9, folds=2), core("classification", 9, dtype="float32"),
        core("classification", 9, seed=1 << 60),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="discovery with other options|state"):
            other.restore(state)
    for bad in (b"", state[:50], state[:-3], state + b"1234"):
        with pytest.raises(ValueError, match="state"):
            made.restore(bad)
    after = made.sums()
    assert all((before[name] == after[name]).all() for name in before)


# ---- rows without effect, and errors -------------------------------------------------------------


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
    assert issubclass(DataError, ValueError)


def test_memory_is_proportional_to_the_features_that_occur() -> None:
    rows = rows_of(1, "classification")
    hashed = core("classification", 0, store="hashed", dtype="float32", redraws=20)
    empty = hashed.bytes()
    hashed.stream(rows.batch(), 0)
    assert hashed.bytes() < empty + (1 << 20)
    dense = core("classification", 10_000, dtype="float32", redraws=20)
    assert 10_000 * 256 <= dense.bytes() <= 10_000 * 512
