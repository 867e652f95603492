"""The command line starts quickly, and Ctrl-C stops it with a checkpoint."""

import gzip
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from support.files import THRESHER, called, svmlight, vw
from support.slices import sliced
from thresher.data.source import Source
from thresher.training import model_names


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    svmlight(folder / "rows.svm")
    svmlight(folder / "other.svm", seed=1)
    svmlight(folder / "classes.svm", classes=(1, 2, 5))
    vw(folder / "rows.vw")
    return folder


def lines(done):
    return done.stdout.splitlines()


@pytest.mark.parametrize("arguments", [["--version"], ["train", "one.svm", "-m", "one.thresher"]])
def test_the_start_imports_no_slow_modules(folder, arguments):
    (folder / "one.svm").write_text("1 1:1\n")
    code = (
        "import sys\n"
        "from thresher.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "slow = {'scipy', 'sklearn', 'pandas', 'pyarrow', 'joblib', 'matplotlib', 'fsspec'}\n"
        "found = slow & set(sys.modules)\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, check=True)


def test_exit_codes(folder):
    data, model = folder / "rows.svm", folder / "codes.thresher"
    called("train", data, "-m", model, code=0)
    called("train", folder / "absent.svm", "-m", model, code=1)
    called("train", data, "-m", model, "--rule", "magic", code=2)
    called("train", data, code=2)
    called("train", data, "-m", model, "--nonsense", code=2)
    called("predict", data, data, code=1)


def started(*arguments):
    """Start the command line with a pipe as standard input."""
    return subprocess.Popen(
        [*THRESHER, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupted(process):
    """Send one Ctrl-C; check exit code 130 while the input is still open; return the output."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(30)
    finally:
        process.kill()
    shown = process.communicate()[1]
    assert process.returncode == 130, shown
    assert "Traceback" not in shown
    return shown


@pytest.mark.parametrize(
    ("packed", "threads"),
    sliced(itertools.product([False, True], [None, 1, 3]), 1, 5),
)
def test_interrupt_while_waiting_for_a_pipe(tmp_path, packed, threads):
    """One Ctrl-C writes a checkpoint, with any number of threads; --resume continues from it."""
    model = tmp_path / "interrupted.thresher"
    rows = b"1 1:1 2:0.5\n-1 2:1\n" * 300_000
    rest = b"-1 1:1\n" * 1000
    whole = rows + rest
    if packed:
        rows, rest = (gzip.compress(part, 1) for part in (rows, rest))
    limit = [] if threads is None else ["--threads", threads]
    process = started("train", "-", "-m", model, "--json", *limit)
    process.stdin.buffer.write(rows)
    process.stdin.buffer.flush()
    assert json.loads(process.stdout.readline())["event"] == "progress"
    time.sleep(0.3)  # usually it waits for input now; if not, it must end as well
    shown = interrupted(process)
    assert "interrupted after" in shown
    assert not model.exists()
    assert os.path.exists(f"{model}.checkpoint")
    called("train", "-", "-m", model, "--resume", "--quiet", stdin=rows + rest)
    assert not os.path.exists(f"{model}.checkpoint")
    called("train", "-", "-m", tmp_path / "whole.thresher", "--quiet", stdin=whole)
    assert model.read_bytes() == (tmp_path / "whole.thresher").read_bytes()


@pytest.mark.parametrize("rows", sliced([0, 5, 100_000], 2))
def test_interrupt_while_waiting_for_a_pipe_of_csv(tmp_path, rows):
    model = tmp_path / "m.thresher"
    process = started("train", "-", "-m", model, "--format", "csv", "--label", "y", "--json")
    process.stdin.write("y,a,b\n" + "".join(f"{i % 2},{i % 7},{i % 11}\n" for i in range(rows)))
    process.stdin.flush()
    if rows > 5:
        while '"progress"' not in process.stdout.readline():
            assert process.poll() is None
    time.sleep(0.3 if rows > 5 else 2.0)  # usually it waits for input now
    shown = interrupted(process)
    assert "interrupted" in shown
    assert os.path.exists(f"{model}.checkpoint") == (rows > 5)


@pytest.mark.parametrize("threads", sliced([1, 2], 1))
def test_interrupt_before_the_first_row_is_learned(tmp_path, threads):
    """There is nothing to save: no checkpoint is written."""
    model = tmp_path / "m.thresher"
    process = started("train", "-", "-m", model, "--json", "--resume", "--threads", threads)
    process.stdin.write("1 1:1\n" * 20_000)  # enough to detect the format, but less than a block
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["event"] == "note"  # no checkpoint yet
    time.sleep(0.3)
    interrupted(process)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux for handlers")
def test_interrupt_before_the_format_is_known(tmp_path):
    process = started("train", "-", "-m", tmp_path / "m.thresher")
    for _ in range(600):
        with open(f"/proc/{process.pid}/status") as status:
            caught = next(line for line in status if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> signal.SIGTERM - 1 & 1:
            break
        time.sleep(0.05)
    interrupted(process)
    assert not list(tmp_path.iterdir())


def test_interrupt_while_the_loss_of_a_pass_is_computed(tmp_path):
    """The checkpoint has the state before the loss; --resume computes the loss again."""
    rows = svmlight(tmp_path / "rows.svm", rows=2000)
    valid, model = tmp_path / "valid.svm", tmp_path / "m.thresher"
    held_out = svmlight(tmp_path / "others.svm", rows=500, seed=1, repeat=100).read_bytes()
    os.mkfifo(valid)
    arguments = ["train", rows, "--valid", valid, "--seed", 3, "--quiet"]
    process = started(*arguments, "-m", model)
    with open(valid, "wb", buffering=0) as pipe:
        pipe.write(held_out)  # returns when the rows are learned and most of these are read
        assert "interrupted after 2,000" in interrupted(process)
    assert not model.exists()
    valid.unlink()
    valid.write_bytes(held_out)
    called(*arguments, "-m", model, "--resume")
    called(*arguments, "-m", tmp_path / "whole.thresher")
    assert model.read_bytes() == (tmp_path / "whole.thresher").read_bytes()


@pytest.mark.parametrize(
    ("reading", "options"),
    [
        ("label_counts", ["--multiclass"]),
        ("width", ["--rule", "mirror-descent"]),
        ("mean", ["--rule", "averaged-sgd", "--center"]),
    ],
)
def test_interrupt_while_rows_are_read_before_training(
    tmp_path, folder, monkeypatch, reading, options
):
    """The command ends; the checkpoint of an earlier run is not changed."""
    model, kept = tmp_path / "m.thresher", tmp_path / "m.thresher.checkpoint"
    kept.write_bytes(b"of a run before")
    before = getattr(Source, reading)

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        before(*given)
        raise AssertionError("it was read to its end")

    monkeypatch.setattr(Source, reading, interrupted)
    called("train", folder / "rows.svm", "-m", model, *options, code=130)
    assert not model.exists()
    assert kept.read_bytes() == b"of a run before"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--passes", 2, "--target-nnz", 5],
        ["--passes", 9, "--valid", "other.vw", "--patience", 1, "--alpha", 2],
        ["--rule", "truncated-gradient", "--passes", 3, "--target-nnz", 5],
    ],
)
def test_interrupt_while_names_are_read(tmp_path, folder, monkeypatch, options):
    """All rows are learned: the checkpoint keeps this, and --resume only reads the names."""
    vw(folder / "other.vw", seed=1)
    options = [folder / option if option == "other.vw" else option for option in options]
    model, whole = tmp_path / "m.thresher", tmp_path / "whole.thresher"
    arguments = ["train", folder / "rows.vw", *options, "--quiet", "-m"]
    called(*arguments, whole)
    names = Source.names

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        return names(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Source, "names", interrupted)
        patch.setattr(model_names, "MOST_BYTES", 1)  # too few for the names: the file is read again
        done = called(*arguments, model, code=130)
    assert "--resume" in done.stderr
    assert not model.exists()
    more = called(*arguments, model, "--resume", "--passes", 20, code=1)
    assert "passes is 20 now" in more.stderr
    called(*arguments, model, "--resume")
    assert model.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob("*.checkpoint"))
