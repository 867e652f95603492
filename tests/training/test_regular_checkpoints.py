"""Checkpoints that cannot be written: the run goes on, and warns once."""

import contextlib
import errno
import os
import resource

import pytest

import thresher
from support.files import svmlight
from thresher.errors import ModelFileError
from thresher.training import checkpoint as checkpoints
from thresher.training.observer import Observer


@contextlib.contextmanager
def limited(size):
    """Limit the size of files of this process, as on a full disk. Python ignores the signal."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Told(Observer):
    """Keeps what it is told; the disk is full until some passes are done."""

    def __init__(self, limit, passes):
        self.limit, self.passes, self.heard = limit, passes, []

    def tell(self, event, **facts):
        if event == "pass":
            self.passes -= 1
            if self.passes == 0:
                self.limit.close()
        if event in ("note", "checkpoint"):
            self.heard.append(facts.get("message", event))

    def warn(self, message, category=UserWarning):
        self.heard.append(str(message))


def test_a_full_disk_is_told_once_and_its_end_too(tmp_path):
    data, file = svmlight(tmp_path / "rows.svm", rows=60), tmp_path / "run"
    learner = thresher.FTRLClassifier(passes=6, random_state=0)
    with contextlib.ExitStack() as limit:
        limit.enter_context(limited(100))
        told = Told(limit, passes=3)
        learner.fit(thresher.scan(data), checkpoint=file, every=0.0, observer=told)
    failed, *rest = [text for text in told.heard if text != "checkpoint"]
    assert failed.startswith(f"no checkpoint was written: {file}: File too large; the run")
    assert rest == ["checkpoints are written again"]
    assert checkpoints.read(file).states


def test_the_reason_why_a_file_cannot_be_opened(tmp_path):
    """It exists: not every file that cannot be opened is missing."""
    os.symlink("loop", tmp_path / "loop")
    for read in (thresher.load, checkpoints.read):
        with pytest.raises(ModelFileError, match=os.strerror(errno.ELOOP)):
            read(tmp_path / "loop")
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "missing")
