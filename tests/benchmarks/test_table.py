"""The runner of `make bench`, with lines that need no data."""

import doctest
import importlib
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from speed import page, peers, results, table
from speed.__main__ import main
from speed.areas import areas, lines_of
from speed.line import Line, Skipped, Timed, measure
from speed.machine import machine

from support.speed_lines import BROKEN, GOOD, MISSING


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_run_prints_a_table_and_writes_json(package, tmp_path, capsys):
    file = tmp_path / "out.json"
    name = package("fakes", good=GOOD, helper="x = 1", missing=MISSING)
    assert main(["--repeats", "2", "--json", str(file)], name) == 0
    out, err = capsys.readouterr()
    heads, _, area, fit, *_ = out.splitlines()
    assert heads.split()[:5] == ["what", "a", "user", "calls", "ours"]
    assert area == "[good]"
    assert fit.split("  ")[0] == "fit of small rows"
    for cell in ("1.00 s", "4.50 s", "4.50x", "4.5x", "yes", "a peer 1.0", "losses 0.5 and 0.5"):
        assert cell in fit
    assert "at most 1.5" in out
    assert "the loop (the unit)" in out
    assert "skipped: nobody is not installed" in out
    assert "skipped: a_peer_that_nobody_has is not installed; make bench-peers" in out
    assert out.splitlines()[-1].startswith("5 lines: 2 reached, 1 not reached, 2 skipped; measured")
    assert "good: fit of small rows: 4.50x (must: 4.5x)" in err
    kept = json.loads(file.read_text())
    assert kept["full"] is False
    assert kept["machine"]["cores"] >= 1
    assert kept["peers"]["scikit-learn"][0].isdigit()
    first, second = results.results_in(kept)[:2]
    assert (first.ours, first.peer, first.ratio, first.reached) == (1.0, 4.5, 4.5, True)
    assert (second.ratio, second.reached, second.unit) == (2.0, False, True)


def test_only_takes_areas_and_parts_of_names(package, capsys):
    name = package("chosen", good=GOOD, other=GOOD.replace("fit", "predict"))
    assert main(["--only", "OF THE LOOP", "--repeats", "1"], name) == 0
    out = capsys.readouterr().out
    assert "fit in units of the loop" in out
    assert "predict in units of the loop" in out
    assert "rows" not in out
    assert main(["--only", "other", "--only", "rows", "--full"], name) == 0
    out = capsys.readouterr().out
    assert "predict of large rows" in out
    assert "fit" not in out.replace("predict", "")
    assert main(["--only", "nothing has this"], name) == 1
    assert "no line has nothing has this" in capsys.readouterr().err


def test_a_failing_check_is_an_error_that_names_the_line(package, capsys):
    assert main(["--repeats", "1"], package("broken", wrong=BROKEN)) == 1
    out, err = capsys.readouterr()
    assert "error: wrong: fit that is wrong: the check says: loss 0.7 is above 0.5" in err
    assert "error: wrong: fit that ends: ZeroDivisionError: division by zero" in err
    assert "error: wrong: lines of wrong: OSError: no file of rows" in err
    assert "fit that works" in out  # the other lines are measured
    assert "4 lines: 1 reached, 3 failed" in out


def test_the_page_is_not_written_from_a_part_of_the_lines(package, capsys):
    with pytest.raises(SystemExit):
        main(["--page", "--only", "good"], package("partly", good=GOOD))
    assert "--page needs all lines" in capsys.readouterr().err


def test_nothing_is_written_if_a_line_failed(package, monkeypatch):
    monkeypatch.setattr("speed.__main__.write_page", lambda kept: pytest.fail("written"))
    monkeypatch.setattr(results, "file_of", lambda kept: pytest.fail("written"))
    assert main(["--repeats", "1", "--page"], package("failing", wrong=BROKEN)) == 1


def test_data_of_a_line_is_released_before_the_next(package, capsys):
    text = """
import weakref
from speed.line import Line, Timed
class Data:
    pass
def lines(full):
    kept = None
    for k in range(3):
        assert kept is None or kept() is None, "the data is still there"
        data = Data()
        kept = weakref.ref(data)
        yield Line(f"line {k}", lambda d=data: Timed(1.0), lambda d=data: Timed(1.0), "peer", 0.0)
        del data
"""
    assert main(["--repeats", "1"], package("releasing", area=text)) == 0
    assert "3 lines: 3 reached" in capsys.readouterr().out


