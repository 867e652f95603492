"""Names collected while text is read: the first name of each feature, as a second reading finds."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
)
def test_names_equal_those_of_a_second_reading(data, bits, interactions, threads, block_bytes):
    options = {"bits": bits, "interactions": interactions}
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


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_too_many_names_are_dropped(threads):
    data = b"1 |n " + b" ".join(b"f%d" % i for i in range(20_000)) + b"\n"
    first = _core.FirstNames(0, most_bytes=100_000)
    (block,) = read(data, "vw", first=first, threads=threads)
    assert first.full
    assert len(first) == 0
    assert not len(first.of(keys_of([block]))[0])
    assert not read(data, "vw", first=first)[0].names


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


def test_only_one_way_to_ask_for_names():
    with pytest.raises(ValueError, match="only one of names"):
        read(b"1 |a b\n", "vw", first=_core.FirstNames(), names=True)
