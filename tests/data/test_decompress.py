"""Compressed files: all bytes are read, and the error about damage names the place."""

import bz2
import gzip
import io
import lzma
import random
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.byte_streams import read_all
from thresher.data import byte_stream
from thresher.data.byte_stream import BinaryStream
from thresher.data.open_streams import open_bytes
from thresher.data.scan import scan
from thresher.errors import DataError, ParameterError


def zstd_compressed(data, **options):
    zstandard = pytest.importorskip("zstandard", reason="needs the extra zstd")
    return zstandard.ZstdCompressor(level=3, **options).compress(data)


def xz_compressed(data):
    return lzma.compress(data, preset=1)


COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": xz_compressed,
    "zstandard": zstd_compressed,
}


@pytest.fixture(params=COMPRESS)
def compression(request):
    if request.param == "zstandard":
        pytest.importorskip("zstandard", reason="needs the extra zstd")
    return request.param


def words(size, seed=0):
    draw = random.Random(seed)
    return b" ".join(b"w%d:%.3f" % (draw.randrange(10**6), draw.random()) for _ in range(size))


def test_a_position_after_the_end_of_a_shorter_file(tmp_path):
    path = tmp_path / "rows.vw.gz"
    text = b"".join(b"1 |a w%d x:%d\n" % (i, i) for i in range(60_000))
    path.write_bytes(gzip.compress(text, 1))
    first, *_, last = (block.end for block in scan(path, threads=1).blocks())
    assert first.offset < len(text) // 2 + 500_000 < last.offset
    path.write_bytes(gzip.compress(text[: len(text) // 2], 1))
    with pytest.raises(DataError, match=r"rows\.vw\.gz: the input has changed: it is shorter"):
        list(scan(path, threads=1).blocks(last))


def test_the_name_does_not_decide_the_compression(tmp_path, compression):
    data = words(60_000)
    path = tmp_path / "plain.txt"
    path.write_bytes(COMPRESS[compression](data))
    with open_bytes(str(path)) as stream:
        assert (stream.compression, stream.seekable_plain) == (compression, False)
        assert stream.size == path.stat().st_size
        assert stream.read() == data
        assert stream.raw_position == stream.size
    assert read_all(path) == (data, None)


@given(
    parts=st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    room=st.integers(1, 400),
    padding=st.integers(0, 3),
    piece=st.integers(1, 64),
)
@pytest.mark.parametrize("kind", COMPRESS)
def test_several_members_are_one_file(tmp_path_factory, kind, parts, room, padding, piece):
    padded = {"gzip": b"\0" * padding, "xz": b"\0" * 4 * padding}.get(kind, b"")
    path = tmp_path_factory.mktemp("members") / "compressed"
    path.write_bytes(padded.join(map(COMPRESS[kind], parts)) + padded)
    before = byte_stream._PIECE
    byte_stream._PIECE = piece
    try:
        assert read_all(path, room) == (b"".join(parts), None)
    finally:
        byte_stream._PIECE = before


def test_plain_and_empty_files(tmp_path):
    path = tmp_path / "plain"
    path.write_bytes(b"")
    assert read_all(path) == (b"", None)
    data = words(50_000)
    path.write_bytes(data)
    with open_bytes(str(path)) as stream:
        assert stream.seekable_plain
        assert stream.peek(5)[:5] == data[:5]
        assert stream.read() == data
    assert stream.closed


def test_zstandard_frames_of_all_kinds(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="needs the extra zstd")
    data = words(60_000)
    skipped = b"\x53\x2a\x4d\x18" + (200_000).to_bytes(4, "little") + bytes(200_000)
    stream = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    checked = stream.compress(data) + stream.flush()
    tiny = zstd_compressed(b"x", write_content_size=True)
    path = tmp_path / "frames.zst"
    path.write_bytes(
        skipped + checked + tiny + skipped + zstd_compressed(b"") + zstd_compressed(data)
    )
    assert read_all(path) == (data + b"x" + data, None)


def test_without_zstandard_the_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.zst"
    path.write_bytes(zstd_compressed(b"text"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with open_bytes(str(path)) as stream, pytest.raises(ParameterError, match=r"thresher\[zstd\]"):
        stream.read()


def test_a_file_that_decompresses_to_gigabytes_needs_little_memory(tmp_path, compression):
    path = tmp_path / "bomb"
    path.write_bytes(COMPRESS[compression](bytes(1 << 25)))
    buffer = bytearray(1 << 16)
    with open_bytes(str(path)) as stream:
        tracemalloc.start()
        total = 0
        while count := stream.readinto(buffer):
            total += count
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert total == 1 << 25
    assert peak < 4 << 20  # xz: a window of 1 MiB


# --- damage ---------------------------------------------------------------------------------------


def test_truncated_file(tmp_path, compression):
    data = words(60_000)
    compressed = COMPRESS[compression](data)
    for size in (len(compressed) // 2, len(compressed) - 1):
        path = tmp_path / f"{size}.vw"
        path.write_bytes(compressed[:size])
        good, error = read_all(path)
        assert data.startswith(good)
        assert str(path) in error
        assert f"{compression} data is cut off near byte" in error
        assert f"; {len(good)} bytes were decompressed" in error
        place = int(error.split("near byte ")[1].split()[0])
        assert size - (1 << 18) <= place <= size
    assert len(good) >= len(data) - (1 << 20)


def test_bytes_after_the_compressed_data(tmp_path, compression):
    data = words(10_000)
    path = tmp_path / "tail"
    compressed = COMPRESS[compression](data)
    path.write_bytes(compressed + b"garbage")
    good, error = read_all(path)
    assert good == data
    assert f"near byte {len(compressed)} of" in error
    assert "is followed by bytes that do not belong to it" in error


def test_changed_bytes(tmp_path, compression):
    data = words(80_000)
    compressed = bytearray(COMPRESS[compression](data))
    at = len(compressed) * 2 // 3
    compressed[at : at + 64] = random.Random(1).randbytes(64)
    path = tmp_path / "changed"
    path.write_bytes(compressed)
    good, error = read_all(path)
    assert "is damaged (" in error
    assert f"; {len(good)} bytes were decompressed" in error
    # Bytes before the damage are read, except those of the damaged block.
    size = min(len(data), len(good))
    differ = np.flatnonzero(np.frombuffer(data[:size], "u1") != np.frombuffer(good[:size], "u1"))
    common = differ[0] if len(differ) else size
    assert common >= len(data) * 2 // 3 - 800_000
    if compression in ("gzip", "zstandard"):
        assert common >= len(data) * 2 // 3 - 300_000
        place = int(error.split("near byte ")[1].split()[0])
        assert at - (1 << 18) <= place
        assert read_all(path, room=1000) == (good, error)


def test_gzip_returns_all_bytes_before_a_wrong_checksum(tmp_path):
    data = words(1000)
    compressed = bytearray(gzip.compress(data))
    compressed[-6] ^= 1
    path = tmp_path / "checksum"
    path.write_bytes(compressed)
    good, error = read_all(path)
    assert good == data
    assert "incorrect data check" in error


@given(data=st.binary(max_size=400), flips=st.lists(st.integers(0, 10**6), max_size=3))
@pytest.mark.parametrize("kind", COMPRESS)
def test_damage_raises_only_data_errors(tmp_path_factory, kind, data, flips):
    compressed = bytearray(COMPRESS[kind](data))
    for flip in flips:
        compressed[flip // 8 % len(compressed)] ^= 1 << flip % 8
    path = tmp_path_factory.mktemp("flips") / "compressed"
    path.write_bytes(compressed)
    read_all(path)  # raises no other error than DataError


def test_a_disk_error_is_not_reported_as_damage(tmp_path, compression):
    path = tmp_path / "compressed"
    path.write_bytes(COMPRESS[compression](words(60_000)))

    class Failing(io.FileIO):
        def read(self, size=-1):
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(size)

    stream = BinaryStream(Failing(path), str(path), None, local=True, rereadable=True)
    with stream, pytest.raises(OSError, match="Input/output error"):
        stream.read()
