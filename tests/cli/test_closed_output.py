"""The reader of standard output has closed it: exit code 141, and not a word."""

import os
import subprocess
import sys

import pytest

from support.files import called, vw

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


def test_a_full_output_is_one_line_and_exit_code_1(folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*THRESHER, "inspect", "m.thresher"],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("No space left on device")
