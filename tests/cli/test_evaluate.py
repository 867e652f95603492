"""`thresher evaluate`: forms of the command, results, and errors."""

import json
import lzma
import re

import numpy as np
import pytest
from sklearn import metrics

import thresher
from support.files import called, svmlight
from support.pages import parsed, section


@pytest.fixture(scope="module")
def models(folder):
    """Train two models; return the folder."""
    called("train", folder / "rows.svm", "-m", folder / "a.thresher", "--quiet")
    called("train", folder / "rows.svm", "-m", folder / "b", "--rule", "ftrl", "--l1", 5, "--quiet")
    called("train", folder / "classes.svm", "--multiclass", "-m", folder / "c.thresher", "--quiet")
    return folder


def test_metrics_of_files_are_those_of_scikit_learn(models):
    data = json.loads(
        called("evaluate", models / "a.thresher", models / "other.svm", "--json").stdout
    )
    model, source = thresher.load(models / "a.thresher"), thresher.scan(models / "other.svm")
    y = np.concatenate([block.labels for block in source.blocks()])
    score = model.decision_function(source)
    wanted = {
        "accuracy": metrics.accuracy_score(y, model.predict(source)),
        "roc_auc": metrics.roc_auc_score(y, score),
        "average_precision": metrics.average_precision_score(y, score),
        "log_loss": metrics.log_loss(y, model.predict_proba(source)),
    }
    for name, value in wanted.items():
        assert data[name] == pytest.approx(value)
        low, high = data["intervals"][name]
        assert low < data[name] < high
    assert data["model"] == "a.thresher"
    assert data["data"] == "other.svm"
    assert data["rows"] == 400
    assert data["bootstrap"] == {"replicates": 200, "level": 0.95, "seed": 0}


def test_the_table(models):
    done = called("evaluate", models / "a.thresher", models / "other.svm")
    words = r"400 rows, two classes; precision, recall, F1 and lift are of class '1' \((\d+) rows\)"
    head = re.match(words + "\n\nmetric ", done.stdout)
    assert head is not None
    facts = json.loads(
        called("evaluate", models / "a.thresher", models / "other.svm", "--json").stdout
    )
    assert (facts["positive"], facts["per_class"][1]["weight"]) == (1, int(head[1]))
    assert "true \\ predicted" in done.stdout
    assert "200 bootstrap replicates, seed 0" in done.stdout
    fast = called("evaluate", models / "a.thresher", models / "other.svm", "--bootstrap", 0)
    assert "no intervals" in fast.stdout
    several = called("evaluate", models / "c.thresher", models / "classes.svm", "--level", 0.5)
    assert "50 % interval" in several.stdout
    assert "F1, macro" in several.stdout


@pytest.mark.parametrize("form", [("a.thresher", "b"), ("a.thresher", "--against", "b")])
def test_two_models(models, form):
    words = [word if word.startswith("--") else models / word for word in form]
    html = models / "two.html"
    done = called("evaluate", *words, models / "other.svm", "--html", html)
    assert "first: a.thresher\nsecond: b\n" in done.stdout
    assert "McNemar: only the first is right in" in done.stdout
    assert "DeLong: difference of ROC AUC" in done.stdout
    data = json.loads(called("evaluate", *words, models / "other.svm", "--json").stdout)
    change = data["first"]["accuracy"] - data["second"]["accuracy"]
    assert data["differences"]["accuracy"] == pytest.approx(change)
    assert data["delong"]["difference"] == pytest.approx(data["differences"]["roc_auc"])
    page = html.read_text()
    assert "first minus second" in section(page, "differences")
    assert "McNemar" in section(page, "tests")


def test_the_page(models):
    html = models / "page.html"
    done = called("evaluate", models / "a.thresher", models / "other.svm", "--html", html)
    assert f"page -> {html}" in done.stderr
    page = html.read_text()
    ids = [one.get("id") for one in parsed(page).iter("section")]
    assert ids[1:] == [
        *("metrics", "roc", "precision-and-recall", "calibration", "thresholds"),
        *("confusion-matrix", "classes", "how-it-was-done"),
    ]
    assert "0.5" in section(page, "thresholds")
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_models_that_read_rows_in_different_ways(models):
    rows = models / "rows.vw"
    called("train", rows, "-m", models / "v.thresher", "--quiet")
    called("train", rows, "-m", models / "w.thresher", "--bits", 8, "--quiet")
    both = [models / "v.thresher", models / "w.thresher"]
    data = json.loads(called("evaluate", *both, rows, "--json", "--bootstrap", 0).stdout)
    alone = json.loads(called("evaluate", both[1], rows, "--json", "--bootstrap", 0).stdout)
    assert data["second"]["accuracy"] == alone["accuracy"]
    error = called("evaluate", *both, "-", code=2).stderr
    assert "standard input cannot be" in error


