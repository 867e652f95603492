"""`thresher train --workers 0`: the computation of a cluster, in one process."""

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
from support.slices import sliced
from thresher.cli.render.progress import progress_for, warnings_shown
from thresher.distributed import fit
from thresher.distributed.engine.folder import locked_folder
from thresher.model.model import Model


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    X, y = rows_of()
    return write_shards(tmp_path_factory.mktemp("shards"), X, 2 * y - 1)


def trained(shards, tmp_path, *more, code=0):
    return called("train", shards, "-m", tmp_path / "model", "--workers", 0, *more, code=code)


def facts_of(done):
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    return [shown for shown in facts if shown["event"] != "note"]


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
    shown = trained(shards, tmp_path, *options)
    assert (tmp_path / "model").read_bytes() == before
    assert "slowest worker" in shown.stderr
    assert f"{model.nnz:,} nonzero weights" in shown.stdout


def test_the_command_line_and_fit_train_the_same_model(shards, tmp_path):
    trained(shards, tmp_path, "--rule", "forward-backward", "--passes", 2, "--seed", 3, "--quiet")
    found = thresher.ForwardBackwardClassifier(passes=2, shuffle=False, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(found, shards, workers=0)
    assert thresher.load(tmp_path / "model").weights.tobytes() == found.model_.weights.tobytes()


def test_multilabel_and_multiclass(tmp_path):
    for number, lines in enumerate(("1,2 1:1\n2 2:1\n", "3 3:1\n1,3 1:1 3:1\n")):
        (tmp_path / f"{number}.svm").write_text(lines * 30)
    trained(str(tmp_path / "*.svm"), tmp_path, "--multilabel", "--passes", 3, "--quiet")
    assert thresher.load(tmp_path / "model").classes.tolist() == [1, 2, 3]
    write_shards(tmp_path / "rows", *rows_of(classes=3))
    rows = str(tmp_path / "rows" / "*.svm")
    shown = trained(rows, tmp_path, code=2)
    assert "labels must be -1 and 1" in shown.stderr
    trained(rows, tmp_path, "--multiclass", "--quiet")
    assert thresher.load(tmp_path / "model").classes.tolist() == [0, 1, 2]


def test_names_and_no_names(tmp_path):
    (tmp_path / "a.vw").write_text("1 |f red\n-1 |f blue\n" * 50)
    for more, named in (([], True), (["--no-names"], False)):
        trained(tmp_path / "a.vw", tmp_path, "--quiet", *more)
        assert bool(thresher.load(tmp_path / "model").names) is named


def test_bad_lines_are_counted_and_reported(shards, tmp_path):
    folder = tmp_path / "rows"
    shutil.copytree(os.path.dirname(shards), folder)
    with (folder / "rows-2.svm").open("a") as file:
        file.write("1 x:1\n1 1:1 1:\n")
    rows = str(folder / "*.svm")
    shown = trained(rows, tmp_path, code=1)
    assert "rows-2.svm:101:3" in shown.stderr
    assert not (tmp_path / "model").exists()
    shown = trained(rows, tmp_path, "--on-bad-line", "skip")
    assert "warning: 2 bad lines left out; the first: " in shown.stderr
    shown = trained(rows, tmp_path, "--on-bad-line", "skip", "--json")
    assert facts_of(shown)[-1]["bad_lines"] == 2


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
def test_each_warning_is_shown_once(shards, tmp_path, options, message):
    for more in ([], ["--quiet"]):
        shown = trained(shards, tmp_path, *options, *more)
        assert shown.stderr.count(message) == 1
    events = facts_of(trained(shards, tmp_path, *options, "--json"))
    assert [message in facts.get("message", "") for facts in events].count(True) == 1
    assert {facts["event"] for facts in events} == {"stage", "warning", "done"}


def test_output_of_ray_goes_to_standard_error(capsys):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    observer = progress_for(False, True, 1)
    with contextlib.redirect_stdout(sys.stderr), warnings_shown(observer):
        print("(raylet) A worker died")
        observer.tell("note", message="a worker was lost")
    for number, handler in before.items():
        signal.signal(number, handler)
    out, shown = capsys.readouterr()
    assert json.loads(out) == {"event": "note", "message": "a worker was lost"}
    assert shown == "(raylet) A worker died\n"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--ray", "nonsense"], 1, "--ray must be"),
        (["--ray", "127.0.0.1:1"], 1, "no Ray cluster can be used at 127.0.0.1:1"),
        (["--rounds", "2"], 2, "--rounds needs --ray ADDRESS, or --workers 0"),
        (["--workers", "0", "--valid", "x"], 2, "--valid cannot be used with"),
        (["--workers", "0", "--every", "5s"], 2, "--every is a number of stages"),
        (["--workers", "0", "--mode", "columns"], 2, "--mode must be average"),
        (["--workers", "0", "--rule", "hard-threshold"], 2, "cannot be trained on a cluster"),
        (["--workers", "0", "--class-weight", "7:2"], 2, "which are not classes"),
        (["--workers", "0", "--on-bad-line", "quarantine=q"], 2, "many workers cannot write"),
        (["--workers", "0", "--parts", "100000"], 2, "--parts must be at most"),
        (["--workers", "0", "--checkpoint", "/dev/null"], 1, "this is a file"),
        (["--workers", "0", "--checkpoint", "/proc/no/folder"], 1, "/proc/no"),
    ],
)
def test_invalid_options(shards, tmp_path, options, code, message):
    shown = called("train", shards, "-m", tmp_path / "model", *options, code=code)
    *notes, last = shown.stderr.splitlines()
    assert message in last
    assert all("connecting to Ray" in note or "parts of 4 files" in note for note in notes)
    assert shown.stdout == ""
    assert not list(tmp_path.iterdir())


