"""The reader of svmlight text equals a naive parser."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import text as oracle
from support.numbers import NUMBERS
from support.text_cases import assert_same, read
from thresher import _core

INDICES = st.one_of(st.integers(1, 40), st.integers(1, 10**9), st.integers(1, 2**64 - 1))
PIECES = st.sampled_from(
    [
        b"1",
        b"0",
        b"12",
        b":",
        b".",
        b"-",
        b"e",
        b" ",
        b"\t",
        b"#",
        b",",
        b"qid:",
        b"\r",
        b"\0",
        b"nan",
        b"inf",
        b"18446744073709551616",
        b"1:2",
        b" 3:0.25",
        b"\xff",
        b"+",
        b"1e999",
        b"\n",
        b"\n",
        b"3.4e39",
    ]
)
SEPARATORS = st.sampled_from([" ", " ", " ", "  ", "\t"])


@st.composite
def lines(draw: st.DrawFn, multilabel: bool) -> str:
    labels = (
        st.lists(NUMBERS, max_size=3) if multilabel else st.lists(NUMBERS, min_size=1, max_size=1)
    )
    line = ",".join(draw(labels))
    if draw(st.booleans()):
        line += f" qid:{draw(st.integers(0, 99))}"
    for index, value in draw(st.lists(st.tuples(INDICES, NUMBERS), max_size=8)):
        line += f"{draw(SEPARATORS)}{index}:{value}"
    return line + draw(st.sampled_from(["", "", " ", " # text: 1", "#"]))


@st.composite
def files(draw: st.DrawFn, multilabel: bool = False) -> bytes:
    rows = draw(
        st.lists(st.one_of(lines(multilabel), st.sampled_from(["", " ", "# c"])), max_size=8)
    )
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(rows) + draw(st.sampled_from(["", end]))).encode()


@given(
    st.booleans().flatmap(lambda m: st.tuples(st.just(m), files(m))),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([0, 3, 31, 40]),
    st.booleans(),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 64, 1 << 20]),
)
def test_files_equal_the_oracle(case, dtype, bits, zero_based, threads, block_bytes):
    multilabel, data = case
    options = {"dtype": dtype, "bits": bits, "zero_based": zero_based, "multilabel": multilabel}
    blocks = read(data, "svmlight", threads=threads, block_bytes=block_bytes, **options)
    assert_same(blocks, oracle.svmlight(data, **options), dtype)


@given(st.lists(PIECES, max_size=40).map(b"".join), st.booleans(), st.booleans())
def test_any_bytes_equal_the_oracle(data, multilabel, zero_based):
    options = {"multilabel": multilabel, "zero_based": zero_based}
    assert_same(read(data, "svmlight", **options), oracle.svmlight(data, **options))


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        (b"abc 1:2", 1, 'a label; found "abc"'),
        (b"1:2 2:3", 1, 'a label; found "1:2"'),
        (b"1,2 1:2", 2, "--multilabel"),
        (b"1x 1:2", 2, 'blank after the label; found "x"'),
        (b"nan 1:2", 1, "a label"),
        (b"1e999 1:2", 1, "1.8e308"),
        (b"1 0:2", 3, "--zero-based"),
        (b"1 1 2:3", 4, "':' after the index; found a blank"),
        (b"1 a:2", 3, 'index:value; found "a:2"'),
        (b"1 -1:2", 3, "index:value"),
        (b"1 18446744073709551616:1", 3, "2^64"),
        (b"1 1:", 5, "finite number; found the end of the line"),
        (b"1 1:nan", 5, 'finite number; found "nan"'),
        (b"1 1:-inf", 5, "finite number"),
        (b"1 2:1 1:1e999", 9, "1.8e308"),
        (b"1 2:1 1:1e39", 9, "3.4e38"),
        (b"1 2:1.5.5", 8, 'blank after the value; found ".5"'),
        (b"1 2:0x10", 6, "blank after the value"),
        (b"1 2:1\x00 3:1", 6, "NUL"),
        (b"1 2:\x00", 5, "NUL"),
        (b"1 2:1 # a\x00", 10, "NUL"),
        (b"1 2:1 \x07", 7, "\\x07"),
        (b"1 2:\xff\xfe", 5, "\\xff\\xfe"),
        (b"1 qid:x 2:1", 7, "a whole number"),
        (b"1 2:1 2:3.4e38 2:3.4e38", 1, "add up to infinity"),
    ],
)
def test_errors_of_bad_lines(line, column, words):
    data = b"1 1:1\n\n" + line + b"\r\n-1 2:2\n"
    (block,) = read(data, "svmlight")
    (bad,) = block.bad
    assert (bad.line, bad.column, bad.text) == (2, column, line)
    assert words in bad.what
    assert np.asarray(block.labels).tolist() == [1, -1]
    assert [block.line(r) for r in range(2)] == [1, 4]
    assert oracle.svmlight(data).bad == [(3, column)]


def test_reading_can_stop_at_the_first_bad_line():
    data = b"1 1:1\nx\n1 1:1\n" * 20
    blocks = read(data, "svmlight", keep_going=False, block_bytes=32, threads=3)
    assert [(block.rows, len(block.bad), block.line_count) for block in blocks] == [
        (1, 1, 6)
    ]  # twice the same lines


def test_header_of_extreme_classification_is_skipped():
    data = b"2 10 3\n0,2 1:1\n 3:1\n4:1\n"
    (block,) = read(data, "svmlight", multilabel=True)
    assert np.asarray(block.label_starts).tolist() == [0, 2, 2, 2]
    assert block.labels is None
    assert [block.line(r) for r in range(3)] == [2, 3, 4]


def test_keys_are_narrow_while_they_fit():
    (block,) = read(b"1 1:1 2147483648:2\n", "svmlight")
    assert block.keys.dtype == np.int32
    (block,) = read(b"1 1:1\n1 7:1 2147483649:2\n1 3:1\n", "svmlight")
    assert block.keys.dtype == np.int64
    assert block.keys.tolist() == [0, 6, 2147483648, 2]
    assert block.width == 2147483649
    (block,) = read(b"1 9223372036854775809:1\n", "svmlight")
    assert (block.width, block.keys.tolist()) == (0, [-(2**63)])
    (block,) = read(b"1 9223372036854775809:1\n", "svmlight", bits=31)
    assert block.keys.dtype == np.int32
    assert block.width == 2**31


@pytest.mark.parametrize("size", [40, 61, 62, 63, 64, 65, 100, 200])
@pytest.mark.parametrize("before", [b"", b" 1:1", b" 1:-1"])
def test_features_that_are_longer_than_a_window(before, size):
    for value in (b"0." + b"3" * size, b"4" * size, b"-0." + b"0" * size + b"5"):
        for index in (b"7", b"123456789", b"0" * size + b"8"):
            data = b"1%b %b:%b 9:2\n-1 3:4\n" % (before, index, value)
            expected = oracle.svmlight(data, dtype="float64")
            assert len(expected.rows) == 2
            assert_same(read(data, "svmlight", dtype="float64"), expected, "float64")


@pytest.mark.parametrize("before", [b"", b" 1:1 2:2", b" 1:-1 2:2"])
@pytest.mark.parametrize("threads", [1, 2])
def test_features_of_odd_forms_equal_the_oracle(before, threads):
    for odd in (b"1.5:2", b"12:3.4.5", b"123456789:1", b".5:2", b"3:.5", b"3:5.", b"3:.", b"3",
                b"3:4#5:6", b"3:4\t5:6", b"3:-.5", b"3:--5", b"0:1", b":1"):  # fmt: skip
        for after in (b"", b" 8:1 9:1"):
            data = b"1%b %b%b\n-1 3:4\n" % (before, odd, after)
            for sketch in (False, True):
                blocks = read(data, "svmlight", threads=threads, sketch=sketch)
                assert_same(blocks, oracle.svmlight(data))


def test_a_first_line_that_is_too_long_is_no_header():
    data = b"1 2 3" + b" " * 100 + b"\n1,2 4:5\n"
    bad, block = read(data, "svmlight", multilabel=True, max_line=50, block_bytes=50)
    assert [(x.line, x.what) for x in bad.bad] == [(0, "line longer than 50 bytes")]
    assert (block.first_line, block.label_values.tolist(), block.keys.tolist()) == (2, [1, 2], [3])


def test_sketches_that_are_empty_full_or_of_another_size():
    size = 1 << 14
    assert _core.sketch_estimate(b"") == _core.sketch_estimate(bytes(size)) == 0
    assert _core.sketch_estimate(b"\1" + bytes(size - 1)) == pytest.approx(1, rel=1e-3)
    assert _core.sketch_estimate(b"\xff" * size) == np.inf
    assert _core.sketch_merge(b"\1" * size, b"\0\2" * (size // 2)) == b"\1\2" * (size // 2)
    for wrong in (bytes(size - 1), bytes(size + 1)):
        with pytest.raises(ValueError, match="the wrong size"):
            _core.sketch_estimate(wrong)
        for pair in ((wrong, bytes(size)), (bytes(size), wrong)):
            with pytest.raises(ValueError, match="the wrong size"):
                _core.sketch_merge(*pair)


@pytest.mark.parametrize("count", [0, 1, 1000, 200_000])
def test_sketch_estimates_distinct_keys(count):
    data = b"".join(b"1 %d:1 %d:1\n" % (i + 1, i + 2) for i in range(max(0, count - 1)))
    data = b"1 1:1\n" if count == 1 else data
    sketch = b""
    for block in read(data, "svmlight", sketch=True, bits=4):
        sketch = _core.sketch_merge(sketch, block.sketch)
    assert _core.sketch_estimate(sketch) == pytest.approx(count, rel=0.03)