def test_weights_count(tmp_path):
    rows = [(1, 2.0, 1), (1, 1.0, -1), (-1, 4.0, -1)]
    (tmp_path / "rows.vw").write_text("".join(f"{y} {w} |f x:{x}\n" for y, w, x in rows * 40))
    called("train", tmp_path / "rows.vw", "-m", tmp_path / "m", "--quiet")
    data = json.loads(called("evaluate", tmp_path / "m", tmp_path / "rows.vw", "--json").stdout)
    assert data["weight"] == 280
    model = thresher.load(tmp_path / "m")
    found = model.predict(thresher.scan(tmp_path / "rows.vw"))
    right = [w for (y, w, _), one in zip(rows * 40, found, strict=True) if y == one]
    assert data["accuracy"] == pytest.approx(sum(right) / 280)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("a.thresher", "b", "c.thresher", "rows.svm"), 2, "at most two models"),
        (("a.thresher", "c.thresher", "rows.svm"), 2, "the first is binary, the second multiclass"),
        (("a.thresher", "b"), 2, "DATA is missing: give files with labels after the models"),
        (("a.thresher", "nothing"), 1, "nothing: no such file"),
        (("rows.svm", "rows.svm"), 1, "rows.svm: not a model"),
        (("a.thresher", "rows.svm", "--shares", "0.1,x"), 2, "--shares must be numbers with com"),
        (("a.thresher", "rows.svm", "--at", "1.5"), 2, "--at must be numbers"),
        (("a.thresher", "rows.svm", "--bootstrap", "1"), 2, "--bootstrap must be 0, or from 2"),
        (("a.thresher", "rows.svm", "--html", "rows.svm"), 2, "rows.svm is an input file"),
        (("a.thresher", "rows.svm", "--html", "a.thresher"), 2, "is also the file of --html"),
    ],
)
def test_errors(models, words, code, message):
    known = [models / word if (models / word).exists() else word for word in words]
    before = {file.name: file.stat().st_mtime_ns for file in models.iterdir()}
    done = called("evaluate", *known, code=code)
    assert message in done.stderr
    assert done.stdout == ""
    assert {file.name: file.stat().st_mtime_ns for file in models.iterdir()} == before


def test_tables_without_a_column(tmp_path):
    (tmp_path / "rows.csv").write_text("x,z,label\n1,2,yes\n2,1,no\n3,1,yes\n1,1,no\n")
    called("train", tmp_path / "rows.csv", "--multiclass", "-m", tmp_path / "m", "--quiet")
    for text, message in (
        ("x,label\n1,yes\n", "few.csv: there is no column 'z', which the model learned from; the "
         "columns are x, label"),
        ("x,z\n1,2\n", "which column is the label? none is label"),
        ("x,z,label\n", "few.csv: there are no rows"),
        ("x,z,label\n1,2,maybe\n", "no row has a label that the model knows; the labels are "
         "'maybe'; the model knows 'no', 'yes'"),
        ("x,z,label\n1,2,yes\n1,1,\n", "few.csv:3"),
    ):  # fmt: skip
        (tmp_path / "few.csv").write_text(text)
        assert message in called("evaluate", tmp_path / "m", tmp_path / "few.csv", code=1).stderr
    (tmp_path / "few.csv").write_text("x,z,kind\n1,2,yes\n2,1,no\n")
    args = ("evaluate", tmp_path / "m", tmp_path / "few.csv", "--label", "kind")
    assert called(*args).stdout.startswith("2 rows, two classes")
    (tmp_path / "few.csv").write_text("x,z,label\n1,2,yes\n1,1,\n2,1,no\n3,3,maybe\n")
    done = called("evaluate", tmp_path / "m", tmp_path / "few.csv", "--on-bad-line", "skip")
    assert done.stdout.startswith("3 rows")
    assert "1 bad line left out" in done.stderr
    assert "maybe (1)" in done.stderr


def test_a9a(data_dir, tmp_path):
    """Real rows: census income, 16,281 of them held out."""
    for name in ("a9a.svm", "a9a.t.svm"):
        (tmp_path / name).write_bytes(lzma.decompress((data_dir / f"{name}.xz").read_bytes()))
    called("train", tmp_path / "a9a.svm", "-m", tmp_path / "m", "--quiet")
    words = (tmp_path / "m", tmp_path / "a9a.t.svm", "--json", "--bootstrap", 50)
    data = json.loads(called("evaluate", *words).stdout)
    assert data["rows"] == 16281
    assert 0.84 < data["accuracy"] < 0.86
    assert 0.89 < data["roc_auc"] < 0.91
    assert data["ece"] < 0.03


def test_a_file_that_ends_in_thresher_is_a_model(tmp_path):
    rows = svmlight(tmp_path / "rows.svm")
    called("train", rows, "-m", tmp_path / "m.thresher", "--quiet")
    (tmp_path / "bad.thresher").write_text("1 1:1\n")
    error = called("evaluate", tmp_path / "m.thresher", tmp_path / "bad.thresher", rows, code=1)
    assert "bad.thresher: not a model" in error.stderr


def test_a_label_or_a_weight_that_training_ignored(tmp_path):
    (tmp_path / "a.csv").write_text("y,other,size,x\n" + "1,0,2,a\n0,1,3,b\n" * 9)
    called("train", tmp_path / "a.csv", "-m", tmp_path / "m", "--label", "y", "--ignore", "other",
           "--ignore", "size", "--quiet")  # fmt: skip
    words = "--label", "other", "--weight", "size", "--json", "--bootstrap", 0
    found = json.loads(called("evaluate", tmp_path / "m", tmp_path / "a.csv", *words).stdout)
    assert found["accuracy"] == 0.0
    assert found["weight"] == 45


def test_a_dash_is_standard_input_even_if_a_model_has_this_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = svmlight(tmp_path / "rows.svm")
    called("train", rows, "-m", "m", "--quiet")
    (tmp_path / "-").write_bytes((tmp_path / "m").read_bytes())
    words = "evaluate", "m", "-", "--format", "svmlight", "--json", "--bootstrap", 0
    found = json.loads(called(*words, stdin=rows.read_bytes()).stdout)
    assert found["rows"] == len(rows.read_text().splitlines())
