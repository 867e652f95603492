"""Paths: files, globs, standard input and remote files."""

import gzip
import io
import os
import sys
from types import SimpleNamespace

import pytest

from thresher.data.detect import detect_format
from thresher.data.open_streams import open_bytes, open_seekable
from thresher.data.paths import expand
from thresher.errors import ParameterError


def test_globs_are_sorted_and_files_keep_their_order(tmp_path):
    for name in ("b.vw", "a.vw", "c.svm", "sub/d.vw"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = expand([tmp_path / "c.svm", str(tmp_path / "*.vw"), "-"])
    assert [os.path.basename(name) for name in names] == ["c.svm", "a.vw", "b.vw", "-"]
    assert len(expand(str(tmp_path / "**/*.vw"))) == 3
    assert str(tmp_path / "sub") not in expand(str(tmp_path / "*"))  # without folders


def test_an_existing_file_is_not_a_glob(tmp_path):
    (tmp_path / "a[1].vw").touch()
    assert expand(tmp_path / "a[1].vw") == [str(tmp_path / "a[1].vw")]


def test_paths_that_are_not_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.vw: no such file"):
        expand(tmp_path / "missing.vw")
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*\.none"):
        expand(tmp_path / "*.none")
    with pytest.raises(ParameterError, match="more than once"):
        expand(["-", "-"])


@pytest.mark.parametrize("depth", [1, 2])
def test_folders_of_folders_of_texts(tmp_path, depth):
    for group in ("space", "cars"):
        folder = tmp_path.joinpath(*["news"] * (depth - 1), group)
        folder.mkdir(parents=True)
        (folder / "51121").write_text("The orbit of the moon, and a car.")
    (tmp_path / ".DS_Store").touch()
    for path in (tmp_path, tmp_path / "*"):
        with pytest.raises(
            ParameterError, match=r"(has|matches) folders of files; .* see docs/text\.md$"
        ):
            expand(path)


def test_folders_of_data_files(tmp_path):
    (tmp_path / "rows" / "year=2024").mkdir(parents=True)
    (tmp_path / "rows" / "year=2024" / "a.csv.gz").touch()
    with pytest.raises(ParameterError, match=r"with '.*rows/\*/\*'$"):
        expand(tmp_path / "rows")
    with pytest.raises(ParameterError, match=r"matches only folders; .* with '.*\*/\*/\*'$"):
        expand(tmp_path / "*")


def test_folders_without_files(tmp_path):
    (tmp_path / "one" / "two").mkdir(parents=True)
    with pytest.raises(ParameterError, match="is a folder without files"):
        expand(tmp_path)
    (tmp_path / "README").touch()
    with pytest.raises(ParameterError, match=r"is a folder; name its files, .*/\*'"):
        expand(tmp_path)


def test_remote_paths_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ParameterError, match=r"s3://bucket/a\.vw: .* pip install fsspec"):
        expand("s3://bucket/a.vw")


class Memory:
    """A file system of fsspec, in memory."""

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
