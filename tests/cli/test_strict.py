"""`--strict`, and the one place that all warnings of a command pass."""

import json
import warnings

import pytest

from support.files import called, svmlight
from support.training_cases import events
from thresher.cli.app import app
from thresher.errors import DataWarning, setting

SKIP = ["--on-bad-line", "skip"]
END = "(--strict makes this warning an error)\n"


@pytest.fixture
def bad(tmp_path):
    """Rows with one malformed line, the last one."""
    path = svmlight(tmp_path / "rows.svm", rows=300)
    path.write_text(path.read_text() + "1 not:a:row\n")
    return path


def refused(*arguments, left=()):
    """Run a command that a warning ends; check that it prints one line, and writes nothing."""
    done = called(*arguments, "--strict", code=1)
    assert done.stdout == ""
    *_, last = done.stderr.splitlines(keepends=True)
    assert last.endswith(END)
    assert "Traceback" not in done.stderr
    for path in left:
        assert not path.exists()
    return last


# ---- every command -------------------------------------------------------------------------------


def test_train(bad, tmp_path):
    model, cache = tmp_path / "m.thresher", tmp_path / "rows.cache"
    said = refused("train", bad, "-m", model, *SKIP, "--quiet", left=[model])
    assert said.startswith("1 bad line left out: ")
    refused("train", bad, "-m", model, *SKIP, "--cache", cache, "--quiet", left=[model, cache])
    refused("train", bad, "-m", model, *SKIP, "--rule", "auto", "--quiet", left=[model])
    refused("train", bad, "-m", model, *SKIP, "--rule", "ftrl", "--json", "--quiet", left=[model])
    assert "warning: 1 bad line" in called("train", bad, "-m", model, *SKIP, "--quiet").stderr
    before = model.read_bytes()
    refused("train", bad, "-m", model, *SKIP, "--passes", "2", "--quiet")
    assert model.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.thresher", "rows.svm"]


def test_train_with_collisions_and_without_weights(tmp_path):
    rows, model = svmlight(tmp_path / "rows.svm"), tmp_path / "m.thresher"
    said = refused("train", rows, "-m", model, "--bits", "3", "--quiet", left=[model])
    assert "with --bits 11, at most 5 % would" in said
    refused("train", rows, "-m", model, "--rule", "ftrl", "--l1", "1e9", "--quiet", left=[model])


def test_train_on_a_cluster(bad, tmp_path):
    model = tmp_path / "m.thresher"
    options = ["--rule", "ftrl", "--workers", "0", "--quiet"]
    refused("train", bad, "-m", model, *SKIP, *options, left=[model])


def test_tune(bad, tmp_path):
    model, page = tmp_path / "m.thresher", tmp_path / "page.html"
    grid = ["--grid", "l1=0.1,1", "--html", page, "--quiet"]
    refused("tune", bad, "-m", model, *SKIP, *grid, left=[model, page])
    called("tune", bad, "-m", model, *SKIP, *grid)


def test_compare(bad, tmp_path):
    out = tmp_path / "out.json"
    options = ["--rules", "ftrl", "--orders", "1", "--folds", "2", "-o", out, "--quiet"]
    refused("compare", bad, *SKIP, *options, left=[out])
    good = svmlight(tmp_path / "good.svm", rows=200)
    refused("compare", good, "--test", bad, *SKIP, *options, left=[out])


def test_discover(bad, tmp_path):
    page = tmp_path / "page.html"
    refused("discover", bad, *SKIP, "--html", page, "--quiet", left=[page])
    few = svmlight(tmp_path / "few.svm", rows=20)
    shown = called("discover", few, "--quiet").stderr
    assert "warning: " in shown
    refused("discover", few, "--html", page, "--quiet", left=[page])


def test_predict_writes_no_half_of_the_predictions(bad, tmp_path):
    model, out = tmp_path / "m.thresher", tmp_path / "out.txt"
    called("train", bad, "-m", model, *SKIP, "--quiet")
    refused("predict", model, bad, *SKIP)
    refused("predict", model, bad, *SKIP, "-o", out, left=[out])
    other = tmp_path / "other.svm"
    other.write_text("1 999:1\n")
    assert "no row has a feature" in refused("predict", model, other, "-o", out, left=[out])
    good = svmlight(tmp_path / "good.svm", rows=20)
    usual = called("predict", model, good).stdout
    assert called("predict", model, good, "--strict").stdout == usual


def test_convert(bad, tmp_path):
    for name in ("out.vw", "out.svm.gz", "out.parquet", "out.csv", "out.cache"):
        refused("convert", bad, tmp_path / name, *SKIP, left=[tmp_path / name])
    out = tmp_path / "out.svm"
    out.write_text("kept")
    refused("convert", bad, out, *SKIP)
    assert out.read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.svm", "rows.svm"]


def test_strict_without_a_warning_changes_nothing(tmp_path):
    rows = svmlight(tmp_path / "rows.svm")
    for name, more in (("a", []), ("b", ["--strict"])):
        called("train", rows, "-m", tmp_path / name, "--quiet", *more)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# ---- the one place -------------------------------------------------------------------------------


class ProblemWarning(DataWarning):
    """For tests."""


def problem():
    """Send a warning as library code does."""
    hint = ("read it with ", setting("text", "review"))
    warnings.warn(ProblemWarning("a column is text", hint=hint), stacklevel=2)


COMMANDS = {
    "train": ["-m", "{out}"],
    "tune": ["-m", "{out}", "--grid", "l1=1"],
    "compare": ["--rules", "ftrl", "--orders", "1", "--folds", "2"],
    "discover": [],
    "convert": ["{out}.vw"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_warnings_of_the_library_are_in_the_words_of_the_shell(command, tmp_path, monkeypatch):
    from thresher.data.source import Source

    whole = Source.blocks

    def blocks(self, *args, **options):
        problem()
        return whole(self, *args, **options)

    monkeypatch.setattr(Source, "blocks", blocks)
    rows = svmlight(tmp_path / "rows.svm", rows=100)
    more = [word.format(out=tmp_path / "out") for word in COMMANDS[command]]
    said = called(command, rows, *more, "--quiet").stderr
    assert said.count("warning: a column is text; read it with --text review\n") == 1
    assert "ProblemWarning" not in said
    refused(command, rows, *more, "--quiet")


@pytest.mark.parametrize("command", ["train", "tune", "compare"])
def test_json_has_warnings_as_events(command, bad, tmp_path):
    more = [word.format(out=tmp_path / "out") for word in COMMANDS[command]]
    done = called(command, bad, *more, *SKIP, "--json")
    found = [event["message"] for event in events(done) if event["event"] == "warning"]
    assert any(message.startswith("1 bad line left out") for message in found)
    assert "warning" not in done.stderr
    quiet = called(command, bad, *more, *SKIP, "--json", "--quiet")
    assert "warning: 1 bad line left out" in quiet.stderr


def test_json_of_inspect_stays_one_object(tmp_path):
    rows, model = svmlight(tmp_path / "rows.svm"), tmp_path / "m"
    called("train", rows, "-m", model, "--quiet")
    assert json.loads(called("inspect", model, "--json").stdout)["rule"] == "one-pass"


def test_warnings_after_a_command_are_as_usual():
    assert app is not None
    with pytest.warns(ProblemWarning):
        problem()
