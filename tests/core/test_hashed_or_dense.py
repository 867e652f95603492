"""A hashed store of known width moves its cells to an array, and back, without any change.

An array is chosen if it takes no more memory than two hash tables (stores/hashed_or_dense.hpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.streams import learner
from thresher import _core

DTYPES = ["float32", "float64"]


def batch(keys: np.ndarray, width: int, seed: int = 0) -> _core.Batch:
    """Return rows of keys, with random values and labels."""
    rng = np.random.default_rng(seed)
    rows, count = keys.shape
    starts = np.arange(0, rows * count + 1, count)
    labels = rng.choice([-1.0, 1.0], rows)
    return _core.sparse_batch(starts, keys.ravel(), rng.normal(size=keys.size), width, labels, None)


def of(
    store: str, width: int, dtype: str = "float32", rule: str = "truncated_gradient", **more: Any
):
    if rule == "truncated_gradient":
        more = {"gravity": 0.002, "period": 2, "eta0": 0.3, **more}
    return learner(rule, width, store=store, dtype=dtype, **more)


def result(model: _core.Learner) -> tuple[Any, ...]:
    keys, values = model.weights()
    nonzeros = model.nonzeros(False)
    assert nonzeros == len(keys)
    return keys.tolist(), values.tobytes(), model.loss_sum, model.intercept()


def random_keys(rng: np.random.Generator, rows: int, count: int, width: int) -> np.ndarray:
    return np.stack([rng.choice(width, count, replace=False) for _ in range(rows)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", ["truncated_gradient", "ftrl", "adagrad"])
def test_many_cells_of_few_keys_take_the_memory_of_an_array(rule: str, dtype: str) -> None:
    rng, width = np.random.default_rng(0), 3000
    rows = batch(random_keys(rng, 200, 40, width), width)
    hashed, dense = (of(store, width, dtype, rule) for store in ("hashed", "dense"))
    table = hashed.store_bytes
    hashed.learn(rows), dense.learn(rows)
    assert hashed.store_bytes == dense.store_bytes != table
    assert result(hashed) == result(dense)
    assert hashed.predict(rows).tolist() == dense.predict(rows).tolist()


def test_few_cells_of_many_keys_stay_in_a_table() -> None:
    width = 1 << 22
    rows = batch(random_keys(np.random.default_rng(0), 200, 40, 3000), width)
    hashed, dense = of("hashed", width), of("dense", width)
    hashed.learn(rows), dense.learn(rows)
    assert hashed.store_bytes < dense.store_bytes / 50
    assert result(hashed) == result(dense)


def test_a_sweep_that_leaves_few_cells_brings_them_back_to_a_table() -> None:
    rng, width = np.random.default_rng(0), 60_000
    models = [of(store, width, gravity=0.003, sweep_events=300) for store in ("hashed", "dense")]
    many = random_keys(rng, 100, 400, width)  # 50 events
    few = np.tile(np.arange(400), (900, 1))
    sizes = []
    for keys in (many, few):
        for model in models:
            model.learn(batch(keys, width))
        sizes.append(models[0].store_bytes)
        assert result(models[0]) == result(models[1])
    assert sizes[0] == models[1].store_bytes > 5 * sizes[1]


@pytest.mark.parametrize("wider", [3001, 8000, 1 << 40, 0])
def test_a_wider_store_keeps_its_cells(wider: int) -> None:
    rng, width = np.random.default_rng(0), 3000
    first = random_keys(rng, 100, 40, width)
    later = random_keys(rng, 100, 40, min(wider or 9000, 9000))
    models = [of("hashed", width), of("hashed", 0)]
    for model in models:
        model.learn(batch(first, width))
    models[0].widen(wider)
    for model in models:
        model.learn(batch(later, 0))
    assert result(models[0]) == result(models[1])


def test_many_small_widenings_are_learned_as_one_width() -> None:
    rng = np.random.default_rng(0)
    hashed, whole = of("hashed", 500), of("dense", 4000)
    for width in range(500, 4001, 50):
        hashed.widen(width)
        rows = batch(random_keys(rng, 3, 60, width), width, seed=width)
        hashed.learn(rows), whole.learn(rows)
    assert result(hashed) == result(whole)


@given(
    width=st.sampled_from([300, 3000, 30_000]),
    plan=st.lists(st.sampled_from(["learn", "widen", "restore"]), min_size=2, max_size=8),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_order_of_learning_widening_and_restoring(
    width: int, plan: list[str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    hashed, dense = of("hashed", width), of("dense", width)
    for step in plan:
        if step == "widen":
            width = width * 3 // 2
            hashed.widen(width), dense.widen(width)
        elif step == "restore":
            state, hashed = hashed.state(), of("hashed", width)
            hashed.restore(state)
        else:
            rows = batch(random_keys(rng, 20, int(rng.integers(1, 120)), width), width, seed)
            hashed.learn(rows), dense.learn(rows)
    assert result(hashed) == result(dense)


def test_a_state_with_a_feature_beyond_the_width_is_refused() -> None:
    wide = of("hashed", 0)
    wide.learn(batch(np.array([[1, 5000]]), 0))
    narrow = of("hashed", 3000)
    with pytest.raises(ValueError, match="not below the width"):
        narrow.restore(wide.state())
    assert result(narrow)[0] == []
