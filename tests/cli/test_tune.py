"""`thresher tune`."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import called, svmlight, vw
from thresher.rules import RULES
from thresher.search.folds import fold_numbers

LANE_RULES = [name for name, rule in RULES.items() if rule.lanes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    svmlight(folder / "rows.svm")
    svmlight(folder / "classes.svm", classes=(1, 2, 5))
    vw(folder / "rows.vw")
    rng = np.random.default_rng(1)
    table = rng.normal(size=(300, 4))
    y = table @ [1.0, -2.0, 0.0, 0.5]
    lines = ["a,b,c,d,y", *(",".join(f"{v:.4f}" for v in (*row, t)) for row, t in zip(table, y))]  # noqa: B905
    (folder / "numbers.csv").write_text("\n".join(lines) + "\n")
    return folder


def tuned(folder, data, *options, code=0, name="best.thresher", **more):
    """Run `thresher tune`; return the path of the model and the output."""
    model = folder / name
    data = "-" if data == "-" else folder / data
    return model, called("tune", data, "-m", model, *options, code=code, **more)


def events(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", LANE_RULES)
def test_every_rule(folder, rule):
    grid = {
        "truncated-gradient": "gravity=1e-5,1e-2",
        "averaged-sgd": "alpha=1e-3,1e-1",
        "one-pass": "cut=1e-5,1e-2",
    }
    options = ["--rule", rule, "--grid", grid.get(rule, "l1=1e-5,1e-2"), "--passes", "5"]
    model, done = tuned(folder, "rows.svm", *options)
    loaded = thresher.load(model)
    assert loaded.parameters["rule"] == rule
    assert 0 < loaded.nnz <= 60
    assert "400 rows, 5 folds; 2 combinations, 12 models in " in done.stdout
    assert done.stderr == ""
    predicted = called("predict", model, folder / "rows.svm").stdout.split()
    _, y = load_svmlight_file(str(folder / "rows.svm"))
    assert np.mean(np.array(predicted, float) == y) > 0.8


def test_scores_and_model_are_the_same_as_of_separate_fits(folder):
    options = ["--rule", "truncated-gradient", "--dtype", "float64", "--eta0", "0.05"]
    options += ["--grid", "gravity=1e-3,1e-1", "--grid", "period=1,5", "--passes", "2", "--json"]
    model, done = tuned(folder, "rows.svm", *options)
    *points, end = (e for e in events(done) if e["event"] in ("point", "done"))
    assert [p["params"] for p in points] == [
        {"gravity": g, "period": k} for g in (1e-3, 1e-1) for k in (1, 5)
    ]
    X, y = load_svmlight_file(str(folder / "rows.svm"))
    folds = fold_numbers(0, len(y), 5)
    alone = thresher.TruncatedGradientClassifier(
        dtype="float64", eta0=0.05, passes=2, shuffle=False
    )
    for point in points:
        errors = []
        for k in range(5):
            fitted = clone(alone).set_params(**point["params"]).fit(X[folds != k], y[folds != k])
            errors.append(1 - fitted.score(X[folds == k], y[folds == k]))
        assert point["error"] == pytest.approx(np.mean(errors), abs=1e-12)
        assert point["standard_error"] == pytest.approx(np.std(errors, ddof=1) / 5**0.5)
        of_all = clone(alone).set_params(**point["params"]).fit(X, y)
        assert point["nonzeros"] == of_all.model_.nnz
    best = min(points, key=lambda p: (p["error"], p["nonzeros"]))
    assert end["best"] == end["kept"] == best["params"]
    assert (end["rows"], end["folds"], end["measure"]) == (400, 5, "error rate")
    flags = ["--gravity", best["params"]["gravity"], "--period", best["params"]["period"]]
    other = folder / "train.thresher"
    called("train", folder / "rows.svm", "-m", other, *options[:6], *flags, "--passes", "2")
    trained, loaded = thresher.load(other), thresher.load(model)
    np.testing.assert_allclose(loaded.weights, trained.weights, atol=1e-10)
    np.testing.assert_array_equal(loaded.indices, trained.indices)
    for name in ("gravity", "period", "eta0", "passes", "first", "bits", "rule"):
        assert loaded.parameters.get(name) == trained.parameters.get(name)


def test_sparsest_and_the_table(folder):
    options = ["--grid", "l1=0.01..100:6", "--folds", "4"]
    _, done = tuned(folder, "rows.svm", *options)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["l1", "error", "rate", "+-", "nonzeros"]
    marked = [line for line in lines[1:7] if "chosen" in line]
    assert len(marked) == 1
    assert lines[-1].startswith("best: l1=")
    assert any(line.startswith("* best") for line in lines)
    assert "error rate" in lines[8]
    model, done = tuned(folder, "rows.svm", *options, "--sparsest", name="sparse.thresher")
    assert done.stdout.splitlines()[-1].startswith(f"sparsest: l1={marked[0].split()[0]}, ")
    assert thresher.load(model).nnz == int(marked[0].split()[3].replace(",", ""))


def test_multiclass_regression_and_scores(folder):
    options = ["--grid", "l1=0.1,10", "--multiclass", "--json", "--scoring", "balanced-accuracy"]
    model, done = tuned(folder, "classes.svm", *options)
    assert events(done)[-1]["measure"] == "1 - balanced_accuracy"
    assert thresher.load(model).classes.tolist() == [1, 2, 5]
    options = ["--loss", "squared", "--rule", "forward-backward", "--grid", "l1=1e-4,1e-1"]
    options += ["--scoring", "mean_squared_error", "--bits", "10", "--json", "--eta0", "0.01"]
    model, done = tuned(folder, "numbers.csv", *options)
    end = events(done)[-1]
    assert (end["measure"], end["kept"]) == ("mean squared error", {"l1": 1e-4})
    assert {f.name for f in thresher.load(model).top(2)} == {"a", "b"}


def test_feature_names_and_their_learning_rates(folder):
    model, _ = tuned(folder, "rows.vw", "--grid", "l1=1,4", "--quiet")
    loaded = thresher.load(model)
    assert all(name.startswith(("word^w", "age^")) for name in loaded.names.values())
    other = folder / "train.thresher"
    called("train", folder / "rows.vw", "-m", other, "--l1", loaded.parameters["l1"], "--quiet")
    trained = thresher.load(other)
    assert loaded.parameters["alpha"] == trained.parameters["alpha"] != 1.0
    np.testing.assert_allclose(loaded.weights, trained.weights, rtol=1e-5, atol=1e-7)  # float32
    assert loaded.names == trained.names


@pytest.mark.parametrize("data", ["rows.svm", "rows.vw"])
def test_standard_input_has_progressive_scores(folder, data):
    rows = (folder / data).read_bytes()
    options = ["--grid", "l1=0.5,5", "--json"]
    model, done = tuned(folder, "-", *options, stdin=rows)
    *points, end = (e for e in events(done) if e["event"] in ("point", "done"))
    assert (end["measure"], end["folds"], end["rows"]) == ("progressive error rate", 0, 400)
    assert all(point["standard_error"] is None for point in points)
    other = folder / "train.thresher"
    l1 = str(end["kept"]["l1"])
    called("train", "-", "-m", other, "--l1", l1, "--quiet", stdin=rows)
    trained, loaded = thresher.load(other), thresher.load(model)
    np.testing.assert_allclose(loaded.weights, trained.weights, rtol=1e-5)
    assert loaded.names == trained.names
    assert loaded.classes.tolist() == trained.classes.tolist() == [-1, 1]


def test_cache_memory_and_class_weights(folder):
    options = ["--grid", "l1=0.5..5:4", "--passes", "2", "--class-weight", "1:2", "--json"]
    _, plain = tuned(folder, "rows.svm", *options)
    rows = (folder / "rows.svm").read_bytes()
    more = ["--cache", folder / "rows.cache", "--memory", "20k"]
    _, cached = tuned(folder, "-", *options, *more, stdin=rows)

    def points(done):
        return [e for e in events(done) if e["event"] == "point"]

    assert points(plain) == points(cached)
    _, unweighted = tuned(folder, "rows.svm", *options[:4], "--json")
    assert points(plain) != points(unweighted)


# ---- pages ---------------------------------------------------------------------------------------


def test_the_page_is_complete_and_works_offline(folder):
    page = folder / "page.html"
    _, done = tuned(folder, "rows.svm", "--grid", "l1=0.1..10:5", "--html", page)
    text = page.read_text()
    assert done.stdout.splitlines()[-1] == f"page -> {page}"
    assert text.startswith("<!DOCTYPE html>\n")
    root = ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    assert len(root.findall(".//figure/svg")) == 1
    assert len(root.findall(".//circle[title]")) == 5
    assert len(root.findall(".//tr")) == 6
    assert len(root.findall(".//script")) == 1
    assert not root.findall(".//link")
    assert not re.search(r"(?:src|href)=|url\(|https?:", text)
    assert "prefers-color-scheme: dark" in text
    assert 'name="color-scheme" content="light dark"' in text


def test_names_in_pages_are_escaped(folder):
    odd = folder / "a<b>&.svm"
    odd.write_bytes((folder / "rows.svm").read_bytes())
    page = folder / "odd.html"
    tuned(folder, odd.name, "--grid", "l1=1,2", "--html", page)
    root = ET.fromstring(page.read_text().removeprefix("<!DOCTYPE html>\n"))
    assert "a<b>&.svm" in root.find(".//h1").text


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--grid is needed: NAME=A,B,C or NAME=A..B:N, such as l1="),
        (["--grid", "gravity=1"], "--grid gravity=1: gravity is not a parameter of the rule ftrl"),
        (["--rule", "stabilized"], "--grid is needed: NAME=A,B,C or NAME=A..B:N, such as"),
        (["--rule", "magic"], "--rule must be one of truncated-gradient, "),
        (["--loss", "magic"], "--loss must be logistic"),
        (["--grid", "l1=1", "--scoring", "auc"], "--scoring must be one of accuracy, "),
        (["--grid", "l1=1", "--scoring", "r2"], "for classes; got 'r2'"),
        (
            ["--grid", "l1=1", "--loss", "hinge", "--scoring", "log_loss"],
            "--scoring log_loss needs probabilities",
        ),
        (["--grid", "l1=1", "--memory", "much"], "--memory must be a size such as 500M or 4G"),
        (["--grid", "l1=1", "--folds", "1"], "--folds"),
        (["--grid", "l1=1", "--gravity", "1"], "--gravity is not a parameter of the rule ftrl"),
        (["--grid", "l1=1", "--multilabel", "--scoring", "r2"], "one of accuracy, f1_micro, mean"),
        (["--grid", "l1=1", "--store", "disk"], "--store must be one of 'dense', 'hashed'"),
        (
            ["--grid", "l1=1", "--loss", "huber", "--class-weight", "1:2"],
            "--class-weight needs classes",
        ),
    ],
)
def test_bad_usage(folder, options, message):
    model, done = tuned(folder, "rows.svm", *options, code=2, name="none.thresher")
    assert message in " ".join(done.stderr.replace("\u2502", " ").split())
    assert not model.exists()


def test_nothing_is_read_before_parameters_are_checked(folder, tmp_path):
    options = ["--rule", "truncated-gradient", "--grid", "shrink=truncate,round"]
    cache = tmp_path / "rows.cache"
    _, done = tuned(folder, "rows.svm", *options, "--cache", cache, code=2, name="none.thresher")
    assert "--shrink round needs a finite --ceiling" in done.stderr
    assert not cache.exists()


def test_bad_data_and_bad_output_folders(folder, tmp_path):
    grid = ["--grid", "l1=1,2"]
    model, done = tuned(folder, "classes.svm", *grid, code=1, name="none.thresher")
    assert re.search(r"classes.svm:\d+:1: the label is \d; labels must be -1 and 1", done.stderr)
    assert not model.exists()
    _, done = tuned(folder, "absent.svm", *grid, code=1, name="none.thresher")
    assert "absent.svm" in done.stderr
    page = tmp_path / "no" / "page.html"
    model, done = tuned(folder, "rows.svm", *grid, "--html", page, code=1, name="none.thresher")
    assert f"there is no folder {tmp_path / 'no'}" in done.stderr
    assert not model.exists()
    data = folder / "rows.svm"
    done = called("tune", data, "-m", folder / "m", *grid, "--html", data, code=2)
    assert "is an input file: it cannot be an output too" in done.stderr
    _, done = tuned(folder, "-", *grid, "--folds", "3", code=2, stdin=data.read_bytes())
    assert "standard input needs --cache" in done.stderr
    _, done = tuned(folder, "-", *grid, "--passes", "3", code=2, stdin=data.read_bytes())
    assert "more than one pass over standard input needs --cache FILE" in done.stderr
    _, done = tuned(folder, "-", *grid, code=1, stdin=b"", name="none.thresher")
    assert "no rows" in done.stderr
    _, done = tuned(folder, "rows.svm", *grid, "--memory", "100", code=1, name="none.thresher")
    assert "--memory is 100 bytes, but a single model of this grid needs " in done.stderr
    (tmp_path / "bad.svm").write_text("1 3:x\n")
    done = called("tune", tmp_path / "bad.svm", "-m", tmp_path / "m", *grid, code=1)
    assert re.match(r".*bad.svm:1:5: ", done.stderr)
    assert not (tmp_path / "m").exists()


def test_divergence(folder):
    options = ["--rule", "truncated-gradient", "--loss", "squared", "--grid", "gravity=0,1e-9"]
    model, done = tuned(
        folder, "numbers.csv", *options, "--bits", "8", "--eta0", "1e9", code=1, name="no.thresher"
    )
    assert "all models of the grid failed" in done.stderr
    assert not model.exists()


def test_a_model_of_all_rows_that_diverges_is_not_written(folder, tmp_path):
    rng = np.random.default_rng(0)
    fold = fold_numbers(0, 3000, 2)
    far = fold.argmax(), fold.argmin()  # one in each fold: a model of a fold sees only one of them
    lines = []
    for row in range(3000):
        x = rng.normal(size=3)
        label = 1 if row == far[0] or (row != far[1] and x[0] > 0) else -1
        features = "9:1e13" if row in far else " ".join(f"{i}:{v:.4f}" for i, v in enumerate(x, 1))
        lines.append(f"{label} {features}")
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    options = ["--rule", "truncated-gradient", "--loss", "squared_hinge", "--folds", "2"]
    grid = ["--grid", "gravity=1e-6,1e-5", "--grid", "eta0=0.1"]
    model, done = tuned(tmp_path, "rows.svm", *options, *grid, code=1)
    assert "all models of the grid failed; the first: all rows: " in done.stderr
    assert not model.exists()
    options += ["--grid", "eta0=1e-30,0.1", "--grid", "gravity=1e-6", "--html", tmp_path / "page"]
    model, done = tuned(tmp_path, "rows.svm", *options)
    assert re.search(r"0\.1 .* - +- +failed: all rows: .*step", done.stdout.replace("  ", " "))
    assert "failed: all rows: " in (tmp_path / "page").read_text()
    assert thresher.load(model).parameters["eta0"] == 1e-30
    _, done = tuned(tmp_path, "rows.svm", *options, "--json")
    sound, failed = (event for event in events(done) if event["event"] == "point")
    assert sound["failure"] is None
    assert sound["error"] is not None
    assert failed["failure"].startswith("all rows: ")
    assert failed["error"] is None


def test_bad_lines_are_counted(folder, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_text((folder / "rows.svm").read_text() + "1 oops\n")
    done = called("tune", rows, "-m", tmp_path / "m", "--grid", "l1=1,2", "--on-bad-line", "skip")
    assert "warning: " in done.stderr
    assert "400 rows" in done.stdout
