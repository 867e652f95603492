"""Paths, packed files and formats: what is opened is what was written, and damage has a place."""

import bz2
import gzip
import io
import lzma
import os
import random
import sys
import threading
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.data import byte_stream
from thresher.data.byte_stream import BinaryStream
from thresher.data.detect import detect_format
from thresher.data.open_streams import open_bytes, open_seekable, peek_bytes
from thresher.data.paths import expand
from thresher.errors import DataError, ParameterError


def zstd_packed(data, **options):
    zstandard = pytest.importorskip("zstandard", reason="needs the extra zstd")
    return zstandard.ZstdCompressor(level=3, **options).compress(data)


def xz_packed(data):
    return lzma.compress(data, preset=1)


PACK = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": xz_packed, "zstandard": zstd_packed}


@pytest.fixture(params=PACK)
def packing(request):
    if request.param == "zstandard":
        pytest.importorskip("zstandard", reason="needs the extra zstd")
    return request.param


def words(size, seed=0):
    draw = random.Random(seed)
    return b" ".join(b"w%d:%.3f" % (draw.randrange(10**6), draw.random()) for _ in range(size))


def read(path, room=10_007):
    """Return all that is delivered, and the error that follows it, if one does."""
    parts, buffer = [], bytearray(room)
    with open_bytes(str(path)) as stream:
        try:
            while count := stream.readinto(buffer):
                parts.append(bytes(buffer[:count]))
        except DataError as error:
            with pytest.raises(DataError):  # it stays so
                stream.readinto(buffer)
            return b"".join(parts), str(error)
    return b"".join(parts), None


# --- paths ----------------------------------------------------------------------------------------


def test_globs_are_sorted_and_files_kept_in_the_order_they_are_named(tmp_path):
    for name in ("b.vw", "a.vw", "c.svm", "sub/d.vw"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = expand([tmp_path / "c.svm", str(tmp_path / "*.vw"), "-"])
    assert [os.path.basename(name) for name in names] == ["c.svm", "a.vw", "b.vw", "-"]
    assert len(expand(str(tmp_path / "**/*.vw"))) == 3
    assert str(tmp_path / "sub") not in expand(str(tmp_path / "*"))  # folders are no files


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path):
    (tmp_path / "a[1].vw").touch()
    assert expand(tmp_path / "a[1].vw") == [str(tmp_path / "a[1].vw")]


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.vw: no such file"):
        expand(tmp_path / "missing.vw")
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*\.none"):
        expand(tmp_path / "*.none")
    with pytest.raises(ParameterError, match=r"is a folder; .*/\*'"):
        expand(tmp_path)
    with pytest.raises(ParameterError, match="more than once"):
        expand(["-", "-"])


def test_remote_paths_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ParameterError, match=r"s3://bucket/a\.vw: .* pip install fsspec"):
        expand("s3://bucket/a.vw")


class Memory:
    """Files in memory as fsspec has them."""

    def __init__(self, files):
        self.files = files

    def exists(self, path):
        return path in self.files or self.isdir(path)

    def isdir(self, path):
        return any(file.startswith(path.rstrip("/") + "/") for file in self.files)

    def glob(self, pattern):
        return [file for file in reversed(self.files) if file.startswith(pattern.rstrip("*"))]

    def size(self, path):
        return len(self.files[path])

    def open(self, path, mode):
        return io.BytesIO(self.files[path])

    def unstrip_protocol(self, path):
        return f"memory://{path}"


@pytest.fixture
def remote(monkeypatch):
    files = {"d/a.vw.gz": gzip.compress(b"1 |f a\n"), "d/b.vw": b"1 |f b\n"}
    core = SimpleNamespace(
        url_to_fs=lambda url: (Memory(dict(files)), url.removeprefix("memory://"))
    )
    monkeypatch.setitem(sys.modules, "fsspec", SimpleNamespace(core=core))
    return files


def test_remote_files(remote):
    assert expand("memory://d/*") == ["memory://d/a.vw.gz", "memory://d/b.vw"]
    assert expand("memory://d/b.vw") == ["memory://d/b.vw"]
    with open_bytes("memory://d/a.vw.gz") as stream:
        assert stream.read() == b"1 |f a\n"
        assert stream.size == stream.raw_position == len(remote["d/a.vw.gz"])
        assert stream.rereadable
        assert not stream.seekable_plain
    assert detect_format("memory://d/b.vw") == "vw"
    assert open_seekable("memory://d/b.vw").read() == b"1 |f b\n"
    with pytest.raises(FileNotFoundError, match="memory://d/c: no such file"):
        expand("memory://d/c")
    with pytest.raises(FileNotFoundError, match=r"no file matches memory://e/\*"):
        expand("memory://e/*")
    with pytest.raises(ParameterError, match="is a folder"):
        expand("memory://d")


