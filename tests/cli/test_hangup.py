"""SIGTERM, SIGHUP and a closed terminal stop training with a checkpoint, as Ctrl-C does."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from support.files import THRESHER, called, svmlight
from support.slices import sliced
from thresher.cli import main


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


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_an_ignored_signal_stays_ignored(tmp_path, number):
    """This is how nohup starts a command, and a shell without job control ``command &``."""
    model = tmp_path / "m.thresher"
    process = started(model, ignored=[number])
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert model.exists()


# Gets a signal when the module of a command is imported: before any data are read.
EARLY = """
import importlib.abc, os, signal, sys
number, kind, module, *words = sys.argv[1:]
number, ignored = int(number), kind == "ignored"

class Sender(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), number)

if ignored:
    signal.signal(number, signal.SIG_IGN)
sys.meta_path.insert(0, Sender())
sys.argv[1:] = words
from thresher.cli import main
main()
"""
WORDS = {
    "train": ["train", "rows.svm", "-m", "m"],
    "tune": ["tune", "rows.svm", "-m", "m", "--rule", "ftrl", "--grid", "l1=0.1,1"],
    "discover": ["discover", "rows.svm", "--checkpoint", "c"],
    "convert": ["convert", "rows.svm", "rows.vw"],
}


def early(folder, name, number, kind, module=None):
    """Run a command, with a signal when it imports its module, or a given one."""
    module = module or f"thresher.cli.commands.{name}"
    command = [sys.executable, "-c", EARLY, str(int(number)), kind, module, *WORDS[name]]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_before_training(tmp_path, name, number):
    svmlight(tmp_path / "rows.svm")
    done = early(tmp_path, name, number, "default")
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("module", ["typer", "thresher.cli.render.errors"])
def test_a_signal_at_the_first_imports(tmp_path, number, module):
    done = early(tmp_path, "train", number, "default", module)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_training_may_be_ignored(tmp_path, name, number):
    svmlight(tmp_path / "rows.svm")
    done = early(tmp_path, name, number, "ignored")
    assert done.returncode == 0, done.stderr


def test_a_signal_while_an_import_runs_a_text(tmp_path):
    """Python would remember it, and end by SIGINT."""
    svmlight(tmp_path / "rows.svm")
    program = EARLY.replace("os.kill(os.getpid(), number)", "exec('os.kill(os.getpid(), number)')")
    (tmp_path / "early.py").write_text(program)  # as with `python -m thresher`
    command = [sys.executable, "-m", "early", str(int(signal.SIGTERM)), "default"]
    command += ["thresher.cli.commands.discover", *WORDS["discover"]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


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


def test_a_program_that_calls_main_keeps_its_handlers(tmp_path):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    rows, before_words = svmlight(tmp_path / "rows.svm"), sys.argv
    sys.argv = ["thresher", "train", str(rows), "-m", str(tmp_path / "m"), "--quiet"]
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before_words
    assert end.value.code == 0
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_after_the_end_does_not_change_the_exit_code(tmp_path, number):
    svmlight(tmp_path / "rows.svm")
    program = "import atexit, os, sys; from thresher.cli import program;"
    program += f"atexit.register(os.kill, os.getpid(), {int(number)}); program()"
    words = ["convert", "rows.svm", "rows.vw"]
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, timeout=100)
    assert done.returncode == 0
    assert (tmp_path / "rows.vw").exists()


@pytest.mark.parametrize("second", [signal.SIGHUP, signal.SIGTERM])
def test_two_signals_one_after_the_other(tmp_path, second):
    """As of programs that send SIGTERM and SIGHUP: the checkpoint is written."""
    model = tmp_path / "m.thresher"
    process = started(model)
    process.send_signal(signal.SIGTERM)
    process.send_signal(second)
    try:
        assert process.wait(60) == 130
    finally:
        process.kill()
    assert "interrupted after" in process.communicate()[1]
    assert os.path.exists(f"{model}.checkpoint")
