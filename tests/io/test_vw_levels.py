"""All levels of the parser of VW text give the same blocks, and the same as a naive parser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracles import text as oracle
from support.numbers import NUMBERS
from support.text_cases import assert_same, read
from thresher import _core

SHORT = st.integers(1, 20).flatmap(lambda n: st.text("ab0179^é-.", min_size=n, max_size=n))
NAME = st.one_of(SHORT, SHORT, st.text("xyz", min_size=30, max_size=140), st.integers(0).map(str))
VALUE = st.one_of(
    st.sampled_from(["1", "0", "0.5", "-2", "1.25", "12345678", "1234567.8", "-1234567", "-.5"]),
    st.sampled_from(["5.", ".", "-", "", "+1", "1e3", "1e-400", "3.5e38", "1e999", "nan", "1:2"]),
    st.sampled_from(["0.1234567890123456789", "1..2", "1.2.3", "00000000", "99999999", "1\x01"]),
    NUMBERS,
)
FEATURE = st.tuples(NAME | st.just(""), st.none() | VALUE).map(
    lambda f: f[0] if f[1] is None else ":".join(f)
)
PLAIN = st.tuples(NAME, st.none() | st.sampled_from(["1", "0.25", "-3.5"])).map(
    lambda f: f[0] if f[1] is None else ":".join(f)
)
BLANK = st.sampled_from([" "] * 12 + ["  ", "\t", " \t", "\r ", "|"])
SPACE = st.sampled_from(
    ["", "a", "seven77", "eight888", "ninenine9", "fifteen_letters", "s" * 16, "t" * 33, "a:2",
     "b:0.5", "c:1e38", "d:-1", ":3", "e:x"]
)  # fmt: skip


@st.composite
def lines(draw: st.DrawFn, feature: st.SearchStrategy[str] = FEATURE) -> str:
    line = draw(st.sampled_from(["1 ", "-1 0.5 ", "", "2 'tag ", "1 1 tag"]))
    for _ in range(draw(st.integers(1, 4))):
        line += "|" + draw(SPACE)
        for one in draw(st.lists(feature, max_size=24)):
            line += draw(BLANK) + one
        line += draw(st.sampled_from([" ", "", "  "]))
    return line


@st.composite
def files(draw: st.DrawFn) -> bytes:
    rows = draw(st.lists(st.one_of(lines(), lines(PLAIN)), max_size=5))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(rows) + draw(st.sampled_from(["", end]))).encode()


def levels() -> list[str]:
    found = ["portable"]
    for level in ("avx2", "avx512"):
        try:
            _core.Reader(None, "vw", path="/dev/null", level=level)
        except ValueError:
            continue
        found.append(level)
    return found


LEVELS = levels()


def content(blocks: list[_core.Block]) -> list[Any]:
    """Return everything of the blocks that can be compared, values by their bits."""
    found: list[Any] = []
    for block in blocks:
        values = np.asarray(block.values)
        arrays = (block.starts, block.keys, values.view(f"u{values.dtype.itemsize}"))
        found += [np.asarray(array).tolist() for array in arrays]
        found.append(np.asarray(block.labels).view(np.uint64).tolist())
        found.append([(bad.line, bad.column, bad.what, bad.text) for bad in block.bad])
        found += [block.names, block.tags, block.sketch]
    return found


OPTIONS = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["float32", "float64"]),
        "bits": st.sampled_from([0, 5, 22, 40]),
        "names": st.booleans(),
        "sketch": st.booleans(),
        "block_bytes": st.sampled_from([1, 300, 1 << 20]),
        "interactions": st.sampled_from([[], [], [b"a:"]]),
    }
)


@given(files(), OPTIONS)
@example(b"1 |a c1 c2 lon|b y", {})
@example(b"1 |a " + b":1 " * 9 + b"|a :2 b:3 :4|b :5 c |c :6 :7 :8", {"names": True})
@example(b"1 |c:1e38 a:1 b:2 c:3 d:4", {})
@example(b"|a " + b"x:1 " * 3000, {})
@example(b"|a " + b"x " * 5000 + b"|b " + b"y " * 9, {})
@example(b"|a " + b"n" * 5000 + b" m", {})
@example(b"1 |a " + b"n" * 4090 + b":1234567 m", {})
@example(b"1 |a x:. y:-. z:5. w:-12345678.25", {"dtype": "float64"})
@example(b"|eight888 " + b"x " * 9 + b"a_long_name " + b"y " * 8, {"sketch": True})
@example(b"|eight888 " + b"x " * 9 + b"y:2 z:3|seven77 z:5 " + b"y " * 8, {"names": True})
@example(b"|fifteen_letters " + b"x " * 9 + b"y:2|" + b"s" * 16 + b" z " * 9, {"sketch": True})
@example(b"|a " + b"n%d " * 99, {"names": True, "interactions": [b"a:"]})
@example(b"| 1 22 03 99999999 123456789 18446744073709551615 0 00 a", {"sketch": True})
def test_levels_are_equal(data, options):
    expected = content(read(data, "vw", level="none", **options))
    for level in LEVELS:
        assert content(read(data, "vw", level=level, **options)) == expected, level


@given(files(), st.sampled_from(LEVELS), st.sampled_from(["float32", "float64"]))
def test_each_level_equals_the_naive_parser(data, level, dtype):
    assert_same(read(data, "vw", level=level, dtype=dtype), oracle.vw(data, dtype=dtype), dtype)


@pytest.mark.parametrize("level", [*LEVELS, "none"])
@pytest.mark.parametrize("size", [*range(130), 4090, 4095, 4096, 4097, 4100])
def test_lines_of_any_length(level, size):
    """Names and values cross every border of windows, and end at the end of the text."""
    body = (b"|ab " + b"c de:0.5 fghi " * (size // 10 + 1))[: size + 3]
    for end in (b"", b"\n", b" |z q:7\n", b":1"):
        data = body + end
        assert_same(read(data, "vw", level=level), oracle.vw(data))


def test_unknown_level_is_refused():
    with pytest.raises(ValueError, match="level must be"):
        _core.Reader(None, "vw", path="/dev/null", level="sse9")