# --- unpacking ------------------------------------------------------------------------------------


def test_packed_whatever_the_file_is_called(tmp_path, packing):
    data = words(60_000)
    path = tmp_path / "plain.txt"
    path.write_bytes(PACK[packing](data))
    with open_bytes(str(path)) as stream:
        assert (stream.compression, stream.seekable_plain) == (packing, False)
        assert stream.size == path.stat().st_size
        assert stream.read() == data
        assert stream.raw_position == stream.size
    assert read(path) == (data, None)


@given(
    parts=st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    room=st.integers(1, 400),
    padding=st.integers(0, 3),
    piece=st.integers(1, 64),
)
@pytest.mark.parametrize("kind", PACK)
def test_several_members_are_one_file(tmp_path_factory, kind, parts, room, padding, piece):
    padded = {"gzip": b"\0" * padding, "xz": b"\0" * 4 * padding}.get(kind, b"")
    path = tmp_path_factory.mktemp("members") / "packed"
    path.write_bytes(padded.join(map(PACK[kind], parts)) + padded)
    before = byte_stream._PIECE
    byte_stream._PIECE = piece
    try:
        assert read(path, room) == (b"".join(parts), None)
    finally:
        byte_stream._PIECE = before


def test_plain_and_empty_files(tmp_path):
    path = tmp_path / "plain"
    path.write_bytes(b"")
    assert read(path) == (b"", None)
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
    tiny = zstd_packed(b"x", write_content_size=True)
    path = tmp_path / "frames.zst"
    path.write_bytes(skipped + checked + tiny + skipped + zstd_packed(b"") + zstd_packed(data))
    assert read(path) == (data + b"x" + data, None)


