"""Opening pipes and files: peeking at a pipe loses no bytes."""

import gzip
import io
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from support.byte_streams import read_all
from thresher.data.detect import detect_format
from thresher.data.file_watch import FileWatch
from thresher.data.open_streams import open_bytes, open_seekable
from thresher.errors import ParameterError


def test_peeking_at_standard_input_loses_nothing(monkeypatch):
    text = b"1 |f a b\n" * 20_000
    for sent in (text, gzip.compress(text)):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(sent)))
        assert detect_format("-") == "vw"
        with open_bytes("-") as stream:
            assert (stream.size, stream.rereadable, stream.seekable_plain) == (None, False, False)
            assert stream.read() == text
        assert not sys.stdin.buffer.closed


def test_peeking_at_a_named_pipe_loses_nothing(tmp_path):
    text = b"1 3:0.5\n" * 40_000
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[gzip.compress(text)])
    writer.start()
    assert detect_format(str(path)) == "svmlight"
    assert read_all(path) == (text, None)
    writer.join()


def test_only_regular_files_can_be_compared_with_what_they_were(tmp_path):
    (path := tmp_path / "rows").write_text("1 1:1\n")
    os.mkfifo(pipe := tmp_path / "pipe")
    before = FileWatch(str(path), True, True).status()
    assert before[0] == 6
    path.write_text("1 1:10\n")
    assert FileWatch(str(path), True, True).status() != before
    for other in (pipe, tmp_path, tmp_path / "none", "/dev/null"):
        assert FileWatch(str(other), True, True).status() is None
    assert FileWatch(str(path), False, True).status() is None


def test_columnar_formats_need_plain_files(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(gzip.compress(b"PAR1"))
    with pytest.raises(ParameterError, match="compressed with gzip; decompress it first"):
        open_seekable(str(path))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"PAR1")))
    with pytest.raises(ParameterError, match="cannot be read from a pipe"):
        open_seekable("-")
