"""Outputs of the command line: never partial, also on a full disk; inputs are kept."""

import os
import re
import resource
import signal
import subprocess

import pytest

import thresher
from support.files import THRESHER, called, svmlight, vw
from support.files import thresher as run

GOOD = "1 1:1 2:3\n-1 2:1\n"


def left(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- full disks ----------------------------------------------------------------------------------


def limited(size):
    """Return a function that limits the size of files of a process, as on a full disk."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "rows.svm", "-m", "full"],
        ["train", "rows.svm", "-m", "other.thresher", "--cache", "full"],
        ["predict", "model.thresher", "rows.svm", "-o", "full"],
        ["convert", "rows.svm", "full", "--to", "cache"],
        ["convert", "rows.svm", "full", "--to", "svmlight"],
        ["convert", "rows.svm", "full", "--to", "parquet"],
        ["convert", "rows.svm", "full", "--to", "csv"],
        ["convert", "rows.svm", "full.vw.gz"],
        ["train", "bad.svm", "-m", "other.thresher", "--on-bad-line", "quarantine=full"],
    ],
)
def test_full_disk(tmp_path, arguments):
    svmlight(tmp_path / "rows.svm", rows=1000)
    (tmp_path / "bad.svm").write_text(GOOD + "1 x\n" * 1000)
    called("train", tmp_path / "rows.svm", "-m", tmp_path / "model.thresher", "--quiet")
    before = left(tmp_path)
    name = next(word for word in arguments if "full" in word).removeprefix("quarantine=")
    done = run(*arguments, "--quiet", code=1, cwd=tmp_path, preexec_fn=limited(1000))
    lines = [line for line in done.stderr.splitlines() if not line.startswith("making")]
    assert len(lines) == 1, done.stderr
    assert re.fullmatch(rf"{name}: (cannot write: )?File too large", lines[0])
    assert [name for name in left(tmp_path) if name not in before] in ([], ["full"])
    assert ("full" in left(tmp_path)) == ("quarantine=full" in arguments)


@pytest.mark.parametrize("size", [0, 2, 5])
def test_a_quarantine_file_has_only_whole_lines(tmp_path, size):
    """On a full disk no empty file is left, and no half of a line."""
    (tmp_path / "bad.svm").write_text(GOOD + "1 x\n" * 3)
    policy = ["--on-bad-line", "quarantine=aside", "--quiet"]
    options = {"code": 1, "cwd": tmp_path, "preexec_fn": limited(size)}
    done = run("train", "bad.svm", "-m", "model", *policy, **options)
    assert done.stderr == "aside: File too large\n"
    assert left(tmp_path) == (["aside", "bad.svm"] if size == 5 else ["bad.svm"])
    assert size < 5 or (tmp_path / "aside").read_text() == "1 x\n"


def test_full_standard_output(tmp_path):
    data = svmlight(tmp_path / "rows.svm", rows=3000)
    called("train", data, "-m", tmp_path / "m.thresher", "--quiet")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*THRESHER, "predict", tmp_path / "m.thresher", data],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["standard output: No space left on device"]


def test_a_closed_pipe(tmp_path):
    data = svmlight(tmp_path / "rows.svm", rows=1000, repeat=20)
    called("train", data, "-m", tmp_path / "m.thresher", "--quiet")
    process = subprocess.Popen(
        [*THRESHER, "predict", tmp_path / "m.thresher", data],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(60)


# ---- inputs are not overwritten ------------------------------------------------------------------


def test_inputs_are_not_overwritten(tmp_path):
    """An input file is recognised under another name, too."""
    data, model = svmlight(tmp_path / "rows.svm"), tmp_path / "m.thresher"
    called("train", data, "-m", model, "--quiet")
    other = tmp_path / "link.svm"
    other.symlink_to(data)
    before = data.read_bytes(), model.read_bytes()
    for arguments in (
        ["train", data, "-m", other],
        ["train", other, "-m", data],
        ["train", data, "-m", tmp_path / "new", "--cache", data],
        ["train", data, "-m", tmp_path / "new", "--checkpoint", data, "--every", "0s"],
        ["train", data, "-m", tmp_path / "new", "--on-bad-line", f"quarantine={data}"],
        ["predict", model, data, "-o", other],
        ["convert", data, other, "--to", "svmlight"],
        ["train", data, "-m", tmp_path / "new", "--cache", model],
    ):
        done = called(*arguments, code=2)
        assert re.match(
            r".*(is an input file|is not a cache; it is not overwritten)", done.stderr
        ), arguments
    assert (data.read_bytes(), model.read_bytes()) == before
    assert left(tmp_path) == ["link.svm", "m.thresher", "rows.svm"]


def test_a_warning_if_rows_have_no_known_feature(tmp_path):
    """Rows with names, which have 64-bit numbers, for a model with few features."""
    data, model = svmlight(tmp_path / "rows.svm"), tmp_path / "m.thresher"
    called("train", data, "-m", model, "--quiet")
    done = called("predict", model, vw(tmp_path / "rows.vw", rows=20), "--as", "raw")
    scores = {line.split()[0] for line in done.stdout.splitlines()}
    assert [float(score) for score in scores] == [
        pytest.approx(thresher.load(model).intercept[0], rel=1e-6)
    ]


# ---- pipes and open files ------------------------------------------------------------------------

TRAIN = ["train", "rows.svm", "--quiet", "--rule", "ftrl"]
TUNE = ["tune", "rows.svm", "--quiet", "--grid", "l1=0.1,1"]


@pytest.mark.parametrize("words", [TRAIN, TUNE], ids=["train", "tune"])
def test_a_model_to_a_pipe_or_a_device(tmp_path, words):
    """There is no checkpoint beside it: that would be in /dev."""
    svmlight(tmp_path / "rows.svm")
    run(*words, "-m", "model", cwd=tmp_path)
    (tmp_path / "model").rename(tmp_path / "before")
    command = ["/bin/sh", "-c", 'exec "$@" -m /dev/fd/3 3>&1 >/dev/null', "sh", *THRESHER, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (tmp_path / "before").read_bytes()
    run(*words, "-m", "/dev/null", cwd=tmp_path)
    assert left(tmp_path) == ["before", "rows.svm"]


def test_a_checkpoint_beside_a_device_must_be_given(tmp_path):
    svmlight(tmp_path / "rows.svm")
    done = run(*TRAIN, "-m", "/dev/fd/1", "--every", "1s", cwd=tmp_path, code=1)
    assert "/dev/fd/1.checkpoint" in done.stderr
    run(*TRAIN, "-m", "/dev/null", "--every", "1s", "--checkpoint", "run", cwd=tmp_path)
    assert left(tmp_path) == ["rows.svm"]


@pytest.mark.parametrize("words", [TRAIN, TUNE], ids=["train", "tune"])
def test_an_interruption_without_a_place_for_a_checkpoint(tmp_path, words):
    svmlight(tmp_path / "rows.svm")
    many = ["--passes", "1000000", "-m", "/dev/null"]
    process = subprocess.Popen(
        [*THRESHER, *words, *many], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.communicate()[1] == "interrupted\n"
    assert left(tmp_path) == ["rows.svm"]


@pytest.mark.parametrize(
    "words",
    [
        ["train", "rows.svm", "-m", ""],
        ["tune", "rows.svm", "--grid", "l1=0.1,1", "-m", ""],
        ["look", "rows.svm", "--html", ""],
        ["train", "rows.svm", "-m", "model", "--checkpoint", ""],
    ],
)
def test_an_empty_name_of_an_output(tmp_path, words):
    svmlight(tmp_path / "rows.svm")
    done = run(*words, cwd=tmp_path, code=1)
    assert done.stderr == "the name of an output file is empty\n"
    assert left(tmp_path) == ["rows.svm"]


@pytest.mark.parametrize("words", [TRAIN, TUNE], ids=["train", "tune"])
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_messages_are_not_in_a_model_on_standard_output(tmp_path, words, options):
    svmlight(tmp_path / "rows.svm")
    words = [word for word in words if word != "--quiet"] + options
    run(*words, "-m", "model", cwd=tmp_path)
    command = [*THRESHER, *words, "-m", "/dev/stdout"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100)
    assert done.stdout == (tmp_path / "model").read_bytes()
    assert b"/dev/stdout" in done.stderr


# ---- inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["predict", "model", "rows.svm", "-o", "model"], "--output model is also the file"),
        (
            ["predict", "model", "rows.svm", "--on-bad-line", "quarantine=model"],
            "--on-bad-line model is also the file",
        ),
        ([*TRAIN, "--valid", "valid.svm", "-m", "valid.svm"], "valid.svm is an input file"),
        (
            [*TRAIN, "--valid", "valid.svm", "-m", "m", "--on-bad-line", "quarantine=valid.svm"],
            "valid.svm is an input file",
        ),
    ],
)
def test_an_output_is_no_input(tmp_path, words, names):
    svmlight(tmp_path / "rows.svm")
    svmlight(tmp_path / "valid.svm", seed=1)
    run(*TRAIN, "-m", "model", cwd=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = run(*words, cwd=tmp_path, code=2)
    assert names in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_minus_is_no_name_of_a_model(tmp_path):
    svmlight(tmp_path / "rows.svm")
    done = run(*TRAIN, "-m", "-", cwd=tmp_path, code=2)
    assert done.stderr == "--model -: give the name of a file, or /dev/stdout\n"


@pytest.mark.parametrize("kind", [svmlight, vw])
def test_names_of_files_that_are_not_utf_8(tmp_path, kind):
    usual = kind(tmp_path / "rows")
    odd = usual.rename(usual.with_name(os.fsdecode(b"rows \xff")))
    usual.write_bytes(odd.read_bytes())
    bad = os.fsdecode(b"bad \xff")
    (tmp_path / bad).write_text("1 1:x\n")
    for name, model in ((usual.name, "a"), (odd.name, os.fsdecode(b"m \xff"))):
        many = ["--passes", "3", "--rule", "ftrl", "--checkpoint", "run", "--every", "0s"]
        run("train", name, "-m", model, "--quiet", *many, cwd=tmp_path)
        run("predict", model, name, "-o", f"{model}.out", "--quiet", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / model).read_bytes()
    assert (tmp_path / "a.out").read_bytes() == (tmp_path / f"{model}.out").read_bytes()
    run("look", odd.name, cwd=tmp_path)
    done = run("train", bad, "-m", "b", "--format", "svmlight", cwd=tmp_path, code=1)
    assert "\\udcff:1:5: expected a finite number" in done.stderr
