"""Feature discovery in the core: its oracle, stores, vector levels, slices, folds and states.

R-18 describes the evidence.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import discovery as oracles
from support.discovery_cases import (
    Rows,
    core,
    crossfitted,
    dense_sums,
    near,
    rows_of,
    same,
    some_rows,
)
from support.exactness import STORES
from support.lane_cases import levels
from thresher import _core

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
        return made.stream(batch, 0, rows.order)[0]
    return crossfitted(made, rows, batch)


def made_for(form: str, task: str, rows: Rows, **options: Any) -> _core.Discovery:
    return core(task, rows.X.shape[1], folds=1 if form == "stream" else 3, **options)


# ---- the oracle ----------------------------------------------------------------------------------


@settings(max_examples=settings.default.max_examples)
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
    p = made.stream(rows.batch(), 0, rows.order)[0]
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
    parts, batch = list(pairwise(ends)), rows.batch()
    if form == "stream":
        p = [pieces.stream(batch, 0, rows.order, *part)[0] for part in parts]
    else:
        for fold in (2, 0, 1):
            for part in parts:
                pieces.learn(batch, rows.folds, fold, rows.order, *part)
            pieces.finish(fold)
        p = [pieces.score(batch, rows.folds, 0, rows.order, *part)[0] for part in parts]
    np.testing.assert_array_equal(np.concatenate(p), expected)
    same(pieces, whole)


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
    np.testing.assert_array_equal(together.score(batch, rows.folds, 0, rows.order)[0], expected)
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
            steps.append(lambda d, part=part: d.stream(batch, 0, rows.order, *part)[0])
    if form == "crossfit":
        for fold in range(3):
            steps += [
                lambda d, f=fold: d.learn(batch, rows.folds, f, rows.order, 0, 40),
                lambda d, f=fold: d.learn(batch, rows.folds, f, rows.order, 40, 90),
                lambda d, f=fold: d.finish(f),
            ]
        steps += [
            lambda d, part=part: d.score(batch, rows.folds, 0, rows.order, *part)[0]
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
    for task, options in (
        ("regression", {}),
        ("classification", {"redraws": 7}),
        ("classification", {"seed": 1}),
        ("classification", {"seed": 1 << 60}),
        ("classification", {"folds": 2}),
        ("classification", {"dtype": "float32"}),
    ):
        other = core(task, 9, **options)
        with pytest.raises(ValueError, match="state is of a discovery with other options"):
            other.restore(state)
    for bad in (b"", state[:50], state[:-3], state + b"1234"):
        with pytest.raises(ValueError, match="state"):
            made.restore(bad)
    after = made.sums()
    assert all((before[name] == after[name]).all() for name in before)
