"""Names collected while text is read: the first name of each feature, as a second reading finds."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracles import text as oracle
from support.text_cases import read
from thresher import _core

WORDS = st.sampled_from(
    [b"a", b"bb", b"7", b"07", b"word:2", b"x^y", b"|a", b"|b", b"|", b"a" * 70]
)
LINES = st.lists(WORDS, max_size=12).map(lambda words: b"1 |a " + b" ".join(words))
FILES = st.lists(LINES | st.sampled_from([b"", b"bad", b"1 |c new:x"]), max_size=8).map(b"\n".join)


def second_reading(data, keys, **options):
    """Return the first name of each key, found by a reading only for names."""
    wanted = _core.WantedNames(keys)
    for block in read(data, "vw", wanted=wanted, **options):
        wanted.take(block)
    return wanted.found


def as_dict(named, ends, text):
    starts = [0, *ends.tolist()][: len(named)]
    content = text.tobytes()
    return {
        key: content[start:end]
        for key, start, end in zip(named.tolist(), starts, ends.tolist(), strict=True)
    }


def keys_of(blocks):
    found = [np.asarray(block.keys).astype(np.int64).view(np.uint64) for block in blocks]
    return np.unique(np.concatenate([np.zeros(0, np.uint64), *found]))


@given(
    FILES,
    st.sampled_from([0, 3, 18, 40]),
    st.lists(st.sampled_from([b"ab", b"aa", b"::"]), max_size=2),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 64, 1 << 20]),
    st.sampled_from(["auto", "portable", "none"]),
)
@example(b"1 |n " + b" ".join(b"f%d" % i for i in range(99)), 0, [], 1, 1 << 20, "portable")
def test_names_equal_those_of_a_second_reading(
    data, bits, interactions, threads, block_bytes, level
):
    options = {"bits": bits, "interactions": interactions, "level": level}
    first = _core.FirstNames(bits)
    blocks = read(data, "vw", first=first, threads=threads, block_bytes=block_bytes, **options)
    plain = read(data, "vw", **options)
    assert np.array_equal(keys_of(blocks), keys_of(plain))
    keys = keys_of(plain)
    for chosen in (keys, keys[::2], keys[:0]):
        assert as_dict(*first.of(chosen)) == second_reading(data, chosen, **options)
    assert not first.full


@pytest.mark.parametrize("bits", [0, 20, 30])
def test_many_names_of_several_files(bits):
    rng = np.random.default_rng(0)
    files = [
        b"".join(
            b"1 |n " + b" ".join(b"f%d" % i for i in rng.integers(0, 200_000, 50)) + b"\n"
            for _ in range(4000)
        )
        for _ in range(2)
    ]
    first = _core.FirstNames(bits)
    blocks = [
        block
        for data in files
        for block in read(data, "vw", first=first, bits=bits, threads=3, block_bytes=1 << 16)
    ]
    keys = keys_of(blocks)
    assert len(first) == len(keys) > 100_000
    assert as_dict(*first.of(keys)) == second_reading(b"".join(files), keys, bits=bits)


def test_one_parser_reports_more_names_than_it_remembers():
    count = 300_000  # it remembers 262,144
    data = b"1 |n " + b" ".join(b"f%d" % i for i in range(count)) + b"\n"
    first = _core.FirstNames()
    reader = _core.Reader(io.BytesIO(2 * data), "vw", first=first, block_bytes=len(data))
    keys = keys_of(list(iter(reader.next, None)))
    assert len(first) == len(keys) == count
    found = as_dict(*first.of(keys))
    assert all(found[_core.hash_name(b"n^f%d" % i)] == b"n^f%d" % i for i in range(count))


@pytest.mark.parametrize("bits", [0, 20])
def test_the_feature_of_key_0_has_its_first_name(bits):
    data = b"1 |n 0 a:1\n1 |m x\n1 |n 0 | 0\n"
    key = _core.hash_name(b"n^0") & ((1 << bits) - 1 or 2**64 - 1)
    a, b = oracle.SALT[0] ^ 1, oracle.SALT[1] ^ oracle.SALT[2]  # their product has the key 0
    data += b"1 | %d %d\n1 | %d %d\n" % (a, b, a, b)
    options = {"bits": bits, "interactions": [b"::"], "block_bytes": 40}
    first = _core.FirstNames(bits)
    keys = keys_of(read(data, "vw", first=first, **options))
    assert keys[0] == 0
    assert as_dict(*first.of(keys)) == second_reading(data, keys, **options)
    found = as_dict(*first.of(np.array([0, key], np.uint64)))
    assert found == {0: b"%d*%d" % (a, b), key: b"n^0"}


def test_keys_far_apart_and_close_together():
    """Of the keys asked for, many have the same highest bits, and many have no name."""
    first = _core.FirstNames(18)
    data = b"1 |n " + b" ".join(b"f%d" % i for i in range(5000)) + b"\n"
    keys = keys_of(read(data, "vw", first=first, bits=18))
    names = as_dict(*first.of(keys))
    assert len(names) == len(keys) > 4000
    every = np.arange(1 << 18, dtype=np.uint64)
    for asked in (np.append(keys, 2**63), every, every[::3], np.append(every[::7], 2**64 - 1)):
        wanted = {key: names[key] for key in asked.tolist() if key in names}
        assert as_dict(*first.of(asked.astype(np.uint64))) == wanted


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_too_many_names_are_dropped(threads):
    data = b"1 |n " + b" ".join(b"f%d" % i for i in range(20_000)) + b"\n"
    first = _core.FirstNames(0, most_bytes=100_000)
    (block,) = read(data, "vw", first=first, threads=threads)
    assert first.full
    assert len(first) == 0
    assert not len(first.of(keys_of([block]))[0])
    assert not read(data, "vw", first=first)[0].names
    odd = b"1 |n a:1e2 :3 b\tc f1\n"  # also of features that are not read fast
    for level in ("auto", "portable", "none"):
        (block,) = read(odd, "vw", first=first, level=level, interactions=[b"nn"])
        (plain,) = read(odd, "vw", level=level, interactions=[b"nn"])
        assert block.keys.tolist() == plain.keys.tolist()
        assert (block.names, len(first)) == ([], 0)


@pytest.mark.parametrize("bits", [0, 18])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_only_names_of_the_blocks_returned_count(bits, threads):
    data = b"".join(b"1 |n a%d b%d\n" % (i, i) for i in range(5000))
    first = _core.FirstNames(bits)
    reader = _core.Reader(
        io.BytesIO(data), "vw", first=first, bits=bits, threads=threads, block_bytes=1000
    )
    blocks = []
    for _ in range(3):
        blocks.append(reader.next())
        keys = keys_of(blocks)
        assert np.array_equal(first.keys(), keys)
        assert len(first) == len(keys)
        time.sleep(0.02)  # other threads read ahead
    reader.close()
    assert np.array_equal(first.keys(), keys)


def test_names_are_wanted_until_they_are_found():
    data = b"1 |n a b\n1 |n b c\n"
    a, b, c = (_core.hash_name(b"n^" + name) for name in (b"a", b"b", b"c"))
    wanted = _core.WantedNames(np.array([a, b, b, 7], np.uint64))
    assert (wanted.missing, sorted(wanted.keys.tolist())) == (3, sorted([a, b, 7]))
    one, two = read(data, "vw", names_again=True, block_bytes=8)
    wanted.take(one)
    assert (wanted.missing, wanted.keys.tolist()) == (1, [7])
    other = _core.make_block(
        np.array([0, 0]), np.zeros(0, int), np.zeros(0), names=[(b, b"later"), (c, b"unwanted")]
    )
    wanted.take(other)
    wanted.take(two)
    assert (wanted.missing, wanted.found) == (1, {a: b"n^a", b: b"n^b"})
    table = _core.NameTable()
    for block in (one, other, two):
        table.take(block)
    assert table.names == {a: b"n^a", b: b"n^b", c: b"unwanted"}
    table.retain(np.array([7, b, b, c], np.uint64))
    assert table.names == {b: b"n^b", c: b"unwanted"}
    table.retain(np.zeros(0, np.uint64))
    assert len(table) == 0


@pytest.mark.parametrize("level", ["auto", "portable", "none"])
def test_blocks_have_all_their_names_or_new_ones(level):
    """With `names_again`, each block has all its names; otherwise a parser omits what it had."""
    data = b"1 |n a b:1e3\n" * 2
    for again, second in ((True, [b"n^a", b"n^b"]), (False, [])):
        given = {"names_again": True} if again else {"names": True}
        one, two = read(data, "vw", block_bytes=14, level=level, **given)
        assert [name for _, name in one.names] == [b"n^a", b"n^b"]
        assert [name for _, name in two.names] == second


def test_only_one_way_to_ask_for_names():
    with pytest.raises(ValueError, match="only one of names"):
        read(b"1 |a b\n", "vw", first=_core.FirstNames(), names=True)
