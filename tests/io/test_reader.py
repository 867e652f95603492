"""The reader of text: division into blocks, their order, resuming, and errors."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import text as oracle
from support.streams import learner
from support.text_cases import ShortReads, assert_same, read
from thresher import _core
from thresher.data.scan import scan


def facts(blocks):
    """Return all contents of blocks, which must not depend on threads and sources."""
    return [
        (b.offset, b.bytes, b.first_line, b.line_count, b.digest, b.rows, len(b.bad))
        for b in blocks
    ]


def text(rows: int, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(rows):
        keys = rng.integers(1, 60, rng.integers(0, 9))  # some repeat
        cells = " ".join(f"{k}:{rng.normal():.5f}" for k in keys)
        lines.append(f"{rng.choice([-1, 1])} {cells}")
    return "\n".join(lines).encode()


@given(
    st.lists(st.sampled_from([b"1 1:2\n", b"\n", b"1 3:4 5:6\r\n", b"x\n", b"1"])).map(b"".join),
    st.integers(1, 40),
)
def test_blocks_do_not_depend_on_threads_and_sources(data, block_bytes):
    blocks = read(data, "svmlight", block_bytes=block_bytes)
    assert_same(blocks, oracle.svmlight(data))
    assert sum(b.bytes for b in blocks) == len(data)
    line = 1
    for block in blocks:
        piece = data[block.offset : block.offset + block.bytes]
        assert piece.endswith(b"\n") or block is blocks[-1]
        assert len(piece) <= block_bytes or b"\n" not in piece[:block_bytes]
        assert block.digest == oracle.hash64(piece)
        assert (block.first_line, block.line_count) == (line, len(piece.splitlines()))
        line += block.line_count
    for threads in (1, 3):
        again = read(data, "svmlight", ShortReads(data), block_bytes=block_bytes, threads=threads)
        assert facts(again) == facts(blocks)
    # Reading resumes at any block, with the same blocks.
    for i, block in enumerate(blocks):
        place = {"offset": block.offset, "first_line": block.first_line}
        rest = read(data[block.offset :], "svmlight", block_bytes=block_bytes, **place)
        assert facts(rest) == facts(blocks[i:])


@pytest.mark.parametrize("threads", [1, 3])
def test_paths_are_read_from_an_offset(tmp_path, threads):
    data = text(2000)
    (path := tmp_path / "rows.svm").write_bytes(data)
    whole = read(data, "svmlight", block_bytes=4096)
    offset, first_line = whole[3].offset, whole[3].first_line
    reader = _core.Reader(
        None,
        "svmlight",
        path=str(path),
        offset=offset,
        first_line=first_line,
        block_bytes=4096,
        threads=threads,
    )
    rest = list(iter(reader.next, None))
    assert facts(rest) == facts(whole[3:])
    assert reader.next() is None


def test_missing_files_and_wrong_arguments(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.svm"):
        _core.Reader(None, "svmlight", path=str(tmp_path / "none.svm"))
    with pytest.raises(IsADirectoryError):
        _core.Reader(None, "svmlight", path=str(tmp_path)).next()
    with pytest.raises(ValueError, match="format"):
        _core.Reader(io.BytesIO(), "csv")
    with pytest.raises(ValueError, match="bits"):
        _core.Reader(io.BytesIO(), "vw", bits=63)
    with pytest.raises(ValueError, match="source or a path"):
        _core.Reader(None, "vw")
    with pytest.raises(AttributeError):
        _core.Reader(3, "vw")
    for wrong in ({"block_bytes": 0}, {"max_line": 0}, {"max_line": 1 << 30}):
        with pytest.raises(ValueError, match="block_bytes and max_line must be at least 1"):
            _core.Reader(io.BytesIO(), "vw", **wrong)


def test_a_span_of_a_path(tmp_path):
    (path := tmp_path / "rows.svm").write_bytes(b"1 1:1\n2 1:1\n3 1:1\n")
    for offset, end, labels in ((6, 12, [2]), (0, 6, [1]), (6, 6, []), (12, 6, []), (12, 99, [3])):
        reader = _core.Reader(None, "svmlight", path=str(path), offset=offset, end=end)
        found = [label for block in iter(reader.next, None) for label in block.labels]
        assert found == labels


def test_a_pipe_is_not_read_from_an_offset(tmp_path):
    os.mkfifo(path := tmp_path / "pipe")
    handle = os.open(path, os.O_RDWR)
    try:
        with pytest.raises(OSError, match="seek") as caught:
            _core.Reader(None, "vw", path=str(path), offset=3)
    finally:
        os.close(handle)
    assert (caught.value.errno, caught.value.filename) == (errno.ESPIPE, str(path))


@pytest.mark.parametrize("threads", [1, 3])
def test_long_lines_are_skipped(threads):
    long = b"1 " + b"7:1 " * 100
    data = b"1 1:1\n" + long + b"\n1 2:1\n" + b"1 5:1" + b" " * 95 + b"\n" + long
    options = {"max_line": 100, "block_bytes": 30, "threads": threads}
    blocks = read(data, "svmlight", **options)
    bad = [(b.first_line + x.line, x.column, x.what) for b in blocks for x in b.bad]
    assert bad == [(2, 101, "line longer than 100 bytes"), (5, 101, "line longer than 100 bytes")]
    lines = [b.line(r) for b in blocks for r in range(b.rows)]
    assert lines == [1, 3, 4]
    assert sum(b.bytes for b in blocks) == len(data)
    assert blocks[-1].first_line + blocks[-1].line_count == 6
    other = read(data.replace(b"7:1 \n", b"8:1 \n"), "svmlight", **options)
    assert [b.digest for b in other] != [b.digest for b in blocks]


def test_the_longest_line_allowed_is_32_mib():
    line = b"1 1:1 #" + b"c" * ((32 << 20) - 7)
    blocks = read(line + b"\n" + line + b"c\n1 2:1\n", "svmlight")
    assert [(b.rows, [x.what for x in b.bad]) for b in blocks] == [
        (1, []),
        (0, ["line longer than 32 MiB"]),
        (1, []),
    ]


class Failing:
    """A source that returns some lines, then raises an error."""

    def __init__(self, error: Exception) -> None:
        self.stream, self.error = io.BytesIO(b"1 1:1\n" * 100), error

    def readinto(self, buffer: memoryview) -> int:
        count = self.stream.readinto(buffer)
        if count < len(buffer):
            raise self.error
        return count


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_the_source_is_raised_after_the_blocks_before(threads):
    error = KeyError("torn")
    reader = _core.Reader(Failing(error), "svmlight", block_bytes=60, threads=threads)
    for _ in range(10):
        assert reader.next().rows == 10
    with pytest.raises(KeyError) as caught:
        reader.next()
    assert caught.value is error
    assert reader.next() is None


def test_readers_end_quickly_in_the_middle_of_a_file():
    before = threading.active_count()
    data = text(5000) + b"\n"
    for count in range(8):
        reader = _core.Reader(io.BytesIO(data * 4), "svmlight", block_bytes=256, threads=3)
        kept = [reader.next() for _ in range(count)]
        started = time.monotonic()
        if count % 2:
            reader.close()
            assert reader.next() is None
        del reader
        assert time.monotonic() - started < 1
        assert all(block.rows > 0 and block.values.size == block.starts[-1] for block in kept)
    assert threading.active_count() == before


@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_learning_from_blocks_equals_learning_from_the_matrix(store):
    data = text(300)
    cells = [line.split() for line in data.decode().splitlines()]
    pairs = [pair.split(":") for _, *row in cells for pair in row]
    keys = np.array([int(index) - 1 for index, _ in pairs], np.int32)
    values = np.array([float(value) for _, value in pairs], np.float32)
    starts = np.cumsum([0] + [len(row) - 1 for row in cells])
    labels = np.array([float(row[0]) for row in cells])
    whole, streamed = (learner("ftrl", 60, store=store, dtype="float32") for _ in range(2))
    whole.learn(_core.sparse_batch(starts, keys, values, 60, labels))
    for block in read(data, "svmlight", block_bytes=512, threads=3):
        streamed.learn(block.batch)
    for ours, theirs in zip(streamed.weights(), whole.weights(), strict=True):
        assert ours.size > 10
        np.testing.assert_array_equal(ours, theirs)
    assert streamed.intercept() == whole.intercept()


class Stalled:
    """A source that blocks until an event is set."""

    def __init__(self, data: bytes) -> None:
        self.stream, self.more = io.BytesIO(data), threading.Event()

    def readinto(self, buffer: memoryview) -> int:
        self.more.wait(60)
        return self.stream.readinto(buffer)


def test_waiting_can_raise_and_the_block_is_read_later():
    """If `waiting` raises, no block is lost: the next call returns it."""
    source, asked = Stalled(b"1 1:2\n" * 10), []

    def waiting():
        asked.append(threading.current_thread())
        if len(asked) < 4:
            raise InterruptedError

    reader = _core.Reader(source, "svmlight", threads=3, waiting=waiting)
    for _ in range(3):
        with pytest.raises(InterruptedError):
            reader.next()
    threading.Timer(0.3, source.more.set).start()
    assert reader.next().rows == 10
    assert reader.next() is None
    assert set(asked) == {threading.current_thread()}


def test_a_signal_ends_the_wait_for_threads():
    source = Stalled(b"1 1:2\n")
    reader = _core.Reader(source, "svmlight", threads=2)
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        reader.next()
    source.more.set()
    assert reader.next().rows == 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("packed", [False, True])
def test_reading_of_a_blocked_pipe_can_be_ended(tmp_path, threads, packed):
    """An exception, or closing the iterator, ends the threads that wait for the pipe."""
    pack = gzip.compress if packed else bytes
    path = tmp_path / "pipe.svm"
    os.mkfifo(path)
    for stops in (True, False):
        pipe = os.open(path, os.O_RDWR)  # stays open: the reader gets no end of file
        writer = threading.Thread(target=os.write, args=(pipe, pack(b"1 1:2\n" * 200_000)))
        writer.start()
        source = scan(path, threads=threads)
        blocks = source.blocks()
        assert next(blocks).rows > 1000
        began = time.monotonic()
        if stops:
            threading.Timer(0.2, setattr, [source, "stops", lambda: True]).start()
            with pytest.raises(KeyboardInterrupt):
                next(blocks)
        else:
            blocks.close()
        assert time.monotonic() - began < 30
        rest = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        while writer.is_alive():
            with contextlib.suppress(BlockingIOError):
                os.read(rest, 1 << 16)
        os.close(rest)
        os.close(pipe)
