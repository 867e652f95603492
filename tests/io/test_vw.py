"""The reader of VW text equals a naive parser."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import text as oracle
from support.numbers import NUMBERS
from support.text_cases import assert_same, read
from thresher import _core

ODD = st.binary(min_size=1, max_size=40).map(
    lambda b: bytes(c for c in b if c not in b" \t\n\r|:\0") or b"x"
)
NAMES = st.one_of(
    st.sampled_from([b"", b"a", b"b", b"0", b"7", b"07", b"18446744073709551616", b"word", b"x^y"]),
    ODD,
)
PIECES = st.sampled_from(
    [
        b"|",
        b"|",
        b" ",
        b" ",
        b"\t",
        b":",
        b"a",
        b"b7",
        b"12",
        b"1",
        b"-",
        b"'",
        b"\r",
        b"\0",
        b"\n",
        b"|a x y:2",
        b"nan",
        b"1e999",
        b"3.4e39",
        b"\x01",
        b"\xff",
        b".5",
        b"'tag|",
        b"a" * 33,
    ]
)
KNOWN = (
    0x653DECB77A31B391,
    0x01F93FC9BC03EF66,
    0xCED1310407FD8D8C,
    0xA4AD605A2A9C3350,
    0x48738684D5F573E7,
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    parts = draw(st.lists(NUMBERS.map(lambda n: n.lstrip("-")), max_size=2))
    line = " ".join(parts).encode() + b" " * bool(parts)
    line += draw(st.sampled_from([b"", b"", b"'tag ", b"tag", b"'"]))
    for _ in range(draw(st.integers(1, 3))):
        line += b"|" + draw(st.sampled_from([b"", b"a", b"alpha", b"b", b"beta:0.5", b":2"]))
        for name, value in draw(st.lists(st.tuples(NAMES, st.none() | NUMBERS), max_size=5)):
            line += b" " + name + (b"" if value is None else b":" + value.encode())
        line += b" "
    return line


@st.composite
def files(draw: st.DrawFn) -> bytes:
    rows = draw(st.lists(st.one_of(lines(), st.sampled_from([b"", b" "])), max_size=6))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    return end.join(rows) + draw(st.sampled_from([b"", end]))


@given(
    files(),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([0, 3, 18, 40]),
    st.lists(st.sampled_from([b"ab", b"aa", b"::", b"a:", b": ", b"ba"]), max_size=2),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 64, 1 << 20]),
)
def test_files_equal_the_oracle(data, dtype, bits, interactions, threads, block_bytes):
    options = {"dtype": dtype, "bits": bits, "interactions": interactions}
    blocks = read(data, "vw", threads=threads, block_bytes=block_bytes, names=True, **options)
    expected = oracle.vw(data, **options)
    assert_same(blocks, expected, dtype)
    names: dict[int, set[bytes]] = {}
    for block in blocks:
        for key, name in block.names:
            names.setdefault(key, set()).add(name)
    for key, shown in expected.names.items():
        assert shown <= names[key]
    if not expected.bad:
        assert names == expected.names

    wanted = sorted(names)[::2]
    asked = _core.WantedNames(np.array(wanted, np.uint64))
    found = read(data, "vw", wanted=asked, **options)
    pairs = {(key, name) for block in found for key, name in block.names}
    assert pairs == {(key, name) for key in wanted for name in names[key]}


@given(st.lists(PIECES, max_size=40).map(b"".join), st.sampled_from([[], [b"::"]]))
def test_any_bytes_equal_the_oracle(data, interactions):
    expected = oracle.vw(data, interactions=interactions)
    assert_same(read(data, "vw", interactions=interactions), expected)


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        (b"1 2", 4, "'|'; found the end of the line"),
        (b"x |a b", 1, "a label or '|'"),
        (b"1x |a b", 2, "blank after the number"),
        (b"1 x |a b", 3, "an importance weight"),
        (b"1 -2 |a b", 3, "at least 0"),
        (b"1 2 3 |a b", 5, "no initial prediction other than 0"),
        (b"1 2 x |a b", 5, "'|' or a tag"),
        (b"1 2 0 0 |a b", 7, "'|' or a tag"),
        (b"1 |a b:true", 8, 'found "true"; a word belongs to the name: color=red'),
        (b"1e999 |a b", 1, "1.8e308"),
        (b"inf |a b", 1, "a label"),
        (b"1 'tag x |a b", 8, "'|' after the tag"),
        (b"1 |a b:", 8, "finite number; found the end of the line"),
        (b"1 |a b: c", 8, "finite number; found a blank"),
        (b"1 |a b:nan", 8, 'finite number; found "nan"'),
        (b"1 |a b:1e999", 8, "1.8e308"),
        (b"1 |a b:1e39", 8, "3.4e38"),
        (b"1 |a b:1:2", 9, "blank after the value"),
        (b"1 |a :", 7, "finite number; found the end of the line"),
        (b"1 |a:x b", 6, "namespace's weight"),
        (b"1 |a:1x b", 7, "blank after the weight"),
        (b"1 |a b\x00c", 7, "NUL"),
        (b"1\x00 |a b", 2, "NUL"),
        (b"1 |a\x00 b", 5, "NUL"),
        (b"1 |a b \x00", 8, "NUL"),
        (b"1 |a b:3e38 b:3e38", 1, "add up to infinity"),
    ],
)
def test_errors_of_bad_lines(line, column, words):
    data = b"1 |a b\n" + line + b"\n-1 |a b\n"
    (block,) = read(data, "vw")
    (bad,) = block.bad
    assert (bad.line, bad.column, bad.text) == (1, column, line)
    assert words in bad.what
    assert np.asarray(block.labels).tolist() == [1, -1]
    assert oracle.vw(data).bad == [(2, column)]


def test_numbers_in_the_default_namespace_are_keys():
    (block,) = read(b"1 | 12:0.5 0 18446744073709551615 012 |n 12\n", "vw", names=True)
    keys = [key & oracle.FULL for key in block.keys.tolist()]
    assert keys[:3] == [12, 0, 2**64 - 1]
    assert keys[3:] == [oracle.hash64(b"012"), oracle.hash64(b"n^12")]
    assert [name for _, name in block.names] == [b"012", b"n^12"]
    assert block.width == 0


def test_features_without_names_are_numbered_in_their_namespace():
    """As in VW: ``| :1 :2`` is ``| 0:1 1:2``, and each bar begins again at 0."""
    text = b"1 | :1 :2\n1 |a x :5 y :6|a :7 |long_namespace_of_20 :8 :9|b :1\n"
    same = b"1 | 0:1 1:2\n1 |a x 0:5 y 1:6|a 0:7 |long_namespace_of_20 0:8 1:9|b 0:1\n"
    for options in ({}, {"interactions": [b"::"]}):
        (block,) = read(text, "vw", names=True, **options)
        (other,) = read(same, "vw", names=True, **options)
        assert block.keys.tolist() == other.keys.tolist()
        assert block.values.tolist() == other.values.tolist()
        assert block.names == other.names
    assert b"a^1" in {name for _, name in block.names}


def test_an_initial_prediction_of_0_says_nothing():
    (block,) = read(b"-1 2 0 'tag |a b\n1 0.5 0|a b\n", "vw")
    assert np.asarray(block.labels).tolist() == [-1, 1]
    assert np.asarray(block.weights).tolist() == [2, 0.5]
    assert block.tags == [b"tag", b"0"]


@pytest.mark.parametrize("wanted", [False, True])
def test_the_feature_of_key_0_has_its_name(wanted):
    """The interaction of these two numbers has the key 0: they cancel the salts of the hash."""
    a, b = oracle.SALT[0] ^ 1, oracle.SALT[1] ^ oracle.SALT[2]
    assert oracle.mix(a, b) == 0
    keys = _core.WantedNames(np.array([0], np.uint64)) if wanted else None
    data = f"1 | {a} |b x\n1 | {a} {b}\n".encode()
    (block,) = read(data, "vw", interactions=[b"::"], names=True, wanted=keys)
    names = dict(block.names)
    assert names[0] == f"{a}*{b}".encode()
    assert oracle.vw(data, interactions=[b"::"]).names[0] == {names[0]}


def test_a_block_has_all_its_names():
    data = b"1 |n " + b" ".join(b"f%d" % (i % 20_000) for i in range(40_000)) + b"\n"
    (block,) = read(data, "vw", names=True)
    assert {name for _, name in block.names} == {b"n^f%d" % i for i in range(20_000)}


def test_known_answers():
    # These must never change: models store keys.
    assert _core.hash_name(b"") == KNOWN[0]
    assert _core.hash_name(b"a") == KNOWN[1]
    assert _core.hash_name(b"user^1234") == KNOWN[2]
    assert _core.hash_name(bytes(range(100))) == KNOWN[3]
    assert _core.mix_keys(1, 2) == KNOWN[4]


@given(st.binary(max_size=200), st.integers(0, oracle.FULL), st.integers(0, oracle.FULL))
def test_hashes_equal_the_oracle(text, a, b):
    assert _core.hash_name(text) == oracle.hash64(text)
    assert _core.mix_keys(a, b) == oracle.mix(a, b)
    offsets = [0, len(text) // 3, len(text) // 2, len(text)]
    for kind in (np.int32, np.int64):
        keys = _core.hash_strings(np.array(offsets, kind), text, b"ns^")
        parts = [text[i:j] for i, j in pairwise(offsets)]
        assert keys.tolist() == [oracle.hash64(b"ns^" + part) for part in parts]
        assert _core.hash_strings(
            np.array(offsets, kind), np.frombuffer(text, np.uint8)
        ).tolist() == [oracle.hash64(part) for part in parts]


@pytest.mark.parametrize("offsets", [[0, 5, 3], [0, 7], [-1, 3], [2, 2, 7], [7, 7]])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_strings_outside_their_data_are_refused(offsets, kind):
    with pytest.raises(ValueError, match="must not decrease, and lie within the data"):
        _core.hash_strings(np.array(offsets, kind), b"abcdef")


def test_numbers_of_the_slow_path_are_the_nearest():
    """The digits of the first, without the point, are more than a double holds exactly."""
    for text in ("92050340.66496171", "-92050340.66496171", "1.e30", "-12345678.25", "5."):
        for level in ("none", "portable"):
            (block,) = read(b"1 |a b:%b\n" % text.encode(), "vw", dtype="float64", level=level)
            assert block.values.tolist() == [float(text)]
