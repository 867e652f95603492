"""The digest of the cells of a table."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from thresher.data import table_digest
from thresher.data.table_digest import digest_of_table

COLUMNS = {
    "floats": pa.array([0.5, None, float("nan"), -2.0]),
    "whole": pa.array([1, 2, 3, 4], pa.int16()),
    "truth": pa.array([True, False, None, True]),
    "words": pa.array(["a", "", None, "bcd"]),
    "long": pa.array(["a", "", None, "bcd"], pa.large_string()),
    "bytes": pa.array([b"a", b"\xff", None, b""]),
    "categories": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "lists": pa.array([["a"], [], None, ["b", None]]),
    "fixed": pa.array([[1.0, 2.0], [3.0, 4.0], None, [5.0, 6.0]], pa.list_(pa.float64(), 2)),
    "maps": pa.array([[("a", 1)], [], None, [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "records": pa.array([{"a": 1}, {"a": None}, None, {"a": 3}]),
    "times": pa.array([datetime.datetime(2020, 1, day) for day in range(1, 5)]),
    "decimals": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal(2), decimal.Decimal(3)]),
    "ids": pa.array([b"ab", b"cd", None, b"ee"], pa.binary(2)),
    "nothing": pa.nulls(4),
}


def digest(array, ignored=()):
    """Return the digest of a table of one column."""
    return digest_of_table(pa.table({"x": array}), ignored)


@pytest.mark.parametrize("name", COLUMNS)
def test_chunks_and_offsets_do_not_matter(name):
    array = COLUMNS[name]
    whole = digest(array)
    assert digest(pa.chunked_array([array[:1], array[1:]])) == whole
    shifted = pa.concat_arrays([array, array])
    assert digest(shifted[4:]) == digest(shifted.take(pa.array([0, 1, 2, 3]))) == whole


@pytest.mark.parametrize("name", sorted(set(COLUMNS) - {"nothing"}))
def test_each_row_matters(name):
    array = COLUMNS[name]
    orders = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 2, 2], [0, 1, 2]]
    found = {digest(array.take(pa.array(order))) for order in orders}
    assert len(found) == len(orders)


@pytest.mark.parametrize("name", ["decimals", "ids", "words", "bytes", "long", "nothing"])
def test_cells_do_not_become_python_objects(name, monkeypatch):
    """That would take ten times as long as reading a column of decimals."""
    rows = COLUMNS[name]
    if name == "words" and hasattr(pa, "string_view"):
        rows = rows.cast(pa.string_view())
    monkeypatch.setattr(table_digest, "repr", None, raising=False)
    digest(rows)


def test_the_number_of_missing_cells_matters():
    assert len({digest(pa.nulls(rows)) for rows in range(4)}) == 4
    lists = ([[None], [None, None]], [[None, None], [None]], [[None], []])
    assert len({digest(pa.array(rows, pa.list_(pa.null()))) for rows in lists}) == 3


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no views")
def test_views_of_strings_have_the_digest_of_strings():
    words, content = COLUMNS["words"], COLUMNS["bytes"]
    assert digest(words.cast(pa.string_view())) == digest(words)
    assert digest(content.cast(pa.binary_view())) == digest(content)


def test_bytes_of_missing_cells_do_not_matter():
    present = pa.py_buffer(np.packbits([True, False], bitorder="little"))
    one, two = (
        pa.Array.from_buffers(pa.float64(), 2, [present, pa.py_buffer(np.array([1.0, hidden]))])
        for hidden in (2.0, 3.0)
    )
    assert digest(one) == digest(two) != digest(pa.array([1.0, 2.0]))


def test_names_matter_and_ignored_columns_do_not():
    a, b = pa.array([1, 2]), pa.array([3, 4])
    table = pa.table({"a": a, "b": b})
    assert digest_of_table(table, ()) != digest_of_table(pa.table({"a": b, "b": a}), ())
    assert digest_of_table(table, ()) != digest_of_table(pa.table({"b": a, "a": b}), ())
    assert digest_of_table(table, ("b",)) == digest_of_table(pa.table({"a": a, "b": a}), ("b",))
