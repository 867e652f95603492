"""`thresher train --workers 0`: a run as on a cluster, within this process, by the shell."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import thresher
from support.distributed_rows import rows_of, write_shards
from support.files import THRESHER, called
from thresher.cli.render.progress import shown, warnings_told
from thresher.distributed import fit
from thresher.distributed.engine.folder import held


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    X, y = rows_of()
    return write_shards(tmp_path_factory.mktemp("shards"), X, 2 * y - 1)


def trained(shards, tmp_path, *more, code=0):
    return called("train", shards, "-m", tmp_path / "model", "--workers", 0, *more, code=code)


def facts_of(done):
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    return [told for told in facts if told["event"] != "note"]


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        (["--rule", "ftrl", "--passes", "3", "--rounds", "2"], "average"),
        (["--rule", "stabilized", "--paths", "8"], "stages"),
        (["--rule", "stabilized", "--variant", "paper", "--paths", "8", "--burst", "4"], "stages"),
        (["--rule", "margin-perceptron", "--mode", "columns", "--batch", "16"], "columns"),
    ],
)
def test_every_mode(shards, tmp_path, options, mode):
    done = trained(shards, tmp_path, *options, "--json")
    *stages, last = facts_of(done)
    model = thresher.load(tmp_path / "model")
    assert [facts["stage"] for facts in stages][:2] == [1, 2]
    assert last["event"] == "done"
    assert last["nonzeros"] == model.nnz > 0
    assert model.parameters["mode"] == mode
    assert model.parameters["parts"] == 4
    assert done.stderr == ""
    before = (tmp_path / "model").read_bytes()
    told = trained(shards, tmp_path, *options)
    assert (tmp_path / "model").read_bytes() == before
    assert "slowest worker" in told.stderr
    assert f"{model.nnz:,} nonzero weights" in told.stdout


def test_it_is_what_fit_learns(shards, tmp_path):
    trained(shards, tmp_path, "--rule", "forward-backward", "--passes", 2, "--seed", 3, "--quiet")
    found = thresher.ForwardBackwardClassifier(passes=2, shuffle=False, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(found, shards, workers=0)
    assert thresher.load(tmp_path / "model").weights.tobytes() == found.model_.weights.tobytes()


def test_lists_of_labels_and_several_classes(tmp_path):
    for number, lines in enumerate(("1,2 1:1\n2 2:1\n", "3 3:1\n1,3 1:1 3:1\n")):
        (tmp_path / f"{number}.svm").write_text(lines * 30)
    trained(str(tmp_path / "*.svm"), tmp_path, "--multilabel", "--passes", 3, "--quiet")
    assert thresher.load(tmp_path / "model").classes.tolist() == [1, 2, 3]
    write_shards(tmp_path / "rows", *rows_of(classes=3))
    rows = str(tmp_path / "rows" / "*.svm")
    told = trained(rows, tmp_path, code=2)
    assert "labels must be -1 and 1" in told.stderr
    trained(rows, tmp_path, "--multiclass", "--quiet")
    assert thresher.load(tmp_path / "model").classes.tolist() == [0, 1, 2]


def test_names_are_kept_or_not(tmp_path):
    (tmp_path / "a.vw").write_text("1 |f red\n-1 |f blue\n" * 50)
    for more, named in (([], True), (["--no-names"], False)):
        trained(tmp_path / "a.vw", tmp_path, "--quiet", *more)
        assert bool(thresher.load(tmp_path / "model").names) is named


def test_bad_lines_are_counted_and_told(shards, tmp_path):
    folder = tmp_path / "rows"
    shutil.copytree(os.path.dirname(shards), folder)
    with (folder / "rows-2.svm").open("a") as file:
        file.write("1 x:1\n1 1:1 1:\n")
    rows = str(folder / "*.svm")
    told = trained(rows, tmp_path, code=1)
    assert "rows-2.svm:101:3" in told.stderr
    assert not (tmp_path / "model").exists()
    told = trained(rows, tmp_path, "--on-bad-line", "skip")
    assert "warning: 2 bad lines left out; the first: " in told.stderr
    told = trained(rows, tmp_path, "--on-bad-line", "skip", "--json")
    assert facts_of(told)[-1]["bad_lines"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--l1", "1e9"], "all weights are zero"),
        (
            ["--rule", "stabilized", "--variant", "paper", "--loss", "hinge", "--paths", "8",
             "--burst", "1", "--passes", "20"],
            "gravity is 0",
        ),
        (
            ["--rule", "truncated-gradient", "--loss", "squared", "--eta0", "0.6", "--rounds",
             "4", "--passes", "4"],
            "training diverges",
        ),
    ],
)  # fmt: skip
def test_warnings_are_told_once(shards, tmp_path, options, message):
    for more in ([], ["--quiet"]):
        told = trained(shards, tmp_path, *options, *more)
        assert told.stderr.count(message) == 1
    events = facts_of(trained(shards, tmp_path, *options, "--json"))
    assert [message in facts.get("message", "") for facts in events].count(True) == 1
    assert {facts["event"] for facts in events} == {"stage", "warning", "done"}


def test_what_others_print_stays_off_standard_output(capsys):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    watcher = shown(False, True, 1)
    with contextlib.redirect_stdout(sys.stderr), warnings_told(watcher):
        print("(raylet) A worker died")
        watcher.tell("note", message="a worker was lost")
    for number, handler in before.items():
        signal.signal(number, handler)
    out, told = capsys.readouterr()
    assert json.loads(out) == {"event": "note", "message": "a worker was lost"}
    assert told == "(raylet) A worker died\n"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--ray", "nonsense"], 1, "--ray must be"),
        (["--ray", "127.0.0.1:1"], 1, "no Ray cluster can be used at 127.0.0.1:1"),
        (["--rounds", "2"], 2, "--rounds needs --ray ADDRESS, or --workers 0"),
        (["--workers", "0", "--valid", "x"], 2, "--valid does not go with"),
        (["--workers", "0", "--every", "5s"], 2, "--every is a number of stages"),
        (["--workers", "0", "--mode", "columns"], 2, "--mode must be average"),
        (["--workers", "0", "--rule", "hard-threshold"], 2, "does not learn on a cluster"),
        (["--workers", "0", "--class-weight", "7:2"], 2, "which are no classes"),
        (["--workers", "0", "--on-bad-line", "quarantine=q"], 2, "many workers cannot write"),
        (["--workers", "0", "--parts", "100000"], 2, "--parts must be at most"),
        (["--workers", "0", "--checkpoint", "/dev/null"], 1, "this is a file"),
        (["--workers", "0", "--checkpoint", "/proc/no/folder"], 1, "/proc/no"),
    ],
)
def test_what_cannot_be_is_one_line(shards, tmp_path, options, code, message):
    told = called("train", shards, "-m", tmp_path / "model", *options, code=code)
    *notes, last = told.stderr.splitlines()
    assert message in last
    assert all("connecting to Ray" in note or "parts of 4 files" in note for note in notes)
    assert told.stdout == ""
    assert not list(tmp_path.iterdir())


def test_data_that_are_not_there_or_to_be_overwritten(shards, tmp_path):
    told = trained(tmp_path / "absent-*.svm", tmp_path, code=1)
    assert len(told.stderr.splitlines()) == 1
    first = shards.replace("*", "0")
    content = Path(first).read_bytes()
    told = called("train", shards, "-m", first, "--workers", 0, code=2)
    assert "cannot be an output too" in told.stderr
    told = trained(shards, tmp_path, "--checkpoint", tmp_path / "model", code=2)
    assert "is the file of --model too" in told.stderr
    assert Path(first).read_bytes() == content


def test_files_without_rows_are_no_parts(shards, tmp_path):
    trained(shards, tmp_path, "--quiet")
    expected = (tmp_path / "model").read_bytes()
    folder = tmp_path / "rows"
    shutil.copytree(os.path.dirname(shards), folder)
    (folder / "rows-1a.svm").touch()
    trained(str(folder / "*.svm"), tmp_path, "--quiet")
    assert (tmp_path / "model").read_bytes() == expected
    for file in folder.iterdir():
        file.write_text("")
    assert "no rows to learn from" in trained(str(folder / "*.svm"), tmp_path, code=1).stderr


def test_a_checkpoint_is_gone_on_from_or_left_alone(shards, tmp_path):
    folder = tmp_path / "c"
    how = "--passes", 4, "--checkpoint", folder, "--quiet"
    trained(shards, tmp_path, *how)
    expected = (tmp_path / "model").read_bytes()
    assert "--resume" in trained(shards, tmp_path, *how, code=1).stderr
    trained(shards, tmp_path, *how, "--resume")  # after its end
    assert (tmp_path / "model").read_bytes() == expected
    with held(str(folder)):
        assert "another run is using" in trained(shards, tmp_path, *how, "--resume", code=1).stderr
    told = trained(shards, tmp_path, *how, "--resume", "--l1", 7, code=1)
    assert "l1 was" in told.stderr


@pytest.mark.parametrize("kept", [True, False])
def test_control_c(shards, tmp_path, kept):
    """With a folder, it ends behind a stage; without one, at once."""
    folder = tmp_path / "c"
    command = [*THRESHER, "train", shards, "-m", tmp_path / "model", "--workers", "0", "--json"]
    command += ["--passes", "100000", *(["--checkpoint", folder] if kept else [])]
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "4 parts of 4 files" in json.loads(process.stdout.readline())["message"]
        assert json.loads(process.stdout.readline())["stage"] == 1
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not (tmp_path / "model").exists()
    if kept:
        assert f"{folder} holds what was learned, and --resume goes on from it" in told
        assert (folder / "committed.json").exists()
    else:
        assert told == "interrupted\n"
