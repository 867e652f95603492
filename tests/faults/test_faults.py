"""Calls of the system that fail, and power cuts: a part of `make faults`."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import thresher
from faults import __main__ as program
from faults import inputs, library
from faults.disk import Change, Disk, File, events
from faults.operation import Operation
from faults.operations import OPERATIONS
from faults.parts import Part
from faults.swept import SLICE, swept

TESTS = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not library.works(), reason="the library cannot be preloaded")


def run(*arguments):
    """Run a part of the faults in a process with the preloaded library; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "faults", *arguments],
        env={**library.environment(), "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def results(folder):
    return {file.stem: json.loads(file.read_text()) for file in Path(folder).glob("*.json")}


def test_a_part_of_all_faults(tmp_path):
    (tmp_path / "faults.json").write_text("of all")
    run("--slice", "--results", tmp_path)
    assert (tmp_path / "faults.json").read_text() == "of all"
    found = results(tmp_path / "slice")
    assert found["faults"]["points"] > 60
    assert found["faults"]["pairs"] == len(SLICE) * len(library.FAULTS)
    assert found["faults"]["wrong"] == found["faults"]["known"]
    assert found["power"]["states"] > 5
    assert found["power"]["wrong"] == 0


def test_all_operations_succeed_without_a_fault():
    assert run("--references").strip() == ""


@pytest.mark.parametrize("words", [("--only", "grind"), ("--fault", "disc")])
def test_a_name_without_an_operation_or_a_fault_is_an_error(monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["faults", *words])
    with pytest.raises(SystemExit):
        program.main()
    assert f"starts with {words[1]}" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("grind", "rows.svm"), ("predict", "missing", "rows.svm")])
def test_a_sweep_whose_reference_fails_is_a_failure(tmp_path, monkeypatch, words):
    monkeypatch.setitem(OPERATIONS, "misspelled", Operation(words, inputs.rows))
    found = swept("misspelled", "", False, 1, tmp_path, 60)
    failure, sums = found["failures"][0], found["operations"]["misspelled"]
    assert failure["operation"] == "misspelled"
    assert "it fails without a fault" in failure["message"]
    assert (sums["points"], sums["wrong"], found["wrong"]) == (0, 1, 1)
    monkeypatch.setattr("faults.swept.sweep", lambda *_: None)  # the name is repaired
    assert swept("misspelled", "", False, 1, tmp_path, 60)["failures"] == []


def test_an_operation_that_writes_other_bytes_each_time_is_a_failure(tmp_path, monkeypatch):
    def random():
        Path("out").write_bytes(os.urandom(8))
        return ""

    monkeypatch.setitem(OPERATIONS, "random", Operation(random, inputs.rows))
    found = swept("random", "", False, 1, tmp_path, 60)
    assert "out has other bytes" in found["failures"][0]["message"]


# ---- records -------------------------------------------------------------------------------------


def test_points_of_earlier_runs_stay_in_the_count(tmp_path):
    file = tmp_path / "faults.json"
    assert program._before(file, again=False) == {"since": thresher.__version__}
    file.write_text(json.dumps({"points": 90, "known": 4, "since": "0.0.1", "only_counts": True}))
    assert program._before(file, again=False) == {"since": "0.0.1", "earlier": 86}
    file.write_text(json.dumps({"points": 9, "known": 0, "since": "0.0.1", "earlier": 86}))
    assert program._before(file, again=False) == {"since": "0.0.1", "earlier": 86}
    assert program._before(file, again=True) == {"since": thresher.__version__}


def test_failed_power_cuts_of_earlier_code_stay_in_the_count(tmp_path):
    file = tmp_path / "power.json"

    def record(found, failures, again=False):
        facts = program.cuts_so_far({"states": 9, **found}, failures, file, again)
        file.write_text(json.dumps(facts))
        return facts["tried"] + facts["earlier"], facts["failed"], facts["failures"]

    assert record({"wrong": 0}, []) == (9, 0, [])
    file.write_text(json.dumps({"prefixes": 5, "wrong": 1, "failures": ["x"], "since": "0.0.1"}))
    assert record({"wrong": 2}, ["y", "z"]) == (14, 3, ["x", "y", "z"])
    assert record({"wrong": 1}, ["y"]) == (14, 2, ["x", "y"])  # the same code is tried again
    facts = json.loads(file.read_text())
    assert facts["since"] == "0.0.1"
    file.write_text(json.dumps({**facts, "code": "of another state"}))
    assert record({"wrong": 0}, []) == (23, 2, ["x", "y"])
    assert record({"wrong": 0}, [], again=True) == (9, 0, [])


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


def names_after(folder, count):
    disk = Disk(folder)
    for number in range(count):
        disk._change(Change(added=((f"{folder}/{number}", File()),)))
    return {"".join(sorted(state)) for state in disk.states()}


def test_names_that_a_power_cut_leaves(tmp_path):
    assert names_after(tmp_path, 3) == {"", "0", "1", "2", "01", "02", "12", "012"}
    first = {"012345"[:count] for count in range(7)}
    assert names_after(tmp_path, 6) == first | set("12345")


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


def test_a_run_without_a_fault_that_is_wrong_is_kept(tmp_path):
    part = Part(tmp_path, "train, table", "no memory")
    assert part.add(point(1))
    assert not part.add(point(2, hit=False, wrong=["it fails"]))
    again = Part(tmp_path, "train, table", "no memory")
    assert again.counts() == {"points": 2, "wrong": 1, "known": 0, "unfinished": 0}
    assert list(again.numbers()) == [2]
    assert not again.add(point(2, hit=False))
    assert again.counts() == {"points": 1, "wrong": 0, "known": 0, "unfinished": 0}
