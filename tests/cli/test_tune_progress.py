"""Progress of `thresher tune`: on a terminal, in a pipe, and interrupted."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import signal
import subprocess
import time

import thresher
from support.files import THRESHER, svmlight
from thresher.cli.render.search_progress import SearchTable
from thresher.search import SearchProgress
from thresher.search.grid import point_of


class Terminal(io.StringIO):
    def isatty(self):
        return True


def progress_of(rows, number=1, losses=None):
    known = {0: 0.5, 1: 0.4, 2: 0.6} if losses is None else losses
    return SearchProgress(1, 1, number, 1, rows, 18, 2.0, known)


def test_live_table(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    estimator = thresher.FTRLClassifier()
    points = [point_of(estimator, i, {"l1": l1}) for i, l1 in enumerate((0.1, 1.0, 10.0))]
    table = SearchTable(points, quiet=False, json=False)
    table.tell(progress_of(1000))
    first = screen.getvalue()
    lines = [line.removesuffix("\x1b[K") for line in first.splitlines()]
    assert lines[0].split() == ["l1", "loss", "so", "far", "nonzeros"]
    assert lines[2].split() == ["1", "0.4000", "*"]
    assert lines[4] == "pass 1/1: 1,000 rows, 18 models, 2.0 s"
    table.tell(progress_of(500, number=2))
    second = screen.getvalue().removeprefix(first)
    assert second.startswith("\x1b[5A")  # overwrites the first
    assert "scoring: 500 rows" in second
    table.close()
    assert screen.getvalue().endswith("\x1b[5A\x1b[J")
    monkeypatch.setenv("LINES", "6")  # too low for all lines: those with the least loss are shown
    monkeypatch.setenv("COLUMNS", "40")
    screen.truncate(0)
    table.tell(progress_of(1000))
    assert "... and 1 more" in screen.getvalue()
    assert "10  " not in screen.getvalue().splitlines()[3]


def test_lines_and_json(monkeypatch, capsys):
    point = point_of(thresher.FTRLClassifier(), 0, {"l1": 0.1, "beta": 1.0})
    monkeypatch.setattr("thresher.cli.render.search_progress._LINE_SECONDS", 0.0)
    monkeypatch.setattr("thresher.cli.render.search_progress._JSON_SECONDS", 0.0)
    for quiet, as_json in ((False, False), (False, True), (True, False)):
        SearchTable([point], quiet, as_json).tell(progress_of(1000, losses={0: 0.25}))
    out, shown = capsys.readouterr()
    assert shown == (
        "pass 1/1: 1,000 rows, 18 models, 2.0 s; least loss 0.2500 with l1=0.1, beta=1\n"
    )
    event = json.loads(out)
    assert (event["event"], event["doing"], event["rows"]) == ("progress", "learning", 1000)
    assert (event["best"], event["loss"]) == ({"l1": 0.1, "beta": 1.0}, 0.25)


def test_a_terminal_shows_only_the_result_at_the_end(tmp_path):
    rows = svmlight(tmp_path / "rows.svm", rows=2000, features=4000, repeat=20)
    main, other = pty.openpty()
    arguments = ["tune", rows, "-m", tmp_path / "m", "--grid", "l1=0.1..10:6", "--passes", "2"]
    with subprocess.Popen(
        [*THRESHER, *map(str, arguments)], stderr=other, stdout=subprocess.PIPE, text=True
    ) as process:
        os.close(other)
        shown = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the process has ended
                break
            if not piece:
                break
            shown += piece
        out = process.stdout.read()
    os.close(main)
    assert process.returncode == 0
    text = shown.decode()
    assert not text or text.rstrip().endswith("\x1b[J")  # the table is erased at the end
    assert "40,000 rows, 5 folds; 6 combinations, 36 models" in out
    assert "loss so far" not in out


def test_an_interrupted_search_writes_only_a_checkpoint(tmp_path):
    rows = svmlight(tmp_path / "rows.svm", rows=2000, repeat=100)
    arguments = ["tune", rows, "-m", tmp_path / "m", "--grid", "l1=0.1..10:8", "--passes", "500"]
    arguments += ["--html", tmp_path / "page.html", "--json"]
    before = set(tmp_path.iterdir())
    with subprocess.Popen(
        [*THRESHER, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()  # the search has started
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=100)
    assert process.returncode == 130
    assert re.fullmatch(
        r"interrupted after [\d,]+ examples; the checkpoint is .*; --resume continues .*\n", shown
    )
    assert set(tmp_path.iterdir()) == {*before, tmp_path / "m.checkpoint"}
