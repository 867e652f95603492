"""SIGTERM, SIGHUP and a closed terminal stop training with a checkpoint, as Ctrl-C does."""

import json
import os
import pty
import signal
import subprocess

import pytest

from support.files import THRESHER, called, svmlight
from support.slices import sliced


@pytest.fixture(autouse=True)
def hangup_is_not_ignored():
    """Commands do what they do without nohup, even if the tests run under it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


ROWS = "1 1:1 2:0.5\n-1 2:1\n" * 200_000


def started(model, ignored=()):
    """Start training from a pipe; return the process when rows have been learned."""

    def prepare():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    process = subprocess.Popen(
        [*THRESHER, "train", "-", "-m", model, "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,
    )
    process.stdin.write(ROWS)
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["event"] == "progress"
    return process


@pytest.mark.parametrize("number", sliced([signal.SIGTERM, signal.SIGHUP], 1))
def test_a_signal_writes_a_checkpoint(tmp_path, number):
    model = tmp_path / "m.thresher"
    process = started(model)
    process.send_signal(number)
    try:
        assert process.wait(60) == 130
    finally:
        process.kill()
    assert "interrupted after" in process.communicate()[1]
    assert not model.exists()
    called("train", "-", "-m", model, "--resume", "--quiet", stdin=ROWS.encode())
    called("train", "-", "-m", tmp_path / "whole", "--quiet", stdin=ROWS.encode())
    assert model.read_bytes() == (tmp_path / "whole").read_bytes()


def test_an_ignored_hangup_stays_ignored(tmp_path):
    """This is how nohup starts a command."""
    model = tmp_path / "m.thresher"
    process = started(model, ignored=[signal.SIGHUP])
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert model.exists()


def test_a_closed_terminal_writes_a_checkpoint(tmp_path):
    rows, model = svmlight(tmp_path / "rows.svm", repeat=20), tmp_path / "m.thresher"
    arguments = ["train", rows, "-m", model, "--rule", "ftrl", "--passes", 100_000]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(THRESHER[0], [*THRESHER, *map(str, arguments)])
    found = b""
    while b"nonzeros" not in found:  # the heading of the table of progress
        found += os.read(terminal, 1024)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130
    assert not model.exists()
    assert os.path.exists(f"{model}.checkpoint")
