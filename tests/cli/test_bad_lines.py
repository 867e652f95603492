"""Bad lines that are skipped, counted, or quarantined."""

import json
import os
import random
import subprocess

import pytest

import thresher
from support.files import THRESHER, called, svmlight, vw
from support.syncs import watched
from thresher.data.bad_lines import BadLines


def strewn(path, rows=400, seed=0):
    """Write good and bad lines to a file; return the bad lines and the good lines."""
    rng = random.Random(seed)
    lines, bad = [], []
    for number, line in enumerate(svmlight(path, rows=rows).read_text().splitlines()):
        lines.append(line)
        if rng.random() < 0.1:
            kind = rng.choice(["1 x:1", "what", "1 1:nan", "1 3:1:1", "", "é 1:1"])
            bad.append(f"{kind} {number}:")
            lines.append(bad[-1])
    path.write_text("\n".join(lines) + "\n")
    return [line.encode() for line in bad]


def test_the_model_is_the_same_without_the_skipped_lines(tmp_path):
    data, clean = tmp_path / "rows.svm", svmlight(tmp_path / "clean.svm")
    bad = strewn(data)
    skipped, plain = tmp_path / "skipped.thresher", tmp_path / "plain.thresher"
    done = called("train", data, "-m", skipped, "--on-bad-line", "skip", "--passes", "3", "--quiet")
    assert done.stderr.startswith(f"warning: {len(bad)} bad lines left out; the first: {data}:")
    called("train", clean, "-m", plain, "--passes", "3", "--quiet")
    assert thresher.load(skipped).weights.tobytes() == thresher.load(plain).weights.tobytes()
    events = called("train", data, "-m", skipped, "--on-bad-line", "skip", "--json").stdout
    assert json.loads(events.splitlines()[-1])["bad_lines"] == len(bad)


@pytest.mark.parametrize("options", [[], ["--multiclass"], ["--cache", "rows.cache"]])
def test_each_bad_line_is_quarantined_once(tmp_path, options, monkeypatch):
    """This holds even if rows are read several times: for classes, in passes, for names."""
    monkeypatch.chdir(tmp_path)
    data, aside = tmp_path / "rows.svm", tmp_path / "aside.txt"
    bad = strewn(data)
    policy = ["--on-bad-line", f"quarantine={aside}"]
    called("train", data, "-m", "m", *policy, "--passes", "3", *options, "--quiet")
    assert aside.read_bytes().splitlines() == bad
    if not options:  # the lines of two files, each once
        aside.unlink()
        called("train", data, data, "-m", "m", *policy, "--passes", "2", "--quiet")
        assert aside.read_bytes().splitlines() == bad * 2


def test_quarantine_of_other_commands(tmp_path):
    data, aside = tmp_path / "rows.svm", tmp_path / "aside.txt"
    bad = strewn(data)
    policy = ["--on-bad-line", f"quarantine={aside}", "--quiet"]
    called("convert", data, tmp_path / "clean.vw", *policy)
    assert aside.read_bytes().splitlines() == bad
    called("train", tmp_path / "clean.vw", "-m", tmp_path / "m", "--quiet", "--bits", "10")
    aside.unlink()
    called("predict", tmp_path / "m", data, "-o", tmp_path / "out", *policy)
    assert aside.read_bytes().splitlines() == bad
    assert len((tmp_path / "out").read_text().splitlines()) == 400


def test_a_checkpoint_is_written_after_the_quarantine_file(tmp_path, monkeypatch):
    """Its lines and its name are on the disk before the checkpoint counts them."""
    aside = tmp_path / "aside.txt"
    bad = BadLines(f"quarantine={aside}")
    bad.add(0, 1, "what", b"a line")
    bad.end_block()
    found = watched(monkeypatch)
    assert bad.state[2] == len(b"a line\n")
    assert found == [str(aside), str(tmp_path)]


@pytest.mark.parametrize("lost", ["all", "a byte"])
def test_a_resumed_run_needs_the_quarantine_file(tmp_path, lost):
    data, aside = tmp_path / "rows.svm", tmp_path / "aside.txt"
    strewn(data)
    words = ["train", data, "-m", tmp_path / "m", "--on-bad-line", f"quarantine={aside}", "--quiet"]
    words += ["--checkpoint", tmp_path / "run", "--every", "0s", "--keep-checkpoint"]
    called(*words)
    content = aside.read_bytes()
    aside.unlink() if lost == "all" else aside.write_bytes(content[:-1])
    done = called(*words, "--resume", "--passes", "3", code=1)
    size = "is missing" if lost == "all" else f"has {len(content) - 1:,} bytes"
    assert done.stderr == (
        f"{aside}: the file of bad lines {size}; the run to be continued has written "
        f"{len(content):,} bytes to it; put the file back, or begin the run again without "
        "--resume\n"
    )
    aside.write_bytes(content + b"more")
    called(*words, "--resume", "--passes", "3")
    assert aside.read_bytes() == content + b"more"


