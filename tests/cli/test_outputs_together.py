"""Commands that write several files: if one cannot be written, all are as before."""

import errno
import itertools
import os

import pytest

from support.files import called, svmlight
from support.syncs import watched

_RACE = ("--rule", "auto", "--html", "page", "--seed", "1")
COMMANDS = {
    "tune": ("tune", "rows", "-m", "model", "--html", "page", "--grid", "l1=0,1"),
    "discover": (
        *("discover", "rows", "-m", "model", "--html", "page", "--csv", "csv"),
        *("--json", "json"),
    ),
    "train": ("train", "rows", "-m", "model", *_RACE),
    "compare": (
        *("compare", "rows", "-o", "results", "--html", "page", "--rules", "ftrl"),
        *("--orders", "1", "--folds", "2"),
    ),
}
OUTPUTS = {"model", "page", "csv", "json", "results"}


@pytest.mark.parametrize("command", COMMANDS)
def test_all_files_or_none(tmp_path, monkeypatch, command):
    """The disk becomes full before the first, the second, ... file is complete."""
    monkeypatch.chdir(tmp_path)
    svmlight(tmp_path / "rows", rows=60, features=20)
    words = COMMANDS[command]
    outputs = [word for word in words if word in OUTPUTS]
    for name in outputs:
        (tmp_path / name).write_bytes(b"old")
    before = sorted(os.listdir())
    for number in itertools.count(1):
        files = []

        def full(path, files=files, number=number):
            files.extend([path] * (not os.path.isdir(path)))
            return errno.ENOSPC if len(files) >= number else 0

        with monkeypatch.context() as patch:
            watched(patch, full)
            done = called(*words, "--quiet", code=None)
        if len(files) < number:
            break
        assert done.returncode == 1
        assert done.stderr.endswith(": No space left on device\n")
        assert [(tmp_path / name).read_bytes() for name in outputs] == [b"old"] * len(outputs)
        assert sorted(os.listdir()) == before
    assert number == len(outputs) + 1
    assert done.returncode == 0
    assert all((tmp_path / name).read_bytes() != b"old" for name in outputs)
