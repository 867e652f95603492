"""`thresher compare`."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import numpy as np
import pytest

import thresher
from support.comparisons import plain
from support.files import THRESHER, called, svmlight, vw
from thresher.cli.render import comparison_progress
from thresher.comparison import CompareProgress

QUICK = ("--orders", "2", "--folds", "2", "--rules", "ftrl,sgd")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    svmlight(folder / "rows.svm")
    svmlight(folder / "test.svm", rows=100, features=70, seed=1)
    svmlight(folder / "classes.svm", classes=(1, 2, 5))
    vw(folder / "rows.vw")
    rng = np.random.default_rng(1)
    table = rng.normal(size=(200, 4))
    y = table @ [1.0, -2.0, 0.0, 0.5] + 0.1 * rng.normal(size=200)
    lines = ["a,b,c,d,y"]
    lines += [",".join(f"{v:.4f}" for v in (*row, t)) for row, t in zip(table, y, strict=True)]
    (folder / "numbers.csv").write_text("\n".join(lines) + "\n")
    return folder


def events(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


# ---- results -------------------------------------------------------------------------------------


def test_table_json_and_page(folder, tmp_path):
    page, results = tmp_path / "page.html", tmp_path / "results.json"
    files = folder / "rows.svm", "--test", folder / "test.svm"
    done = called("compare", *files, *QUICK, "--html", page, "-o", results)
    assert "FTRL" in done.stdout
    assert "plain SGD" in done.stdout
    assert "400 training rows, 100 test rows, 60 columns; 2 folds, 2 orders" in done.stdout
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["1/2", "2/2"]
    found = thresher.Comparison.from_json(results.read_text())
    assert found.about["data"] == "rows.svm"
    assert found.about["command"].startswith("thresher compare ")
    assert {row.rule for row in found} == {"ftrl", "sgd"}
    assert all(0 < row.error.mean < 40 for row in found)
    html = page.read_text()
    assert html.startswith("<!DOCTYPE html>")
    assert "rows.svm" in html
    given = (thresher.scan(folder / name) for name in ("rows.svm", "test.svm"))
    again = thresher.compare(
        next(given), X_test=next(given), rules=["ftrl", "sgd"], orders=2, folds=2
    )
    assert [plain(row) for row in again] == [plain(row) for row in found]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "results.json"]


def test_json_events(folder):
    shown = events(called("compare", folder / "rows.svm", *QUICK, "--json"))
    kinds = [event["event"] for event in shown]
    assert kinds == [*(["progress"] * 3 + ["rule"]) * 2, "done"]
    assert [event["doing"] for event in shown[:4]] == ["search", "orders", "orders", "done"]
    assert shown[3]["result"]["rule"] == "ftrl"
    assert len(shown[3]["result"]["error"]) == 2
    assert shown[-1]["training rows"] == 300
    assert shown[-1]["test_share"] == 0.25


def test_quiet_prints_nothing(folder, tmp_path):
    results = tmp_path / "results.json"
    done = called("compare", folder / "rows.svm", *QUICK, "--quiet", "-o", results)
    assert done.stdout == done.stderr == ""
    assert results.exists()


def test_names_classes_numbers_and_standard_input(folder):
    named = events(called("compare", folder / "rows.vw", *QUICK, "--json"))[-1]
    assert named["columns"] == 41  # 40 words and the age
    several = events(called("compare", folder / "classes.svm", *QUICK, "--multiclass", "--json"))
    assert several[-1]["classes"] == ["1", "2", "5"]
    numbers = events(
        called("compare", folder / "numbers.csv", *QUICK, "--loss", "squared", "--json")
    )
    assert numbers[-1]["task"] == "regression"
    assert numbers[3]["result"]["r2"][0] > 0.8
    text = (folder / "rows.svm").read_bytes()
    piped = events(called("compare", "-", *QUICK, "--json", stdin=text))[-1]
    plain_file = events(called("compare", folder / "rows.svm", *QUICK, "--json"))[-1]
    assert piped["digests"] == plain_file["digests"]


def test_row_weights_count(folder, tmp_path):
    weighed = tmp_path / "weighed.vw"
    lines = (folder / "rows.vw").read_text().splitlines()
    weighed.write_text("\n".join(line.replace(" '", " 2 '", i % 2) for i, line in enumerate(lines)))
    assert "rows have weights" in called("compare", weighed, *QUICK).stdout
    found = events(called("compare", weighed, *QUICK, "--json"))[-1]
    plain_rows = events(called("compare", folder / "rows.vw", *QUICK, "--json"))[-1]
    assert found["digests"] != plain_rows["digests"]


def test_help_is_complete():
    text = called("compare", "--help-all").stdout
    for option in (
        *("--test", "--test-share", "--rules", "--orders", "--folds", "--choose", "--scale"),
        *("--loss", "--multiclass", "--seed", "--jobs", "--checkpoint", "--html", "--output"),
        *("--json", "--quiet", "--format", "--bits", "--zero-based", "--on-bad-line"),
    ):
        assert option in text
    assert "thresher compare train.svm --test test.svm" in text


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rules", "vw"], "--rules must be from stabilized, "),
        (["--choose", "worst"], "--choose must be one of best, sparsest; got 'worst'"),
        (["--scale", "minmax"], "--scale must be one of 'unit-norm', 'variance'; got 'minmax'"),
        (["--test-share", "0.001"], "--test-share 0.001: "),
        (["--loss", "cubic"], "--loss must be logistic"),
        (["--jobs", "0"], "--jobs must be"),
        (["--test-share", "2"], "--test-share must be a number > 0 and < 1; got 2.0"),
        (["--folds", "300"], "--folds 300 needs as many training rows of each class"),
    ],
)
def test_bad_usage(folder, tmp_path, options, message):
    page = tmp_path / "page.html"
    done = called("compare", folder / "rows.svm", *options, "--html", page, code=2)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not page.exists()


def test_an_error_if_all_rules_are_skipped(folder):
    done = called("compare", folder / "rows.svm", "--rules", "lasso,hard-threshold", code=2)
    assert "--rules: all rules are skipped: lasso: it is only for regression; hard-" in done.stderr


def test_a_hint_if_labels_have_many_values(tmp_path):
    path = tmp_path / "counts.svm"
    path.write_text("".join(f"{i} 1:{i}\n" for i in range(60)))
    done = called("compare", path, "--multiclass", code=1)
    assert "labels have 60 values: --loss squared takes them as numbers" in done.stderr


def test_a_line_is_printed_during_a_long_search(monkeypatch, capsys):
    monkeypatch.setattr(comparison_progress, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(comparison_progress, "_LINE_SECONDS", 0.02)
    display = comparison_progress.ComparisonLines(quiet=False, json=False)
    display.tell(CompareProgress("ftrl", "FTRL", "search", 0, 2, 1, 3, 65.0))
    shown = ""
    until = time.monotonic() + 20
    while "FTRL: choosing parameters" not in shown and time.monotonic() < until:
        time.sleep(0.01)
        shown += capsys.readouterr().err
    display.close()
    assert shown.splitlines()[0] == " 1/3   1:05 FTRL: choosing parameters"


def test_remarks_are_above_and_below_the_table(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 4)) * [1, 1, 1, 1e4]
    path, page = tmp_path / "rows.svm", tmp_path / "page.html"
    lines = (" ".join(f"{j + 1}:{v:.4f}" for j, v in enumerate(row)) for row in rows)
    labels = (rows[:, 0] > 0).astype(int)
    path.write_text("".join(f"{y} {line}\n" for y, line in zip(labels, lines, strict=True)))
    given = "--orders", "1", "--folds", "2", "--rules", "sgd,l1-logistic", "--html", page
    shown = called("compare", path, *given).stdout
    assert shown.startswith("columns differ in scale: column 3 is ")
    assert "scale: variance" in shown.splitlines()[0]
    assert "is at the end of its grid" in shown.split("chosen", 1)[1]
    assert "columns differ in scale" in page.read_text()
    assert "columns differ" not in called("compare", path, *given, "--scale", "variance").stdout


def test_outputs_are_checked_first(folder, tmp_path):
    rows = folder / "rows.svm"
    same = tmp_path / "a.json"
    done = called("compare", rows, "-o", same, "--checkpoint", same, code=2)
    assert "give two different files" in done.stderr
    called("compare", rows, "--html", tmp_path / "none" / "page.html", code=1)
    before = rows.read_bytes()
    called("compare", rows, "-o", rows, code=2)
    called("compare", rows, *QUICK, "--test", rows, "--test-share", "0.5", code=2)
    assert rows.read_bytes() == before


def test_errors_in_data_name_file_and_line(folder, tmp_path):
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:1\n-1 2:1\n7 1:1\n")
    done = called("compare", bad, *QUICK, code=1)
    assert done.stderr.startswith(f"{bad}:3:")
    assert "--multiclass" in done.stderr
    bad.write_text("1 1:1\n-1 2:one\n")
    assert called("compare", bad, code=1).stderr.startswith(f"{bad}:2:")
    called("compare", tmp_path / "missing.svm", code=1)


# ---- checkpoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.soak)]
)
def test_an_interrupted_run_continues(folder, tmp_path, how):
    kept, results = tmp_path / "kept.json", tmp_path / "results.json"
    command = [
        *("compare", folder / "test.svm", "--orders", "10", "--folds", "2"),
        *("--rules", "sgd,sgd-mean,ftrl", "-o", results, "--checkpoint", kept),
    ]
    process = subprocess.Popen(
        [*THRESHER, *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not kept.exists() or '"sgd-mean": {"search"' not in kept.read_text():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(how)
    shown = process.communicate(timeout=60)[1]
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert f"interrupted; finished work is in {kept}" in shown
    assert not results.exists()
    unfinished = json.loads(kept.read_text())["rules"]
    assert "row" in unfinished["sgd"]
    assert "ftrl" not in unfinished
    resumed = events(called(*command, "--json"))
    assert resumed[0]["event"] == "rule"  # the first rule is not run again
    found = thresher.Comparison.from_json(results.read_text())
    fresh = tmp_path / "fresh.json"
    called(*command[:8], "-o", fresh, "--quiet")
    whole = thresher.Comparison.from_json(fresh.read_text())
    assert [plain(row) for row in found] == [plain(row) for row in whole]
    done = called("compare", folder / "rows.svm", *command[2:], code=2)
    assert "belongs to another comparison: its training rows is" in done.stderr


@pytest.mark.data
def test_dexter(data_dir, tmp_path):
    """Errors on real data; the stabilized rule chooses its number of weights by the labels."""
    results = tmp_path / "results.json"
    called(
        "compare", data_dir / "dexter_scaled_train.svm.xz",
        "--test", data_dir / "dexter_scaled_valid.svm.xz",
        "--rules", "stabilized,ftrl,l1-logistic,sgd", "--orders", "3", "-o", results, "--quiet",
    )  # fmt: skip
    found = thresher.Comparison.from_json(results.read_text())
    assert found["stabilized"].error.mean < 8
    assert found["stabilized"].nonzeros.mean < 6
    assert found["stabilized"].kappa.mean > 0.9
    assert all(row.error.mean < 11 for row in found)
