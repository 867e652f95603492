"""Blocks made of arrays; values of a repeated key in a row are added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher import _core


@given(st.lists(st.lists(st.integers(0, 6), max_size=8), max_size=6), st.sampled_from("fd"))
def test_repeated_keys_add_up(rows, dtype):
    rng = np.random.default_rng(len(rows))
    counts = [len(row) for row in rows]
    x = rng.normal(size=sum(counts)).astype(dtype)
    keys = np.array([key for row in rows for key in row], np.int32)
    block = _core.make_block(np.cumsum([0, *counts]), keys, x)
    at = 0
    for row, keys_of in enumerate(rows):
        sums: dict[int, np.floating] = {}
        for key, value in zip(keys_of, x[at : at + len(keys_of)], strict=True):
            sums[key] = sums[key] + value if key in sums else value
        at += len(keys_of)
        found = slice(block.starts[row], block.starts[row + 1])
        assert block.keys[found].tolist() == list(sums)
        assert block.values[found].tolist() == list(sums.values())


def test_arrays_are_copied_only_if_necessary():
    starts, keys, x = np.array([0, 2]), np.array([1, 0]), np.ones(2)
    block = _core.make_block(starts, keys, x)
    for array, given_ in [(block.starts, starts), (block.keys, keys), (block.values, x)]:
        assert np.shares_memory(array, given_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"starts": np.array([0, 2, 1])}, "row 1: row starts must not decrease"),
        ({"starts": np.array([-1, 2, 2])}, "row 0: row starts must not decrease"),
        ({"starts": np.array([0, 2, 4])}, "row starts reach beyond the keys"),
        ({"starts": np.array([], int)}, "starts: one more than rows"),
        ({"starts": np.array([0.0, 1.0])}, "starts: int32 or int64"),
        ({"keys": np.array([1, 2])}, "keys and values: the same length"),
        ({"keys": np.array([1, 2, -3], np.int32)}, "int32 keys are 0 or above"),
        ({"values": np.ones(3, int)}, "values: float32 or float64"),
        ({"labels": np.ones(3)}, "labels: one for each row"),
        ({"weights": np.ones(1)}, "weights: one for each row"),
        ({"tags": [b"a"]}, "tags: one for each row"),
        ({"columns": 3}, "columns: all keys must be below"),
        ({"columns": -1}, "columns: 0"),
        ({"label_starts": np.array([0, 1, 1])}, "give both label_starts and label_values"),
        (
            {"label_starts": np.array([0, 1, 3]), "label_values": np.ones(2)},
            "label starts reach beyond",
        ),
    ],
)
def test_invalid_arrays(change, message):
    given_ = {"starts": np.array([0, 2, 3]), "keys": np.array([1, 2, 3]), "values": np.ones(3)}
    with pytest.raises(ValueError, match=message):
        _core.make_block(**(given_ | change))
