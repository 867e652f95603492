"""Blocks written as text: reading gives the same rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.blocks import blocks
from thresher import _core

Row = tuple[float | list[float] | None, float, bytes, list[tuple[int, float]]]


def read_svmlight(text: bytes, zero_based: bool, lists: bool) -> list[Row]:
    rows: list[Row] = []
    for line in text.split(b"\n")[:-1]:
        label, *features = line.split(b" ")
        pairs = [feature.split(b":") for feature in features]
        keys = [(int(key) - (not zero_based), float(value)) for key, value in pairs]
        labels = [float(one) for one in label.split(b",") if one]
        rows.append((labels if lists else labels[0], 1.0, b"", keys))
    return rows


def read_vw(text: bytes) -> list[Row]:
    rows: list[Row] = []
    for line in text.split(b"\n")[:-1]:
        head, features = line.split(b"|")
        tokens = head.split(b" ")
        tag = tokens.pop()  # the word directly before the bar
        assert not tag or tag[:1] == b"'"
        label = float(tokens[0]) if tokens else None
        weight = float(tokens[1]) if tokens[1:] else 1.0
        pairs = [feature.partition(b":") for feature in features.split()]
        keys = [(int(key), float(value or 1)) for key, _, value in pairs]
        rows.append((label, weight, tag[1:], keys))
    return rows


def rows_of(block: _core.Block, vw: bool) -> list[Row]:
    rows: list[Row] = []
    for row in range(block.rows):
        of = slice(block.starts[row], block.starts[row + 1])
        keys = block.keys[of].astype(np.int64).view(np.uint64).tolist()
        label: float | list[float] | None = None
        if block.label_starts is not None:
            a, b = block.label_starts[row : row + 2]
            label = block.label_values[a:b].tolist()
        elif block.labels is not None and not math.isnan(block.labels[row]):
            label = float(block.labels[row])
        weight = 1.0 if block.weights is None else float(block.weights[row])
        tag = block.tags[row] if vw and block.tags is not None else b""
        rows.append((label, weight, tag, list(zip(keys, block.values[of].tolist(), strict=True))))
    return rows


def rounded(rows: list[Row], dtype: np.dtype) -> list[Row]:
    """Return rows as a reader does: the nearest double, rounded to the dtype."""

    def cast(value: float) -> float:
        return float(dtype.type(value))

    return [(*rest, [(key, cast(x)) for key, x in pairs]) for *rest, pairs in rows]


@given(blocks(labels=("plain",), weighted=False), st.booleans())
def test_svmlight_reads_back(block, zero_based):
    if not zero_based and np.any(block.keys.astype(np.int64) == -1):
        with pytest.raises(_core.DataError, match="zero-based"):
            _core.svmlight_text(block)
        return
    text = _core.svmlight_text(block, zero_based)
    read = rounded(read_svmlight(text, zero_based, lists=False), block.values.dtype)
    assert repr(read) == repr(rows_of(block, vw=False))


@given(blocks(labels=("lists",)))
def test_svmlight_with_lists_reads_back(block):
    rows = rows_of(block, vw=False)
    if any(not labels and not pairs for labels, _, _, pairs in rows):
        with pytest.raises(_core.DataError, match="line would be empty"):
            _core.svmlight_text(block, True)
        return
    text = _core.svmlight_text(block, True)
    assert repr(rounded(read_svmlight(text, True, lists=True), block.values.dtype)) == repr(rows)
    with pytest.raises(ValueError, match="not a list"):
        _core.vw_text(block)


@given(blocks(labels=("plain", "missing", "none")))
def test_vw_reads_back(block):
    read = rounded(read_vw(_core.vw_text(block)), block.values.dtype)
    assert repr(read) == repr(rows_of(block, vw=True))


def one_row(value: float, dtype: str = "float64", **given_: object) -> _core.Block:
    values = np.array([value], dtype)
    given_.setdefault("labels", np.ones(1))
    return _core.make_block(np.array([0, 1]), np.array([12]), values, **given_)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, "float32", "0.1"),
        (0.1, "float64", "0.1"),
        (np.float32(0.1), "float64", "0.10000000149011612"),
        (-0.0, "float32", "-0"),
        (1.0, "float32", "1"),
        (-2.5, "float32", "-2.5"),
        (123456.75, "float64", "123456.75"),
        (100000.0, "float32", "100000"),
        (0.00025, "float64", "0.00025"),
        (1e-7, "float32", "1e-07"),
        (16777216.0, "float32", "16777216"),
        (0.1 + 0.2, "float64", "0.30000000000000004"),
        (9.999999, "float32", "9.999999"),
        (999999.94, "float32", "999999.94"),
        (5e-324, "float64", "5e-324"),
        # readers would round 7.038531e-26, the shortest text, to the next float
        (7.038530691851209e-26, "float32", "7.038530691851209e-26"),
        (-7.038530691851209e-26, "float32", "-7.038530691851209e-26"),
    ],
)
def test_shortest_numbers(value, dtype, text):
    expected = f"1 13:{text}\n".encode()
    assert _core.svmlight_text(one_row(value, dtype)) == expected


def test_lengths_are_the_shortest():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        drawn = rng.random(4000) * 10.0 ** rng.integers(-4, 6, 4000)
        drawn = np.concatenate([drawn, np.round(drawn, 3), 1 / np.sqrt(np.arange(1, 500))])
        values = drawn.astype(dtype)
        n = len(values)
        block = _core.make_block(np.arange(n + 1), np.zeros(n, int), values, np.ones(n))
        texts = [
            line.split(b":")[1].decode() for line in _core.svmlight_text(block).split(b"\n")[:-1]
        ]
        assert np.array_equal(np.array(texts, np.float64).astype(dtype), values)
        for text, value in zip(texts, values, strict=True):
            plain = np.format_float_positional(value, unique=True, trim="-")
            assert len(text) <= len(plain)


def test_lines_of_vw():
    block = _core.make_block(
        np.array([0, 2, 2, 3]),
        np.array([5, 2**64 - 1, 7], np.uint64).view(np.int64),
        np.array([1.0, 0.5, -1.0]),
        np.array([1.0, np.nan, -1.0]),
        np.array([2.0, 1.0, 1.0]),
        tags=[b"a", b"b'", b""],
    )
    expected = b"1 2 'a| 5 18446744073709551615:0.5\n'b'|\n-1 | 7:-1\n"
    assert _core.vw_text(block) == expected


@pytest.mark.parametrize(
    ("given_", "svmlight", "vw"),
    [
        ({"labels": np.array([np.nan])}, "row 0: there is no label; svmlight needs one", None),
        ({"labels": None}, "svmlight needs one", None),
        ({"labels": np.array([np.inf])}, "the label is inf", "the label is inf"),
        ({"weights": np.array([2.0])}, "the weight is 2; svmlight has no weights", None),
        (
            {"labels": np.array([np.nan]), "weights": np.array([2.0])},
            "svmlight has no weights",
            "a weight without a label",
        ),
        ({"tags": [b"a b"]}, None, "the tag has a space or a bar"),
        ({"tags": [b"a|b"]}, None, "the tag has a space or a bar"),
        ({"tags": [b"a\tb"]}, None, "the tag has a space or a bar"),
        ({"tags": [b"a\r"]}, None, "the tag has a space or a bar"),
        ({"tags": [b"\0"]}, None, "the tag has a space or a bar"),
        ({"tags": [b"\x01\x0e\xff"]}, None, None),
        ({"value": np.nan}, "a value is nan", "a value is nan"),
    ],
)
def test_rows_that_a_format_cannot_hold(given_, svmlight, vw):
    block = one_row(**({"value": 0.5} | given_))
    for text, message in ((_core.svmlight_text, svmlight), (_core.vw_text, vw)):
        if message is None:
            assert text(block).endswith(b":0.5\n")
        else:
            with pytest.raises(_core.DataError, match=message):
                text(block)
