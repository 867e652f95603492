"""The history of the table: files by machine and version, the picture, and asv."""

import doctest
import json
from dataclasses import replace

import pytest
from speed import history, results
from speed.results import Result

FIT = Result("fit", "fit, 47k", "peer", 4.0, False, 1.0, 5.0, 5.0, True, "same loss")
LOOP = Result("fit", "fit in units", "the loop", 1.2, True, 2.4, 1.0, 2.4, False)


def kept(commit, committed, *lines):
    """Return a record of some lines."""
    found = results.record(lines, full=False)
    return {**found, "commit": commit, "committed": committed, "changed": False}


@pytest.fixture
def records():
    slower = replace(FIT, ratio=4.5, peer=4.5)
    absent = Result("search", "search", skipped="no peer")
    return [
        kept("aaa", "2026-01-01 00:00:00 +0000", FIT),
        kept("bbb", "2026-02-01 00:00:00 +0000", slower, LOOP, absent),
    ]


def test_records_of_a_machine_come_by_the_dates_of_their_commits(records, tmp_path):
    for one in reversed(records):
        results.write(one, results.file_of(one, tmp_path))
    other = {**records[0], "machine": {"cpu": "other", "cores": 64}}
    results.write(other, results.file_of(other, tmp_path))
    full = {**records[0], "full": True}
    results.write(full, results.file_of(full, tmp_path))
    assert len(list(tmp_path.iterdir())) == 4
    name = results.short_name(records[0]["machine"])
    assert results.read_all(False, name, tmp_path) == records
    assert results.read_all(True, name, tmp_path) == [full]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_picture(records, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    files = [tmp_path / f"{k}{suffix}" for k in range(2)]
    for file in files:
        history.draw(records, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    if suffix == ".svg":
        text = files[0].read_text()
        for words in ("fit, 47k: 4.5 (must: 4)", "fit in units: 2.4 (must: at most 1.2)", "0-aaa"):
            assert words in text
        assert "search" not in text  # it was never measured


def test_the_functions_of_asv(records, tmp_path, monkeypatch):
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))
    from asv_lines.ratios import functions

    file = tmp_path / "lines.json"
    results.write(records[1], file)
    found = functions(file)
    assert list(found) == ["track_fit_fit_47k", "track_fit_fit_in_units"]
    first, second = found.values()
    assert first() == pytest.approx(1 / 4.5)
    assert second() == pytest.approx(2.4)
    assert first.pretty_name == "fit: fit, 47k"
    assert first.__name__ == "track_fit_fit_47k"


def test_a_result_of_asv_has_no_path(tmp_path):
    python = "/home/me/build/asv/venv/bin/python"
    env_name = "existing-py_home_me_build_asv_venv_bin_python"
    file = tmp_path / f"01234567-{env_name}.json"
    file.write_text(json.dumps({"env_name": env_name, "python": python}))
    history._without_path(file, python)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("01234567-python3.")
    assert "home" not in left.name + left.read_text()


def test_changes_without_a_commit_are_not_recorded_by_asv(records, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(history, "borrowing", lambda folder: pytest.fail("asv is called"))
    history.tell_asv(tmp_path / "no.json", {**records[0], "changed": True})
    assert "changes without a commit" in capsys.readouterr().err


def test_a_history_from_a_file(records, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(history, "PICTURE", tmp_path / "history.svg")
    monkeypatch.setattr(history.draw, "__defaults__", (tmp_path / "history.svg",))
    for function in (results.file_of, results.read_all):
        monkeypatch.setattr(function, "__defaults__", (tmp_path / "results",))
    assert history.main(["--draw"]) == 1
    assert "no results of this machine" in capsys.readouterr().err
    file = tmp_path / "lines.json"
    results.write(records[0], file)
    assert history.main(["--from", str(file), "--no-asv"]) == 0
    assert capsys.readouterr().out.endswith("1 version\n")
    assert (tmp_path / "history.svg").exists()


def test_examples():
    assert doctest.testmod(history).failed == 0
