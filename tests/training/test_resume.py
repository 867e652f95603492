"""Exact resume: a run that was killed at any time ends with the same bytes."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from support.files import THRESHER, svmlight, thresher, vw
from thresher.training.checkpoint import read

# Rule families, stores, passes, compressed and several files. Every run takes long enough to be
# killed, and every file has several blocks, so that runs are killed within a file.
CASES = {
    "truncated-gradient": ["--passes", "40"],
    "truncated-gradient-hashed": ["--passes", "40", "--store", "hashed", "--gravity", "1e-3"],
    "truncated-gradient-average": ["--passes", "40", "--average", "--l2", "1e-4"],
    "truncated-gradient-target": ["--passes", "40", "--target-nnz", "9"],
    "truncated-gradient-gz": ["--passes", "30", "--shuffle", "--seed", "3"],
    "forward-backward": ["--passes", "40", "--schedule", "sqrt", "--dtype", "float64"],
    "ftrl": ["--passes", "40", "--bits", "10"],
    "dual-averaging": ["--passes", "40", "--loss", "hinge"],
    "averaged-sgd": ["--passes", "40", "--center"],
    "margin-perceptron": ["--passes", "40", "--margin", "5"],
    "mirror-descent": ["--passes", "4"],
    "multiclass": ["--passes", "8", "--multiclass"],
    "valid": ["--passes", "40", "--tol", "0", "--patience", "38"],
    "cache": ["--passes", "40", "--shuffle"],
    "named": ["--passes", "8", "-q", "wa"],
    "several": ["--passes", "16", "--shuffle"],
    "quarantine": ["--passes", "30"],
    "table": ["--passes", "6"],
}
# These are killed and resumed only in `make soak`. In `make test`, test_golden.py interrupts and
# resumes every rule, and the other cases here are killed.
SOAKED = {
    *("truncated-gradient-hashed", "truncated-gradient-average", "truncated-gradient-target"),
    *("truncated-gradient", "forward-backward", "dual-averaging", "averaged-sgd"),
    *("margin-perceptron", "mirror-descent", "table", "named", "quarantine", "valid"),
}
RULES = ("forward-backward", "ftrl", "dual-averaging", "averaged-sgd", "margin-perceptron")
FILES = {"rows.svm", "rows.svm.gz", "rows.vw", "more.svm", "rows.csv", "valid.svm", "rows.cache"}


def packed(path):
    """Write a gzip copy of a file, and return its name."""
    with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb") as out:
        shutil.copyfileobj(plain, out)
    return f"{path}.gz"


def command(case, folder):
    """Return the arguments of a case, without those for the model and checkpoints."""
    classes = (1, 2, 5) if case == "multiclass" else (-1, 1)
    options = list(CASES[case])
    if case == "named":
        data = [vw(folder / "rows.vw", rows=40_000)]
    elif case == "table":
        pytest.importorskip("pyarrow")
        data = [folder / "rows.csv"]
        rows = [f"{k % 7},{'abc'[k % 3]},{int(k % 5 < 2)}\n" for k in range(60_000)]
        data[0].write_text("size,kind,label\n" + "".join(rows))
    else:
        data = [svmlight(folder / "rows.svm", rows=1000, repeat=48, classes=classes)]
    if case.endswith("gz"):
        data = [packed(data[0])]
    if case == "several":
        data = [packed(data[0]), svmlight(folder / "more.svm", rows=500, repeat=64, seed=4)]
    if case in (*RULES, "mirror-descent"):
        options += ["--rule", case]
    elif case.startswith("truncated-gradient"):
        options += ["--rule", "truncated-gradient"]
    if case == "valid":
        options += ["--valid", str(svmlight(folder / "valid.svm", seed=1))]
    if case == "cache":
        options += ["--cache", str(folder / "rows.cache")]
    if case == "quarantine":
        lines = data[0].read_text().splitlines(keepends=True)
        for at in range(100, len(lines), 5000):
            lines[at] = f"bad {at}\n"
        data[0].write_text("".join(lines))
        options += ["--on-bad-line", f"quarantine={folder / 'aside.svm'}"]
    return [*map(str, data), *options]


def killed(arguments, model, delay):
    """Start a run and kill it after its first checkpoint; return whether it was still running.

    The run continues from the checkpoint of the previous one.
    """
    process = subprocess.Popen(
        [*THRESHER, "train", *arguments, "-m", model, "--every", "0.01s", "--resume", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stdout:
            if json.loads(line)["event"] == "checkpoint":
                break
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    # A run that was killed after it had written the model does not count.
    return process.returncode == -signal.SIGKILL and not os.path.exists(model)


def is_inside(checkpoint):
    """Return whether a checkpoint was written within a pass."""
    return os.path.exists(checkpoint) and read(checkpoint).about["position"] is not None


def check(case, folder, kills):
    """Kill a run several times, at least once within a pass, then let it finish."""
    rng = random.Random(case)
    arguments = command(case, folder)
    whole, resumed = folder / "whole.thresher", folder / "resumed.thresher"
    aside = folder / "aside.svm"
    thresher("train", *arguments, "-m", whole, "--quiet")
    put_aside = aside.read_bytes() if case == "quarantine" else b""
    hits = inside = 0
    for attempt in range(6 * kills):
        if hits >= kills and inside:
            break
        resumed.unlink(missing_ok=True)
        # Earlier each time: on a fast machine the run may already have ended.
        hits += killed(arguments, str(resumed), rng.uniform(0, 0.15 / (1 + attempt)))
        inside += is_inside(f"{resumed}.checkpoint")
    assert hits >= kills, "runs ended before they were killed: make them longer"
    assert inside, "no run was killed within a pass"
    thresher("train", *arguments, "-m", resumed, "--resume", "--quiet")
    assert resumed.read_bytes() == whole.read_bytes()
    if case == "quarantine":
        assert aside.read_bytes() == put_aside
        assert put_aside.count(b"bad ") == 10
    left = {path.name for path in folder.iterdir()} - FILES - {"aside.svm"}
    assert left == {"whole.thresher", "resumed.thresher"}
    return hits


@pytest.mark.parametrize("case", [case for case in CASES if case not in SOAKED])
def test_killed_and_resumed(case, tmp_path):
    check(case, tmp_path, kills=1)


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES)
def test_killed_often_and_resumed(case, tmp_path):
    """Twenty kills of running runs; each run continues from the last, or starts again."""
    hits = 0
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        hits += check(case, folder, kills=3)
        if hits >= 20:
            return
    assert hits >= 20


def test_interrupt_writes_a_checkpoint(tmp_path):
    """Ctrl-C ends with code 130 and writes a checkpoint."""
    arguments = command("truncated-gradient", tmp_path)
    model = tmp_path / "model.thresher"
    process = subprocess.Popen(
        [*THRESHER, "train", *arguments, "-m", str(model), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted after" in message
    assert "--resume" in message
    assert not model.exists()
    assert os.path.exists(f"{model}.checkpoint")
    thresher("train", *arguments, "-m", model, "--resume", "--quiet")
    assert not os.path.exists(f"{model}.checkpoint")
    whole = tmp_path / "whole.thresher"
    thresher("train", *arguments, "-m", whole, "--quiet")
    assert model.read_bytes() == whole.read_bytes()


def interrupted(folder, arguments):
    """Make a checkpoint of an unfinished run; return the path of its model."""
    model = folder / "model.thresher"
    for _ in range(10):
        if killed(arguments, str(model), delay=0):
            return model
        model.unlink(missing_ok=True)
    raise AssertionError("no run was killed in time")


def test_resume_without_a_checkpoint_starts_from_the_beginning(tmp_path):
    data = svmlight(tmp_path / "rows.svm")
    done = thresher("train", data, "-m", tmp_path / "m.thresher", "--resume")
    assert "no checkpoint" in done.stderr
    assert "from the beginning" in done.stderr


def test_changed_input_is_refused(tmp_path):
    """The message names the lines in which the input has changed."""
    arguments = command("truncated-gradient", tmp_path)
    model = interrupted(tmp_path, arguments)
    data = tmp_path / "rows.svm"
    lines = data.read_text().splitlines(keepends=True)
    lines[1] = "1 3:0.125\n"
    data.write_text("".join(lines))
    done = thresher("train", *arguments, "-m", model, "--resume", code=1)
    assert done.stderr.splitlines()[-1].startswith(f"{data}: the input has changed")
    assert "lines 1 to" in done.stderr
    assert not model.exists()


def test_touched_input_is_read_again_and_accepted(tmp_path):
    arguments = command("truncated-gradient", tmp_path)
    model = interrupted(tmp_path, arguments)
    os.utime(tmp_path / "rows.svm", (1, 1))
    thresher("train", *arguments, "-m", model, "--resume", "--quiet")
    whole = tmp_path / "whole.thresher"
    thresher("train", *arguments, "-m", whole, "--quiet")
    assert model.read_bytes() == whole.read_bytes()


def test_other_options_are_refused(tmp_path):
    arguments = command("truncated-gradient", tmp_path)
    model = interrupted(tmp_path, arguments)
    done = thresher("train", *arguments, "-m", model, "--resume", "--gravity", "0.5", code=1)
    assert "gravity was 'auto'" in done.stderr
    assert "0.5" in done.stderr


def test_damaged_checkpoint_is_refused(tmp_path):
    arguments = command("truncated-gradient", tmp_path)
    model = interrupted(tmp_path, arguments)
    checkpoint = tmp_path / "model.thresher.checkpoint"
    content = bytearray(checkpoint.read_bytes())
    content[-3] ^= 1
    checkpoint.write_bytes(content)
    done = thresher("train", *arguments, "-m", model, "--resume", code=1)
    assert "damaged" in done.stderr
    assert str(checkpoint) in done.stderr


def test_a_pipe_is_resumed_by_piping_it_again(tmp_path):
    data = vw(tmp_path / "rows.vw", rows=60_000)
    model, whole = tmp_path / "model.thresher", tmp_path / "whole.thresher"
    with open(data, "rb") as pipe:
        thresher("train", "-", "-m", whole, "--quiet", stdin=pipe)
    with open(data, "rb") as pipe:
        process = subprocess.Popen(
            [*THRESHER, "train", "-", "-m", str(model), "--every", "0s", "--json"],
            stdin=pipe,
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in process.stdout:
            if json.loads(line)["event"] == "checkpoint":
                break
        process.kill()
        process.communicate()
    assert not model.exists()
    with open(data, "rb") as pipe:
        done = thresher("train", "-", "-m", model, "--resume", stdin=pipe)
    assert "continuing after" in done.stderr
    assert model.read_bytes() == whole.read_bytes()


def test_temporary_files_of_a_killed_run_are_removed(tmp_path):
    """When the run ends, it removes checkpoints that were written but not yet renamed."""
    data, model = svmlight(tmp_path / "rows.svm"), tmp_path / "m.thresher"
    left, other = (tmp_path / f"m.thresher.checkpoint.{name}.part" for name in ("0a" * 8, "mine"))
    left.write_bytes(b"")
    other.write_bytes(b"")
    thresher("train", data, "-m", model, "--resume", "--quiet")
    assert {path.name for path in tmp_path.iterdir()} == {data.name, model.name, other.name}
