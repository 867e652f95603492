"""Errors of `thresher tune`: early, with one line, and without output files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import xml.etree.ElementTree as ET

import pytest

import thresher
from support.files import THRESHER, called, svmlight
from support.files import thresher as run
from thresher import __version__


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    svmlight(folder / "rows.svm")
    svmlight(folder / "classes.svm", classes=(1, 2, 5), rows=2000, repeat=60)
    return folder


GRID = ("--grid", "l1=0.1,1")


# ---- pipes ---------------------------------------------------------------------------------------


def piped(rows, *arguments):
    """Run the command with a pipe that still has rows when the command ends."""
    with subprocess.Popen(["cat", rows], stdout=subprocess.PIPE) as cat:
        done = subprocess.run(
            [*THRESHER, *map(str, arguments)],
            stdin=cat.stdout,
            capture_output=True,
            text=True,
            timeout=100,
        )
        cat.stdout.close()
    return done


@pytest.mark.parametrize(
    "attempt", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2, 3))]
)
def test_an_early_error_in_a_pipe_ends_the_process_cleanly(folder, tmp_path, attempt):
    """Threads that read from Python must be joined before the process ends."""
    threads = ["--threads", 2 + attempt]
    model = tmp_path / "m"
    done = piped(folder / "classes.svm", "tune", "-", "-m", model, *GRID, *threads)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1
    assert "labels must be -1 and 1" in done.stderr
    options = ["--classes", "1,2,5", "--memory", "1k", *threads]
    done = piped(folder / "classes.svm", "tune", "-", "-m", model, *GRID, *options)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1
    assert not model.exists()


def test_an_unfinished_reading_does_not_block_the_end_of_python(folder):
    """The command ends even if the pipe stays open without more rows."""
    code = (
        "import thresher\n"
        "blocks = thresher.scan('-', threads=3).blocks()\n"
        "next(blocks)\n"
        "raise SystemExit(7)\n"
    )
    with subprocess.Popen(
        [THRESHER[0], "-c", code], bufsize=0, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        with contextlib.suppress(BrokenPipeError):  # the process may end before it reads all
            process.stdin.write(
                (folder / "classes.svm").read_bytes()[: 3 << 19]
            )  # more than a block
        try:
            process.wait(60)
        finally:
            process.kill()
        assert process.stderr.read() == b""
    assert process.returncode == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sparsest"], "--sparsest needs the standard errors over folds"),
        (["--multiclass"], "--multiclass from standard input needs --classes, or --cache FILE"),
    ],
)
def test_options_that_standard_input_does_not_allow(folder, tmp_path, options, message):
    rows = (folder / "rows.svm").read_bytes()
    done = called("tune", "-", "-m", tmp_path / "m", *GRID, *options, code=2, stdin=rows)
    assert done.stderr.startswith(message)
    options = [*options, "--cache", tmp_path / "rows.cache"]
    called("tune", "-", "-m", tmp_path / "m", *GRID, *options, stdin=rows)
    assert thresher.load(tmp_path / "m").classes.tolist() == [-1, 1]


# ---- outputs -------------------------------------------------------------------------------------


def test_outputs_must_be_different_files(folder, tmp_path):
    data, model, link = folder / "rows.svm", tmp_path / "m", tmp_path / "link"
    message = "is also the file of --model; give two different files"
    for options in (["--html", model], ["--html", tmp_path / "." / "m"], ["--cache", model]):
        done = called("tune", data, "-m", model, *GRID, *options, code=2)
        assert message in done.stderr
    quarantine = f"quarantine={model}"
    assert (
        message
        in called("tune", data, "-m", model, *GRID, "--on-bad-line", quarantine, code=2).stderr
    )
    link.symlink_to(model)
    assert message in called("tune", data, "-m", model, *GRID, "--html", link, code=2).stderr
    assert not model.exists()
    model.write_bytes(b"before")
    link.unlink()
    os.link(model, link)
    assert message in called("tune", data, "-m", model, *GRID, "--html", link, code=2).stderr
    assert message in called("train", data, "-m", model, "--checkpoint", link, code=2).stderr
    assert model.read_bytes() == b"before"
    called("tune", data, "-m", "/dev/null", "--html", "/dev/null", *GRID)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_model_and_page_are_written_both_or_not_at_all(folder, tmp_path):
    data, model, page = folder / "rows.svm", tmp_path / "m", tmp_path / "page.html"
    for places in ([model, "/dev/full"], ["/dev/full", page]):
        done = called("tune", data, "-m", places[0], "--html", places[1], *GRID, code=1)
        assert done.stderr == "/dev/full: No space left on device\n"
        assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that takes no files")
def test_output_folders_are_checked_before_rows_are_read(tmp_path):
    done = called("tune", "absent.svm", "-m", tmp_path / "m", "--html", "/proc/x", *GRID, code=1)
    assert done.stderr.startswith("/proc/x: ")  # not an error about missing rows
    assert not list(tmp_path.iterdir())


# ---- messages ------------------------------------------------------------------------------------


def test_errors_name_options(folder, tmp_path):
    data, model = folder / "rows.svm", tmp_path / "m"
    done = called("tune", data, "-m", model, *GRID, "--memory", "100", code=1)
    assert "raise --memory, or use --store hashed" in done.stderr
    assert "memory_limit" not in done.stderr
    rare = tmp_path / "rare.svm"
    rare.write_text(data.read_text().replace("-1 ", "1 ") + "7 1:1\n")
    done = called("tune", rare, "-m", model, *GRID, "--multiclass", code=2)
    assert "no row of class 7" in done.stderr
    assert done.stderr.endswith("use fewer --folds\n")
    done = called("tune", data, "-m", model, "--grid", "l1=-1", code=2)
    assert done.stderr.startswith("--grid l1=-1: l1 must be a number >= 0")
    assert "nonzero: lists" not in called("tune", "--help-all").stdout


def test_one_combination_and_losses_in_a_grid(folder, tmp_path):
    data, model = folder / "rows.svm", tmp_path / "m"
    done = called("tune", data, "-m", model, "--grid", "l1=1")
    assert "5 folds; 1 combination, 6 models in " in done.stdout
    done = called("tune", data, "-m", model, "--grid", "loss=logistic,hinge", "--scoring",
                  "accuracy")  # fmt: skip
    assert "2 combinations, 12 models" in done.stdout
    losses = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()[1:3]}
    least = min(losses, key=lambda loss: float(losses[loss]))
    assert thresher.load(model).loss == least
    done = called("tune", data, "-m", model, "--grid", "loss=hinge,huber", code=2)
    assert "all losses must be for classes, or all for numbers" in done.stderr
    done = called("tune", data, "-m", model, "--loss", "hinge", "--grid", "loss=logistic", code=2)
    assert "loss is also given by --loss" in done.stderr


def test_the_page_shows_the_command_and_settings(folder, tmp_path):
    page = tmp_path / "page.html"
    options = ["--grid", "l1=0.01..100:6", "--seed", "3", "--shuffle", "--beta", "0.5"]
    options += ["--scoring", "log_loss"]
    called("tune", folder / "rows.svm", "-m", tmp_path / "m", *options, "--html", page)
    root = ET.fromstring(page.read_text().removeprefix("<!DOCTYPE html>\n"))
    names = [name.text for name in root.findall(".//dt")]
    facts = dict(zip(names, (value.text for value in root.findall(".//dd")), strict=True))
    assert (facts["loss"], facts["seed"], facts["rule"]) == ("logistic", "3", "ftrl")
    assert facts["score"] == "log_loss; the table shows the log loss"
    assert facts["passes"] == "1, rows shuffled"
    assert facts["store"] == "dense, float32"
    assert "beta=0.5" in facts["other parameters"]
    assert facts["made by"] == f"thresher {__version__}"
    assert facts["command"].startswith("thresher tune ")
    assert facts["command"].endswith(f"--scoring log_loss --html {page}")
    heads = root.findall(".//thead/tr/th")
    assert [head.get("scope") for head in heads] == ["col"] * 5
    note = root.find(".//p").text
    assert "+- is its standard error" in note
    assert "Nonzeros are of the model trained on all rows" in note
    assert "chosen: the sparsest within one standard error of the best" in note


# ---- interruptions -------------------------------------------------------------------------------


def test_interrupt_while_modules_are_imported(folder, tmp_path):
    """Ctrl-C ends the command with one line, as soon as Thresher's own code runs."""
    slow = (
        "import sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == sys.argv[-1]:\n"
        "            sys.argv.pop()\n"
        "            print('now', flush=True)\n"
        "            import time; time.sleep(60)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from thresher.cli import main\n"
        "main()\n"
    )
    for module in ("typer", "thresher.cli.app", "sklearn", "thresher.cli.commands.tune"):
        with subprocess.Popen(
            [THRESHER[0], "-c", slow, "tune", folder / "rows.svm", "-m", tmp_path / "m", *GRID,
             module],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout.readline() == "now\n"
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, shown = process.communicate(timeout=60)
        assert (process.returncode, shown) == (130, "interrupted\n"), module
    assert run("--version").stdout.startswith("thresher ")