def test_missing_data_and_data_that_would_be_overwritten(shards, tmp_path):
    shown = trained(tmp_path / "absent-*.svm", tmp_path, code=1)
    assert len(shown.stderr.splitlines()) == 1
    first = shards.replace("*", "0")
    content = Path(first).read_bytes()
    shown = called("train", shards, "-m", first, "--workers", 0, code=2)
    assert "is an input file" in shown.stderr
    shown = trained(shards, tmp_path, "--checkpoint", tmp_path / "model", code=2)
    assert "is also the file of --model" in shown.stderr
    assert Path(first).read_bytes() == content


def test_files_without_rows_are_not_parts(shards, tmp_path):
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


def test_resume_from_a_checkpoint(shards, tmp_path):
    folder = tmp_path / "c"
    how = "--passes", 4, "--checkpoint", folder, "--keep-checkpoint", "--quiet"
    trained(shards, tmp_path, *how)
    expected = (tmp_path / "model").read_bytes()
    assert "--resume" in trained(shards, tmp_path, *how, code=1).stderr
    trained(shards, tmp_path, *how, "--resume")  # after the end
    assert (tmp_path / "model").read_bytes() == expected
    with locked_folder(str(folder)):
        assert "another run is using" in trained(shards, tmp_path, *how, "--resume", code=1).stderr
    shown = trained(shards, tmp_path, *how, "--resume", "--l1", 7, code=1)
    assert "l1 was" in shown.stderr


def test_the_checkpoint_is_removed_after_the_model_is_saved(shards, tmp_path, monkeypatch):
    folder = tmp_path / "c"
    with monkeypatch.context() as patch:

        def fail(self, path):
            raise OSError(28, "No space left on device", str(path))

        patch.setattr(Model, "save", fail)
        trained(shards, tmp_path, "--checkpoint", folder, code=1)
    assert (folder / "committed.json").exists()
    trained(shards, tmp_path, "--checkpoint", folder, "--resume")
    assert (tmp_path / "model").exists()
    assert not folder.exists()


def test_a_checkpoint_that_cannot_be_removed_is_a_warning(shards, tmp_path, monkeypatch):
    def fail(path, with_dataset):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("thresher.distributed.cluster_fit.remove_checkpoint", fail)
    told = trained(shards, tmp_path, "--checkpoint", tmp_path / "c")
    assert f"warning: the checkpoint {tmp_path / 'c'} could not be removed" in told.stderr
    assert thresher.load(tmp_path / "model").nnz > 0


def test_a_checkpoint_to_keep_needs_a_folder(shards, tmp_path):
    told = trained(shards, tmp_path, "--keep-checkpoint", code=2)
    assert "--keep-checkpoint needs --checkpoint" in told.stderr


def test_a_run_without_a_cluster_can_keep_its_checkpoint(shards, tmp_path):
    model = tmp_path / "model"
    for more in ([], ["--keep-checkpoint"]):
        called("train", shards, "-m", model, "--every", "0s", "--quiet", *more)
        assert Path(f"{model}.checkpoint").exists() == bool(more)


@pytest.mark.parametrize("kept", sliced([True, False], 0))
def test_control_c(shards, tmp_path, kept):
    """With a checkpoint folder, it ends after a stage; without one, at once."""
    folder = tmp_path / "c"
    command = [*THRESHER, "train", shards, "-m", tmp_path / "model", "--workers", "0", "--json"]
    command += ["--passes", "100000", *(["--checkpoint", folder] if kept else [])]
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "4 parts of 4 files" in json.loads(process.stdout.readline())["message"]
        assert json.loads(process.stdout.readline())["stage"] == 1
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not (tmp_path / "model").exists()
    if kept:
        assert f"the checkpoint is {folder}; --resume continues from it" in shown
        assert (folder / "committed.json").exists()
    else:
        assert shown == "interrupted\n"
