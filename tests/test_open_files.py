"""Paths of files that are open, such as /dev/stdout: they are written to where they are."""

import os
import subprocess
import sys

import pytest

from thresher.atomic import check_place

STREAMS = [
    *("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "//dev/stdout"),
    "link to a link",
]


@pytest.mark.parametrize("name", STREAMS)
def test_an_open_file_is_written_to_where_it_is(tmp_path, name):
    """The shell has opened it: it may hold other text, and more may follow."""
    links = tmp_path / "links"
    links.mkdir()
    (links / "a").symlink_to("/dev/stdout")
    (links / "b").symlink_to("a")
    name = str(links / "b") if name == "link to a link" else name
    path = tmp_path / "log"
    path.write_text("before\n")
    code = f"from thresher.atomic import check_place, write_whole; check_place({name!r});"
    code += f"write_whole({name!r}, b'one\\n'); write_whole({name!r}, b'two\\n')"
    with open(path, "ab") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, check=True)
    assert path.read_text() == "before\none\ntwo\n"
    assert sorted(os.listdir(tmp_path)) == ["links", "log"]


def test_an_open_file_that_cannot_be_written(tmp_path):
    path = tmp_path / "rows"
    path.touch()
    with open(path) as file, pytest.raises(OSError, match="open for reading, not for writing"):
        check_place(f"/dev/fd/{file.fileno()}")


def test_an_open_file_that_is_not_open():
    for name in ("/dev/fd/987", "/dev/stdout/a"):
        with pytest.raises(OSError, match=r"No such file|there is no folder|cannot be written"):
            check_place(name)
