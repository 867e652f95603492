"""The checkpoint of a complete run is removed when the results are on the disk."""

import errno
import os

import pytest

from support.files import called, svmlight
from support.syncs import of_folders, watched
from thresher.training.checkpoint import finish
from thresher.training.observer import Observer


class Warned(Observer):
    """Keeps the warnings."""

    def __init__(self):
        self.heard = []

    def warn(self, message, category=UserWarning):
        self.heard.append(message)


@pytest.mark.parametrize(("code", "kept"), [(0, False), (errno.EINVAL, False), (errno.EIO, True)])
def test_a_result_that_may_not_be_on_the_disk(tmp_path, monkeypatch, code, kept):
    (tmp_path / "results").mkdir()
    model, checkpoint = tmp_path / "results" / "model", tmp_path / "checkpoint"
    model.write_bytes(b"model")
    checkpoint.write_bytes(b"checkpoint")
    observer = Warned()
    found = watched(monkeypatch, of_folders(code))
    finish(checkpoint, observer, [str(model), None], keep=False)
    assert found == [str(model), str(model.parent)]
    assert checkpoint.exists() == kept
    assert len(observer.heard) == kept
    assert not kept or str(model.parent) in observer.heard[0]


@pytest.mark.parametrize("keep", [False, True])
def test_files_of_killed_processes_are_removed(tmp_path, keep):
    """A process that is killed between naming a complete file and renaming it leaves that file."""
    files = [tmp_path / name for name in ("model", "checkpoint")]
    left = [tmp_path / f"{file.name}.{7:016x}.part" for file in files]
    other = tmp_path / "other.part"
    for file in (*files, *left, other):
        file.write_bytes(b"content")
    finish(files[1], Warned(), [str(files[0]), None], keep)
    assert set(tmp_path.iterdir()) == {files[0], other, *files[1 : 1 + keep]}


@pytest.mark.parametrize(
    "command",
    [
        ("train", "bad", "--on-bad-line", "quarantine=aside"),
        ("tune", "bad", "--on-bad-line", "quarantine=aside", "--html", "page", "--grid", "l1=0,1"),
        ("discover", "bad", "--on-bad-line", "quarantine=aside", "--csv", "page"),
    ],
    ids=lambda words: words[0],
)
def test_commands_keep_it(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    svmlight(tmp_path / "rows", rows=60, features=20)
    (tmp_path / "bad").write_bytes(b"1 x\n" + (tmp_path / "rows").read_bytes())
    words = (*command, "-m", "model", "--quiet", "--checkpoint", "run", "--every", "0s")
    with monkeypatch.context() as patch:
        watched(patch, lambda path: errno.EIO * os.path.isdir(path) * os.path.exists("model"))
        done = called(*words)
    assert "the checkpoint run is kept" in done.stderr
    assert os.path.exists("run")
    found = watched(monkeypatch)
    called(*words)
    results = {"model", "aside", *({"page"} & set(command))}
    assert results <= {os.path.basename(path) for path in found}
    assert not os.path.exists("run")
