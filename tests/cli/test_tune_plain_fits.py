"""`thresher tune` with rules, parameters and labels that need plain fits, or several labels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import f1_score

import thresher
from support.files import called, svmlight, vw
from thresher.search.folds import fold_numbers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    svmlight(folder / "rows.svm")
    svmlight(folder / "classes.svm", classes=(1, 2, 5))
    vw(folder / "rows.vw")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 8)).round(3)
    sets = X @ rng.normal(size=(8, 3)) > 0.5
    lines = [
        ",".join(str(k + 1) for k in np.flatnonzero(labels))
        + " "
        + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row))
        for row, labels in zip(X.tolist(), sets, strict=True)
    ]
    (folder / "sets.svm").write_text("\n".join(lines) + "\n")
    np.savez(folder / "sets.npz", X=X, sets=sets.astype(int))
    return folder


def tuned(folder, data, *options, code=0, name="best.thresher", **more):
    """Run `thresher tune`; return the path of the model and the output."""
    model = folder / name
    data = "-" if data == "-" else folder / data
    return model, called("tune", data, "-m", model, *options, code=code, **more)


def points_of(done):
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event for event in events if event["event"] == "point"]


def test_numbers_of_weights(folder, tmp_path):
    options = ["--grid", "target_nnz=3,10", "--passes", "2", "--folds", "3"]
    model, done = tuned(folder, "rows.svm", *options, "--json")
    X, y = load_svmlight_file(str(folder / "rows.svm"))
    folds = fold_numbers(0, len(y), 3)
    for point in points_of(done):
        errors = []
        clf = thresher.FTRLClassifier(passes=2, shuffle=False, **point["params"])
        for fold in range(3):
            clf.fit(X[folds != fold], y[folds != fold])
            errors.append(1 - clf.score(X[folds == fold], y[folds == fold]))
        assert point["error"] == pytest.approx(np.mean(errors))
        assert point["nonzeros"] == clf.fit(X, y).model_.nnz
    assert thresher.load(model).nnz in (3, 10)
    page = tmp_path / "page.html"
    _, done = tuned(folder, "rows.svm", *options, "--html", page, "--sparsest")
    assert "400 rows, 3 folds; 2 combinations, 8 models in " in done.stdout
    assert "target_nnz" in page.read_text()


def test_numbers_of_weights_by_lanes(folder):
    options = ["--rule", "truncated-gradient", "--no-refit", "--grid", "target_nnz=3,10"]
    model, done = tuned(folder, "rows.svm", *options, "--json")
    assert [point["nonzeros"] for point in points_of(done)] == [3, 10]
    assert thresher.load(model).nnz in (3, 10)


@pytest.mark.parametrize("data", ["rows.svm", "rows.vw", "classes.svm"])
def test_the_stabilized_rule(folder, data):
    options = ["--rule", "stabilized", "--grid", "target_nnz=2,5", "--paths", "4", "--folds", "2"]
    options += ["--multiclass"] if data == "classes.svm" else []
    model, done = tuned(folder, data, *options)
    loaded = thresher.load(model)
    assert loaded.parameters["rule"] == "stabilized"
    assert 0 < loaded.nnz <= 15
    assert "2 combinations" in done.stdout
    assert len(called("predict", model, folder / data).stdout.split()) > 0
    if data == "rows.vw":
        assert all(isinstance(feature.name, str) for feature in loaded.top())


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("coordinate-descent", ["--grid", "l1=1e-4..1e-1:3"]),
        ("hard-threshold", ["--grid", "n_nonzero=2,10"]),
        ("averaged-sgd", ["--grid", "center=true,false"]),
        ("margin-perceptron", ["--grid", "max_density=0.5,1.0"]),
    ],
)
def test_other_rules(folder, rule, options):
    model, done = tuned(folder, "rows.svm", "--rule", rule, *options, "--folds", "2")
    assert thresher.load(model).parameters["rule"] == rule
    assert "combinations" in done.stdout


@pytest.mark.parametrize("scoring", [None, "f1_micro", "accuracy", "mean-loss"])
@pytest.mark.parametrize("grid", ["l1=0.1,1,100", "target_nnz=2,8"])
def test_several_labels(folder, scoring, grid):
    options = ["--multilabel", "--grid", grid, "--passes", "5", "--json"]
    options += [] if scoring is None else ["--scoring", scoring]
    model, done = tuned(folder, "sets.svm", *options)
    end = json.loads(done.stdout.splitlines()[-1])
    measures = {"accuracy": "error rate", "mean-loss": "mean loss"}
    assert end["measure"] == measures.get(scoring, "1 - f1_micro")
    saved = np.load(folder / "sets.npz")
    loaded = thresher.load(model)
    assert loaded.multilabel
    found = f1_score(saved["sets"], loaded.predict(saved["X"])[:, :3], average="micro")
    assert found > 0.8
    if scoring is None and grid.startswith("l1"):
        folds, errors = fold_numbers(0, 300, 5), []
        clf = thresher.FTRLClassifier(passes=5, shuffle=False, l1=0.1)
        for fold in range(5):
            clf.fit(saved["X"][folds != fold], saved["sets"][folds != fold])
            predicted = clf.predict(saved["X"][folds == fold])
            errors.append(1 - f1_score(saved["sets"][folds == fold], predicted, average="micro"))
        assert points_of(done)[0]["error"] == pytest.approx(np.mean(errors))


def test_standard_input(folder, tmp_path):
    """Plain fits need a cache; several labels need their names or a cache."""
    given = {"stdin": (folder / "sets.svm").read_bytes()}
    _, done = tuned(folder, "-", "--grid", "target_nnz=2,8", code=2, **given)
    assert "fitted one after the other (" in done.stderr
    assert "standard input needs --cache FILE" in done.stderr
    options = ["--format", "svmlight", "--multilabel", "--grid", "l1=0.1,100"]
    _, done = tuned(folder, "-", *options, code=2, **given)
    assert "--multilabel from standard input needs --classes, or --cache FILE" in done.stderr
    tuned(folder, "-", *options, "--classes", "1,2,3", **given)
    cache = ["--cache", tmp_path / "rows.cache"]
    options = ["--format", "svmlight", "--multilabel", "--grid", "target_nnz=2,8"]
    model, _ = tuned(folder, "-", *options, *cache, **given)
    assert thresher.load(model).multilabel
