"""Rows with keys in any order: learned as given, unless a key comes twice (core/repeated_keys.hpp).

Sums are taken in the order given, so rows in another order can differ by rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.exactness import DTYPES, STORES
from support.streams import learner
from thresher import _core

Row = list[tuple[int, float]]

WIDTH = 3000
KEYS = st.one_of(st.integers(0, 12), st.integers(0, WIDTH - 1))  # often repeated, or seldom
ROWS = st.lists(st.lists(st.tuples(KEYS, st.floats(-2, 2, width=16)), max_size=40), max_size=12)
WHOLE = st.sampled_from([np.int32, np.int64])


def merged(row: Row) -> Row:
    """Return the row with its repeated keys added, in the order of their first occurrence."""
    found: dict[int, float] = {}
    for key, value in row:
        found[key] = found[key] + value if key in found else value
    return list(found.items())


def batch(rows: list[Row], whole: Any = np.int32, width: int = WIDTH) -> _core.Batch:
    starts = np.cumsum([0, *map(len, rows)]).astype(whole)
    keys = np.array([key for row in rows for key, _ in row], whole)
    values = np.array([value for row in rows for _, value in row], np.float64)
    labels = np.where(np.arange(len(rows)) % 3 == 0, 1.0, -1.0)
    return _core.sparse_batch(starts, keys, values, width, labels, None)


def learned(rows: _core.Batch, store: str, dtype: str) -> tuple[Any, ...]:
    model = learner(
        "truncated_gradient", WIDTH, store=store, dtype=dtype, gravity=0.003, period=2, eta0=0.3
    )
    model.learn(rows)
    model.learn(rows)
    keys, values = model.weights()
    return keys.tolist(), values.tobytes(), model.loss_sum, model.intercept()


@given(rows=ROWS, whole=WHOLE, store=STORES, dtype=DTYPES)
def test_a_row_in_any_order_is_learned_as_its_merged_row(rows, whole, store, dtype):
    """Sums of float16 numbers are exact, so the order of a sum of repeated keys does not matter."""
    expected = learned(batch([merged(row) for row in rows], np.int64), store, dtype)
    assert learned(batch(rows, whole), store, dtype) == expected


@given(rows=ROWS, data=st.data(), dtype=DTYPES)
def test_permuted_rows_differ_by_rounding_only(rows, data, dtype):
    permuted = [data.draw(st.permutations(row)) for row in rows]
    one, other = (learned(batch(each), "dense", dtype) for each in (rows, permuted))
    assert one[2] == pytest.approx(other[2], rel=1e-4 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("repeated", [False, True])
def test_rows_longer_than_the_first_table(repeated):
    """The table grows with the longest row; rows of all lengths follow each other."""
    rng, rows = np.random.default_rng(0), []
    for length in (5, 3000, 40, 2999, 1):
        keys = rng.permutation(WIDTH)[:length].tolist()
        if repeated and length > 1:
            keys[-1] = keys[0]
        rows.append([(key, 0.5) for key in keys])
    expected = learned(batch([merged(row) for row in rows]), "dense", "float64")
    assert learned(batch(rows), "dense", "float64") == expected


@pytest.mark.parametrize("bad", [-1, WIDTH, 2**31 - 1])
def test_a_key_outside_is_refused_in_any_place(bad):
    for place in range(4):
        keys = [7, 3, 9, 1]
        keys[place] = bad
        model = learner("truncated_gradient", WIDTH, gravity=0.0)
        with pytest.raises(_core.DataError, match="row 1"):
            model.learn(batch([[(1, 1.0)], [(key, 1.0) for key in keys]], width=0))
        assert model.steps == 1
