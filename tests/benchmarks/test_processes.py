"""Processes that lines time from outside."""

from __future__ import annotations

import sys

import pytest
from speed import processes
from speed.line import Line, measure

COUNT = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + chr(10))"


def test_the_start_up_of_a_command_is_measured_once_for_all_repeats(tmp_path):
    """A repeat with a slow start-up of its own would look fast."""
    log, paths = tmp_path / "log", {"one.vw": tmp_path / "one", "named.vw": tmp_path / "named"}

    def command(data):
        return (sys.executable, "-c", COUNT, str(log), data.name)

    runs = []

    def call():
        runs.append(processes.net(command, paths, 1))
        return runs[-1]

    measure(Line("a command", call, call, "itself", 1.0), repeats=3)
    startups = {run.value.startup for run in runs}
    assert len(startups) == 1
    begin = startups.pop()
    assert all(run.seconds == run.value.seconds - begin for run in runs)
    assert log.read_text().split().count("one") == processes.STARTUPS + 1
    assert log.read_text().split().count("named") == len(runs)


def test_a_process_keeps_its_bytecode(monkeypatch):
    """Imports are as fast as in an installed package, whatever the environment says."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    script = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"
    run = processes.run((sys.executable, "-c", script), 1)
    assert run.lines[0][1].split() == ["False", str(processes.FOLDER / "bytecode")]


def test_a_command_that_fails_is_named_with_what_it_printed():
    script = "import sys; print('what happened'); sys.exit(3)"
    with pytest.raises(RuntimeError, match=r"(?s)sys.exit\(3\).*what happened"):
        processes.run((sys.executable, "-c", script), 1)