def test_each_bad_line_is_quarantined_once_after_a_resume(tmp_path):
    data, aside = tmp_path / "rows.svm", tmp_path / "aside.txt"
    bad = strewn(data, rows=40_000)
    arguments = [
        data,
        "-m",
        tmp_path / "m",
        "--on-bad-line",
        f"quarantine={aside}",
        "--passes",
        "5",
    ]
    process = subprocess.Popen(
        [*THRESHER, "train", *arguments, "--every", "0s", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if json.loads(line)["event"] == "checkpoint":
            break
    process.kill()
    process.communicate()
    assert (tmp_path / "m.checkpoint").exists()
    done = called("train", *arguments, "--resume", "--json")
    assert aside.read_bytes().splitlines() == bad
    assert json.loads(done.stdout.splitlines()[-1])["bad_lines"] == len(bad)
    resumed = (tmp_path / "m").read_bytes()
    called("train", *arguments, "--quiet")
    assert (tmp_path / "m").read_bytes() == resumed


def test_bad_lines_of_vw(tmp_path):
    data, aside = vw(tmp_path / "rows.vw", rows=50), tmp_path / "aside.txt"
    with open(data, "a") as file:
        file.write("1 |a b:x\n1 no bar\n1 |a b\n")
    done = called("train", data, "-m", tmp_path / "m", "--on-bad-line", f"quarantine={aside}")
    assert aside.read_text() == "1 |a b:x\n1 no bar\n"
    assert "2 bad lines left out; the first: " in done.stderr
    assert f"{data}:51:8:" in done.stderr


def test_bad_lines_to_an_open_file(tmp_path):
    """It is not emptied, and not removed."""
    data = vw(tmp_path / "rows.vw", rows=50)
    with open(data, "a") as file:
        file.write("1 no bar\n")
    log = tmp_path / "log"
    log.write_text("before\n")
    words = ["train", data, "-m", tmp_path / "m", "--quiet", "--passes", 3]
    words += ["--on-bad-line", "quarantine=/dev/stdout"]
    with open(log, "a") as out:
        subprocess.run([*THRESHER, *map(str, words)], stdout=out, check=True)
    assert log.read_text() == "before\n1 no bar\n"
    called(*words[:-1], "quarantine=/dev/null")


def test_a_full_device_of_bad_lines_stays(tmp_path):
    data = vw(tmp_path / "rows.vw", rows=50)
    with open(data, "a") as file:
        file.write("1 no bar\n")
    words = ["train", data, "-m", tmp_path / "m", "--on-bad-line", "quarantine=/dev/full"]
    assert "/dev/full: No space left on device" in called(*words, code=1).stderr
    assert os.path.exists("/dev/full")


ROWS = {
    "vw": "1 |a b\n-1 |a c\n| u\n1 |a e:x\n| v\n1 |a d\n1 |a f:y\n",
    "csv": 'y,a,b\n1,2,u\n0,3,u\n,4,"u,\nv"\n1,2,u,3\n,5,u\n1,6,u\n',
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("passes", [1, 3])
def test_rows_without_labels_among_malformed_lines(tmp_path, kind, passes):
    """All are counted once and copied, in their order, and the first one is named."""
    data, aside = tmp_path / f"rows.{kind}", tmp_path / "aside.txt"
    data.write_text(ROWS[kind])
    options = ["--on-bad-line", f"quarantine={aside}", "--passes", passes, "--rule", "ftrl"]
    done = called("train", data, "-m", tmp_path / "m", *options)
    number, first, copied = {
        "vw": (4, 3, "| u\n1 |a e:x\n| v\n1 |a f:y\n"),
        "csv": (3, 4, ',4,"u,\nv"\n1,2,u,3\n,5,u\n'),
    }[kind]
    assert f"{number} bad lines left out; the first: {data}:{first}:" in done.stderr
    assert aside.read_text() == copied