def test_repeats_end_at_the_limit(monkeypatch):
    calls = []
    line = Line("a", lambda: calls.append(1), lambda: Timed(1.0, None), "b", 1.0)
    measure(line, repeats=5, limit=0.0)
    assert len(calls) == 2
    measure(line, repeats=5)
    assert len(calls) == 7
    calls.clear()
    monkeypatch.setattr("speed.line.LEAST", 9.5)
    measure(line, repeats=5)
    assert len(calls) == 10


def test_areas_are_modules_with_lines(package):
    name = package("named", b=GOOD, a=MISSING, data="def rows(): ...", empty="")
    assert areas(name) == ["a", "b"]
    found = list(lines_of("a", False, name))
    assert found == [Skipped("a", peers.missing("a_peer_that_nobody_has"))]
    with pytest.raises(ModuleNotFoundError):  # a module of ours is no peer
        list(lines_of("absent", False, name))


def test_the_page_keeps_the_text_around_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PICTURE", tmp_path / "history.svg")
    found = [
        results.Result("fit", "fit a|b", "peer 1", 2.0, False, 1.0, 3.0, 3.0, True, "same loss"),
        results.Result("fit", "absent", skipped="no peer"),
    ]
    kept = results.record(found, full=True)
    file = tmp_path / "speed.md"
    file.write_text(f"# Title\n\n{page.BEGIN}\nold\n{page.END}\n\n## Rest\n")
    for _ in range(2):
        page.write_page(kept, file)
    written = file.read_text()
    assert written.startswith("# Title\n")
    assert written.endswith("## Rest\n")
    assert "old" not in written
    assert "| fit a\\|b | 1.00 s | 3.00 s | 3.00x | 2x | yes | peer 1 | same loss |" in written
    assert f"scikit-learn {kept['peers']['scikit-learn']}" in written
    assert kept["machine"]["cpu"] in written
    assert "speed-history" not in written
    page.PICTURE.touch()
    assert "plots/speed-history.svg" in page.section(kept)
    file.write_text("no marks")
    with pytest.raises(ValueError, match="no lines"):
        page.write_page(kept, file)


def test_the_page_of_the_project_has_the_marks():
    text = page.PAGE.read_text(encoding="utf-8")
    assert text.index(page.BEGIN) < text.index(page.END)


def test_the_file_is_named_by_machine_and_version(tmp_path):
    kept = {
        "machine": {"cpu": "AMD EPYC", "cores": 2},
        "version": "0.1.0",
        "commit": "abc",
        "changed": False,
        "full": True,
    }
    assert results.file_of(kept, tmp_path).name == "speed-amd-epyc-2cores-0.1.0-abc.json"


def test_the_machine_is_described_without_proc(monkeypatch):
    assert machine()["cpu"]
    monkeypatch.setattr("speed.machine._read", lambda file: "")
    assert machine()["instruction_sets"] == []


def test_peers_are_found_here_and_in_processes(monkeypatch, tmp_path):
    (tmp_path / "a_fake_peer.py").write_text("x = 3")
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    peers.find()
    peers.find()
    assert sys.path.count(str(tmp_path)) == 1
    assert importlib.import_module("a_fake_peer").x == 3
    code = "import a_fake_peer; print(a_fake_peer.x)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "3\n"


def test_the_command_runs_as_a_module():
    env = {**os.environ, "PYTHONPATH": str(results.ROOT / "benchmarks")}
    command = [sys.executable, "-m", "speed", "--only", "no line has this", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert "--repeats" in run.stdout


@pytest.mark.parametrize("module", ["areas", "machine", "results", "table"])
def test_examples(module):
    assert doctest.testmod(importlib.import_module(f"speed.{module}")).failed == 0


def test_an_empty_summary():
    fake = SimpleNamespace(measured=True, reached=True, skipped="", failed="")
    assert table.summary([fake]) == "1 line: 1 reached"