def test_without_zstandard_the_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.zst"
    path.write_bytes(zstd_packed(b"text"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with open_bytes(str(path)) as stream, pytest.raises(ParameterError, match=r"thresher\[zstd\]"):
        stream.read()


def test_what_unpacks_to_far_more_costs_no_memory(tmp_path, packing):
    path = tmp_path / "bomb"
    path.write_bytes(PACK[packing](bytes(1 << 25)))
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


def test_cut_off(tmp_path, packing):
    data = words(60_000)
    packed = PACK[packing](data)
    for size in (len(packed) // 2, len(packed) - 1):
        path = tmp_path / f"{size}.vw"
        path.write_bytes(packed[:size])
        good, error = read(path)
        assert data.startswith(good)
        assert str(path) in error
        assert f"{packing} data is cut off near byte" in error
        assert f"; {len(good)} bytes were decompressed" in error
        place = int(error.split("near byte ")[1].split()[0])
        assert size - (1 << 18) <= place <= size
    assert len(good) >= len(data) - (1 << 20)


def test_bytes_that_follow(tmp_path, packing):
    data = words(10_000)
    path = tmp_path / "tail"
    packed = PACK[packing](data)
    path.write_bytes(packed + b"garbage")
    good, error = read(path)
    assert good == data
    assert f"near byte {len(packed)} of" in error
    assert "is followed by bytes that do not belong to it" in error


def test_changed_bytes(tmp_path, packing):
    data = words(80_000)
    packed = bytearray(PACK[packing](data))
    at = len(packed) * 2 // 3
    packed[at : at + 64] = random.Random(1).randbytes(64)
    path = tmp_path / "changed"
    path.write_bytes(packed)
    good, error = read(path)
    assert "is damaged (" in error
    assert f"; {len(good)} bytes were decompressed" in error
    # Bytes before the damage are there, but for the block that it is in.
    size = min(len(data), len(good))
    differ = np.flatnonzero(np.frombuffer(data[:size], "u1") != np.frombuffer(good[:size], "u1"))
    common = differ[0] if len(differ) else size
    assert common >= len(data) * 2 // 3 - 800_000
    if packing in ("gzip", "zstandard"):
        assert common >= len(data) * 2 // 3 - 300_000
        place = int(error.split("near byte ")[1].split()[0])
        assert at - (1 << 18) <= place
        assert read(path, room=1000) == (good, error)


def test_gzip_gives_all_up_to_a_wrong_checksum(tmp_path):
    data = words(1000)
    packed = bytearray(gzip.compress(data))
    packed[-6] ^= 1
    path = tmp_path / "checksum"
    path.write_bytes(packed)
    good, error = read(path)
    assert good == data
    assert "incorrect data check" in error


@given(data=st.binary(max_size=400), flips=st.lists(st.integers(0, 10**6), max_size=3))
@pytest.mark.parametrize("kind", PACK)
def test_damage_is_an_error_or_no_damage(tmp_path_factory, kind, data, flips):
    packed = bytearray(PACK[kind](data))
    for flip in flips:
        packed[flip // 8 % len(packed)] ^= 1 << flip % 8
    path = tmp_path_factory.mktemp("flips") / "packed"
    path.write_bytes(packed)
    read(path)  # nothing but a DataError


def test_a_disk_that_fails_is_no_damage(tmp_path, packing):
    path = tmp_path / "packed"
    path.write_bytes(PACK[packing](words(60_000)))

    class Failing(io.FileIO):
        def read(self, size=-1):
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(size)

    stream = BinaryStream(Failing(path), str(path), None, local=True, rereadable=True)
    with stream, pytest.raises(OSError, match="Input/output error"):
        stream.read()


# --- pipes ----------------------------------------------------------------------------------------


def test_standard_input_is_looked_at_without_loss(monkeypatch):
    text = b"1 |f a b\n" * 20_000
    for sent in (text, gzip.compress(text)):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(sent)))
        assert detect_format("-") == "vw"
        with open_bytes("-") as stream:
            assert (stream.size, stream.rereadable, stream.seekable_plain) == (None, False, False)
            assert stream.read() == text
        assert not sys.stdin.buffer.closed


def test_a_named_pipe_is_looked_at_without_loss(tmp_path):
    text = b"1 3:0.5\n" * 40_000
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[gzip.compress(text)])
    writer.start()
    assert detect_format(str(path)) == "svmlight"
    assert read(path) == (text, None)
    writer.join()


def test_columnar_formats_need_plain_files(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(gzip.compress(b"PAR1"))
    with pytest.raises(ParameterError, match="compressed with gzip; decompress it first"):
        open_seekable(str(path))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"PAR1")))
    with pytest.raises(ParameterError, match="cannot be read from a pipe"):
        open_seekable("-")


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"\x89TCache\n\0\1", "cache"),
        (b"PAR1\x15", "parquet"),
        (b"ARROW1\0\0", "arrow"),
        (b"1 |f a:0.5 b\n", "vw"),
        (b"| a b\n", "vw"),
        (b"\n\n-1 0.5 'tag |user u17 |ad a3\n", "vw"),
        (b"1 tag|user u17\n", "vw"),
        (b"|user:0.5 12:3\n", "vw"),
        (b"1 3:0.5 17:1e-3\r\n-1 4:1\r\n", "svmlight"),
        (b"# made today\n+1 qid:3 1:2 # first\n", "svmlight"),
        (b"2 5 3\n1,2 3:0.5\n 4:1\n0 1:1\n", "svmlight"),
        (b"1\t3:0.5\n", "svmlight"),
        (b"1 3:0.5\n1 x:0.5\n1 4:1\n", "svmlight"),  # the reader names the bad line
        (b"age,city,label\n31,Rome,1\n", "csv"),
        (b"age\tlabel\n31\t1\n", "csv"),
        (b"\xef\xbb\xbfid;label\n31;1\n", "csv"),
        (b"time,label\n12:30,1\n", "csv"),
        (b"text,label\nleft | right,1\n", "csv"),
        (b"", "svmlight"),
    ],
)
def test_format_by_the_bytes(tmp_path, text, expected):
    for name, data in (("clicks", text), ("wrong.gz", gzip.compress(text))):
        path = tmp_path / name
        path.write_bytes(data)
        assert detect_format(str(path)) == expected


@pytest.mark.parametrize("text", [b"hello world\n", b"1\n0\n", b"a|b|c\n1|2|3\n"])
def test_format_that_is_not_clear(tmp_path, text):
    path = tmp_path / "clicks"
    path.write_bytes(text)
    with pytest.raises(DataError, match=r"clicks: .*name it with format, one of svmlight, vw, csv"):
        detect_format(str(path))
    named = tmp_path / "clicks.vw.gz"
    named.write_bytes(gzip.compress(text))
    assert detect_format(str(named)) == "vw"  # then its name tells


def test_a_line_longer_than_what_is_looked_at(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(b"1 " + b" ".join(b"%d:1" % i for i in range(1, 40_000)))
    assert len(peek_bytes(str(path), 1 << 16)) < path.stat().st_size
    assert detect_format(str(path)) == "svmlight"
