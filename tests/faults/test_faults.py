"""Calls of the system that fail, and power cuts: a part of `make faults`."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import thresher
from faults import library
from faults.__main__ import _before
from faults.disk import Disk, events
from faults.parts import Part

TESTS = Path(__file__).resolve().parents[1]


def run(folder, *arguments):
    """Run a part of the faults in a process with the preloaded library; return its results."""
    done = subprocess.run(
        [sys.executable, "-m", "faults", "--slice", "--results", folder, *arguments],
        env={**library.environment(), "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {file.stem: json.loads(file.read_text()) for file in Path(folder).glob("*.json")}


def test_a_part_of_all_faults(tmp_path):
    found = run(tmp_path)
    assert found["faults"]["points"] > 40
    assert found["power"]["states"] > 5
    assert found["faults"]["wrong"] == found["faults"]["known"]
    assert found["power"]["wrong"] == 0


def test_points_of_earlier_runs_stay_in_the_count(tmp_path):
    file = tmp_path / "faults.json"
    assert _before(file, again=False) == {"since": thresher.__version__}
    file.write_text(json.dumps({"points": 90, "known": 4, "since": "0.0.1", "only_counts": True}))
    assert _before(file, again=False) == {"since": "0.0.1", "earlier": 86}
    file.write_text(json.dumps({"points": 9, "known": 0, "since": "0.0.1", "earlier": 86}))
    assert _before(file, again=False) == {"since": "0.0.1", "earlier": 86}
    assert _before(file, again=True) == {"since": thresher.__version__}


# ---- the simulated disk --------------------------------------------------------------------------


def states_after(folder, *changes):
    """Return all states after changes of the file `a`, which has the bytes "old" at first."""
    (folder / "a").write_bytes(b"old")
    disk = Disk(folder)
    for words in changes:
        content = words.pop() if words[0] == "write" else b""
        text = "\t".join(word.replace("~", str(folder)) for word in words)
        disk.apply(events(text.encode() + b"\n" + content)[0])
    return {tuple(sorted(state.items())) for state in disk.states()}


WRITTEN = [
    ["open", "3", str(os.O_WRONLY | os.O_CREAT), "~/b"],
    ["write", "3", "0", "4", b"news"],
]
SYNC, RENAME = ["sync", "3"], ["rename", "~/b", "~/a"]
FOLDER = [["open", "4", str(os.O_RDONLY), "~"], ["sync", "4"]]


@pytest.mark.parametrize(
    ("changes", "contents"),
    [
        ([*WRITTEN], {b"old"}),
        ([*WRITTEN, RENAME], {b"old", b"", b"ne", b"news"}),
        ([*WRITTEN, SYNC, RENAME], {b"old", b"news"}),
        ([*WRITTEN, SYNC, RENAME, *FOLDER], {b"news"}),
    ],
)
def test_what_a_power_cut_leaves(tmp_path, changes, contents):
    states = states_after(tmp_path, *([*words] for words in changes))
    assert {dict(state)["a"] for state in states} == contents


APPENDED = [
    ["open", "3", str(os.O_WRONLY | os.O_APPEND), "~/a"],
    ["write", "3", "0", "4", b"news"],
]


@pytest.mark.parametrize(
    ("changes", "contents"),
    [
        ([*APPENDED], {b"old", b"oldne", b"oldnews"}),
        ([*APPENDED, SYNC], {b"oldnews"}),
    ],
)
def test_what_a_power_cut_leaves_of_added_bytes(tmp_path, changes, contents):
    states = states_after(tmp_path, *([*words] for words in changes))
    assert {dict(state)["a"] for state in states} == contents


# ---- parts ---------------------------------------------------------------------------------------


def point(n, *, hit=True, wrong=()):
    return {"n": n, "hit": hit, "wrong": list(wrong), "message": "", "frames": []}


def test_a_part_goes_on_and_tries_wrong_points_again(tmp_path):
    part = Part(tmp_path, "train, table", "no memory")
    assert list(itertools.islice(part.numbers(), 3)) == [1, 2, 3]
    assert part.add(point(1))
    assert part.add(point(2, wrong=["hangs"]))
    part.write()
    again = Part(tmp_path, "train, table", "no memory")
    assert again.counts() == {"points": 2, "wrong": 1, "known": 0, "unfinished": 1}
    assert list(itertools.islice(again.numbers(), 3)) == [2, 3, 4]
    assert again.add(point(2))
    assert again.add(point(3))
    assert not again.add(point(4, hit=False))
    whole = Part(tmp_path, "train, table", "no memory")
    assert whole.counts() == {"points": 3, "wrong": 0, "known": 0, "unfinished": 0}
    assert not whole.is_due()
    assert list(Part(tmp_path, "train", "no memory", few=(2, 11)).numbers()) == [2, 11]
