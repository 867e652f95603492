"""The reader of standard output has closed it (exit code 141), it is full, or there is none."""

import errno
import io
import os
import subprocess
import sys

import pytest

from support.files import called, vw
from thresher.cli.render.output import end_output

THRESHER = [sys.executable, "-m", "thresher"]
TUNE = ["tune", "rows.vw", "--rule", "ftrl", "--grid", "l1=0.1,1", "-m", "best"]
COMMANDS = {
    "look": ["look", "rows.vw"],
    "look, json": ["look", "rows.vw", "--json"],
    "inspect": ["inspect", "m.thresher"],
    "predict": ["predict", "m.thresher", "rows.vw"],
    "evaluate": ["evaluate", "m.thresher", "rows.vw"],
    "export": ["export", "m.thresher", "--to", "json"],
    "discover": ["discover", "rows.vw"],
    "tune": TUNE,
    "tune, json": [
        "tune",
        "rows.vw",
        "--rule",
        "ftrl",
        "--grid",
        "l1=0.1,1",
        "-m",
        "best",
        "--json",
    ],
    "demo": ["demo"],
    "compare": ["compare", "rows.vw", "--rules", "ftrl", "--folds", "2"],
    "train, json": ["train", "rows.vw", "-m", "other", "--json"],
    "help": ["--help"],
    "version": ["--version"],
    "help of train": ["train", "--help"],
    "completion": ["completion", "bash"],
    "man": ["man", "train"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    vw(folder / "rows.vw")
    called("train", folder / "rows.vw", "-m", folder / "m.thresher", "--quiet")
    return folder


def closed_output(folder, words):
    """Run a command whose output nobody reads; return its exit code and what it said."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [*THRESHER, *words]
    with os.fdopen(writes, "w") as output:
        done = subprocess.run(
            command, cwd=folder, stdout=output, stderr=subprocess.PIPE, text=True, timeout=100
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_the_exit_code(folder, name):
    code, said = closed_output(folder, COMMANDS[name])
    assert code == 141, said
    for word in ("Traceback", "Exception", "Broken", "error:"):
        assert word not in said


def test_an_error_keeps_its_code_and_its_words(folder):
    code, said = closed_output(folder, ["look", "missing.svm", "--json"])
    assert (code, said) == (1, "missing.svm: no such file\n")


def full_output(folder, words, **environment):
    """Run a command whose output cannot be written; return its exit code and what it said."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*THRESHER, *words],
            cwd=folder,
            env=kept | environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "name", ["inspect", "version", "help", "help of train", "completion", "train, json", "demo"]
)
def test_a_full_output_is_one_line_and_exit_code_1(folder, name):
    code, said = full_output(folder, COMMANDS[name])
    assert code == 1
    assert said.splitlines()[-1] == "standard output: No space left on device"
    assert "Traceback" not in said


def test_a_full_output_without_a_buffer(folder):
    code, said = full_output(folder, COMMANDS["inspect"], PYTHONUNBUFFERED="1")
    assert (code, said) == (1, "standard output: No space left on device\n")


def without(folder, streams, words):
    """Run a command without standard streams, such as ">&-"."""
    command = f'exec "$@" {streams}'
    return subprocess.run(
        ["/bin/sh", "-c", command, "sh", *THRESHER, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )


NEEDS = ["predict", "export", "completion", "man", "look", "look, json", "inspect", "evaluate"]


@pytest.mark.parametrize("name", [*NEEDS, "version", "train, json"])
def test_a_result_needs_standard_output(folder, name):
    done = without(folder, ">&-", COMMANDS[name])
    assert (done.returncode, done.stderr) == (1, "standard output: it is closed\n")


def test_strict_predictions_need_standard_output(folder):
    done = without(folder, ">&-", [*COMMANDS["predict"], "--strict"])
    assert (done.returncode, done.stderr) == (1, "standard output: it is closed\n")


@pytest.mark.parametrize("name", ["look", "inspect", "evaluate"])
def test_a_page_needs_no_standard_output(folder, name):
    done = without(folder, ">&-", [*COMMANDS[name], "--html", "page.html"])
    assert done.returncode == 0, done.stderr
    assert (folder / "page.html").stat().st_size > 1000
    os.unlink(folder / "page.html")


@pytest.mark.parametrize("name", ["predict", "export"])
def test_a_file_needs_no_standard_output(folder, name):
    done = without(folder, ">&-", [*COMMANDS[name], "-o", "result.json"])
    assert done.returncode == 0, done.stderr
    assert (folder / "result.json").stat().st_size > 100


def test_a_demo_without_standard_output(folder):
    done = without(folder, ">&-", ["demo", "--examples", "2000"])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["look", "evaluate", "tune", "compare", "discover"])
def test_without_standard_error(folder, name):
    done = without(folder, "2>&-", COMMANDS[name])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["train", "rows.vw", "-m", "other"], 0),
        (["predict", "m.thresher", "rows.vw", "-o", "predictions"], 0),
        (["convert", "rows.vw", "rows.svm"], 0),
        (["export", "m.thresher"], 2),
        (["merge", "m.thresher", "m.thresher"], 2),
        (["look", "missing"], 1),
    ],
)
def test_a_full_standard_error(folder, words, code):
    """The progress and the messages are lost, but neither the result nor the exit code."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([*THRESHER, *words], cwd=folder, stderr=full, timeout=100)
    assert done.returncode == code
    outputs = {"other", "predictions", "rows.svm"} & set(words)
    assert all((folder / name).stat().st_size > 100 for name in outputs)


def test_no_file_gets_the_number_of_standard_error():
    """What a C library prints would be in the file."""
    program = "import os, sys; from thresher.cli.render.output import error_output;"
    program += "error = error_output();"
    program += "numbers = [os.open(sys.executable, os.O_RDONLY) for _ in range(2)];"
    program += "sys.stdout.write(repr((os.readlink('/proc/self/fd/2'), numbers)))"
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&- 2>&-', "sh", sys.executable, "-c", program],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    name, numbers = eval(done.stdout)
    assert name == os.devnull
    assert 2 not in numbers


@pytest.mark.parametrize("words", [["predict", "m.thresher", "-"], ["look", "-"]])
def test_without_standard_input(folder, words):
    done = without(folder, "<&-", words)
    assert (done.returncode, done.stderr) == (1, "standard input: it is closed\n")


class _Full(io.StringIO):
    """An output without a file that cannot be written."""

    def flush(self):
        raise OSError(errno.ENOSPC, "full")


def test_the_end_of_an_output_without_a_file(monkeypatch):
    monkeypatch.setattr(sys, "stdout", _Full())
    end_output()


@pytest.mark.parametrize("words", [["look", "missing"], ["export", "m.thresher"]])
def test_a_closed_standard_error(folder, words):
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as errors:
        done = subprocess.run([*THRESHER, *words], cwd=folder, stderr=errors, timeout=100)
    assert done.returncode == 141
