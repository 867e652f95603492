"""An error of the command line leaves no thread of Arrow that reads a file when Python ends."""

import sys

import pytest

from thresher.cli import app
from thresher.data import csv_files


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["thresher", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    return ended.value.code


def test_an_error_closes_the_files(tmp_path, monkeypatch, capsys):
    model, rows, unlabelled = (tmp_path / name for name in ("a.thresher", "a.csv", "b.csv"))
    rows.write_text("y,a\n" + "1,0.5\n0,2.5\n" * 50)
    unlabelled.write_text("a\n" + "0.5\n" * 50)
    assert run(monkeypatch, "train", rows, "--label", "y", "-m", model, "--quiet") in (None, 0)
    opened, init = [], csv_files._WholeReads.__init__

    def kept(reads, stream):
        init(reads, stream)
        opened.append(reads)

    monkeypatch.setattr(csv_files._WholeReads, "__init__", kept)
    assert run(monkeypatch, "evaluate", model, unlabelled) == 1
    assert "there is no column 'y'" in capsys.readouterr().err
    assert opened
    assert all(reads.ended for reads in opened)
