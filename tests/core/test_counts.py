"""Counted nonzeros, debts computed without the ledger, and the slots of a hashed store."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.exactness import DTYPES, STORES
from support.streams import learner
from thresher import _core

WIDTH = 9001  # more than two blocks of the vectorised count, and a rest
PARAMS = st.fixed_dictionaries(
    {
        "gravity": st.sampled_from([0.0, 1e-3, 0.02]),
        "period": st.sampled_from([1, 10]),
        "schedule": st.sampled_from(["constant", "sqrt"]),
        "decay": st.sampled_from([1.0, 0.8]),
        "l2": st.sampled_from([0.0, 0.0, 0.01]),
        "ceiling": st.sampled_from([float("inf"), float("inf"), 0.05]),
        "sweep_events": st.sampled_from([7, 1 << 20]),
    }
)


def rows(seed: int, count: int = 60, width: int = WIDTH) -> _core.Batch:
    rng = np.random.default_rng(seed)
    keys = np.concatenate([rng.choice(width, 50, replace=False) for _ in range(count)])
    starts = np.arange(0, 50 * count + 1, 50)
    labels = rng.choice([-1.0, 1.0], count)
    values = rng.normal(size=50 * count).astype(np.float32)
    return _core.sparse_batch(starts, keys, values, width, labels, None)


def made(store: str, dtype: str, params: dict[str, Any]) -> _core.Learner:
    return learner("truncated_gradient", WIDTH, store=store, dtype=dtype, eta0=0.3, **params)


@settings(max_examples=settings.default.max_examples)
@given(seed=st.integers(0, 5), store=STORES, dtype=DTYPES, params=PARAMS)
def test_the_count_equals_a_recount_also_after_resuming(seed, store, dtype, params):
    """Each pass in parts, and from a state, has the bits of an uninterrupted run."""
    whole, parts = made(store, dtype, params), made(store, dtype, params)
    batch = rows(seed)
    for _ in range(3):
        whole.learn(batch)
        for first, last in ((0, 17), (17, 40), (40, 60)):
            parts.learn(batch, None, first, last)
            state, parts = parts.state(), made(store, dtype, params)
            parts.restore(state)
        for model in (whole, parts):
            keys, values = model.weights()
            assert model.nonzeros() == len(keys) == np.count_nonzero(values)
        assert parts.weights()[1].tobytes() == whole.weights()[1].tobytes()
        whole.next_pass()
        parts.next_pass()


@settings(max_examples=settings.default.max_examples)
@given(seed=st.integers(0, 5), dtype=DTYPES, params=PARAMS)
def test_both_stores_have_the_same_bits(seed, dtype, params):
    found = []
    for store in ("dense", "hashed"):
        model = made(store, dtype, params)
        for _ in range(2):
            model.learn(rows(seed))
            model.next_pass()
        keys, values = model.weights()
        found.append((keys.tolist(), values.tobytes(), model.nonzeros(), model.loss_sum))
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_long_ledger_equals_a_weight_that_shrinks_step_by_step(dtype):
    """After n events with the same amount a, a weight w that no row touches is w - n a."""
    events, a = 5000, 1e-5 * 0.1
    params = {"gravity": 1e-5, "period": 1, "eta0": 0.1, "fit_intercept": False}
    model = learner("truncated_gradient", 2, dtype=dtype, **params)
    model.start_from(np.array([0], np.uint64), np.array([0.5]), 0.0)
    starts = np.arange(events + 1)
    keys, values = np.ones(events, np.int64), np.full(events, 1e-20)
    model.learn(_core.sparse_batch(starts, keys, values, 2, np.ones(events), None))
    (weight,) = model.weights()[1][:1]
    assert weight == np.dtype(dtype).type(0.5) - np.dtype(dtype).type(events * a)


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.just(-1)), max_size=300))
def test_a_hashed_store_finds_every_key(keys):
    """Also the key 2^64 - 1, which has a slot of its own, and keys that wrap around the end."""
    keys = list(dict.fromkeys(keys))
    model = learner("truncated_gradient", 0, store="hashed", gravity=0.0, fit_intercept=False)
    starts, values = np.arange(len(keys) + 1), np.ones(len(keys))
    batch = _core.sparse_batch(starts, np.array(keys, np.int64), values, 0, values, None)
    model.learn(batch)
    first = model.weights()
    assert sorted(first[0].tolist()) == sorted(key % 2**64 for key in keys)
    model.learn(batch)
    again = model.weights()
    assert again[0].tolist() == first[0].tolist()
    assert (again[1] > first[1]).all()


@given(st.lists(st.integers(0, 4), max_size=60))
def test_runs_of_small_and_large_codes_are_equal(codes):
    small, large = np.array(codes, np.uint8), np.array(codes, np.int64)
    for a, b in zip(_core.class_runs(small, 5), _core.class_runs(large, 5), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("rows", [0, 1, 2, 511, 512, 513, 514, 1024, 1025, 1026, 3000])
@pytest.mark.parametrize("changes", [0.002, 0.5])
def test_runs_of_many_rows_are_those_of_a_plain_loop(rows, changes):
    """The core lists the ends of runs in blocks of 512 rows; runs also cross blocks."""
    codes = np.cumsum(np.random.default_rng(rows).random(rows) < changes) % 3
    cuts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), rows] if rows else [0]
    counts, longest, begins = [0] * 3, [0] * 3, [0] * 3
    lengths = []
    for begin, end in pairwise(cuts):
        code, length = int(codes[begin]), end - begin
        lengths.append(length)
        counts[code] += length
        if length > longest[code]:
            longest[code], begins[code] = length, begin
    found = _core.class_runs(codes, 3)
    assert [part.tolist() for part in found[:3]] == [counts, longest, begins]
    assert found[3:] == (len(lengths), sum(lengths[:1]), sum(lengths[-1:]))


def test_a_code_outside_is_refused():
    for bad in (-1, 5):
        with pytest.raises(ValueError, match="below `classes`"):
            _core.class_runs(np.array([0, bad]), 5)
