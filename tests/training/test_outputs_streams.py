"""Classes and label sets of streams: known before, or added when they occur; resumed runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from support.files import called
from thresher import FTRLClassifier, TruncatedGradientClassifier
from thresher.data.labels import ArrivingClasses
from thresher.training.observer import Interrupted, Observer
from thresher.training.plan import TrainingPlan
from thresher.training.resuming import checkpoint_of
from thresher.training.run_options import RunOptions
from thresher.training.trainer import Trainer

ROWS, COLUMNS = 3000, 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    """Write rows of classes 2, 5 and 9, from row 1,000 on also 1; and the same with label sets."""
    folder: Path = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    single, sets = [], []
    for row in range(ROWS):
        columns = np.sort(rng.choice(COLUMNS, 6, replace=False))
        values = rng.normal(size=6)
        label = (2, 5, 9)[int(columns[0]) % 3]
        if row >= 1000 and row % 10 == 0:
            label = 1
        features = " ".join(f"{c + 1}:{v:.4f}" for c, v in zip(columns, values, strict=True))
        single.append(f"{label} {features}\n")
        both = sorted({label, (2, 5, 9)[int(columns[1]) % 3]} if row % 4 else set())
        sets.append(f"{','.join(map(str, both))} {features}\n")
    (folder / "single.svm").write_text("".join(single))
    (folder / "sets.svm").write_text("".join(sets))
    return folder


def source(folder: Path, name: str, **options: Any) -> Any:
    return thresher.scan(folder / name, format="svmlight", **options)


# ---- the command line ---------------------------------------------------------------------------


def test_a_pipe_needs_no_classes(folder: Path, tmp_path: Path) -> None:
    model, data = tmp_path / "piped.thresher", (folder / "single.svm").read_bytes()
    options = ["--multiclass", "--rule", "truncated-gradient", "--dtype", "float64", "--quiet"]
    called("train", "-", "-m", model, *options, stdin=data)
    found = thresher.load(model)
    assert found.classes.tolist() == [1, 2, 5, 9]
    lines = data.decode().splitlines(keepends=True)
    labels = np.array([int(line.split()[0]) for line in lines])
    for output, label in enumerate((1, 2, 5, 9)):
        begin = int((labels == label).argmax())
        rest = ("1" if line.split()[0] == str(label) else "-1" for line in lines[begin:])
        alone = [f"{y} {x.partition(' ')[2]}" for y, x in zip(rest, lines[begin:], strict=True)]
        called("train", "-", "-m", tmp_path / "one", *options[1:], stdin="".join(alone).encode())
        one = thresher.load(tmp_path / "one")
        entries = slice(found.indptr[output], found.indptr[output + 1])
        np.testing.assert_array_equal(found.indices[entries], one.indices)
        np.testing.assert_allclose(found.weights[entries], one.weights, rtol=1e-9)
        np.testing.assert_allclose(found.intercept[output], one.intercept[0], rtol=1e-9)


def test_a_pipe_of_sets_of_labels(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "piped.thresher"
    data = (folder / "sets.svm").read_bytes()
    called("train", "-", "-m", model, "--multilabel", "--format", "svmlight", stdin=data)
    assert thresher.load(model).classes.tolist() == [1, 2, 5, 9]
    assert thresher.load(model).multilabel


def test_a_pipe_with_one_class_is_refused(tmp_path: Path) -> None:
    done = called(
        "train", "-", "-m", tmp_path / "m", "--multiclass", code=1, stdin=b"3 1:1\n3 2:1\n"
    )
    assert "at least 2 classes; found [3]" in done.stderr
    called("train", "-", "-m", tmp_path / "m", "--multiclass", code=1, stdin=b"3 1:1\n 2:1\n")
    assert not (tmp_path / "m").exists()


# ---- states -------------------------------------------------------------------------------------


class StopsEach(Observer):
    """Stops a run after every block."""

    left = 0

    def progress(self, trainer: Trainer) -> None:
        self.left = 1

    def stops(self) -> bool:
        stop, self.left = self.left > 0, 0
        return stop


@pytest.mark.parametrize("rule", ["truncated-gradient", "ftrl", "averaged-sgd"])
@pytest.mark.parametrize("sets", [False, True])
def test_resumed_runs_with_added_classes(
    folder: Path, tmp_path: Path, rule: str, sets: bool
) -> None:
    """A run that is resumed after every block ends in the state of an uninterrupted one."""
    estimator = {
        "truncated-gradient": TruncatedGradientClassifier,
        "ftrl": FTRLClassifier,
        "averaged-sgd": thresher.AveragedSGDClassifier,
    }[rule]
    params = estimator(dtype="float32", random_state=0).get_params()
    params["class_weight"] = None if sets else {1: 2.0}
    files = [str(folder / ("sets.svm" if sets else "single.svm"))] * 3

    def new(*run: Any) -> Trainer:
        plan = TrainingPlan(
            rule, "classifier", params, ArrivingClasses(sets=sets), 1, grows=True,
            passes=2, shuffle="each", seed=5,
        )  # fmt: skip
        return Trainer(plan, thresher.scan(files, multilabel=sets), RunOptions(*run))

    whole = new()
    whole.run()
    path, resumed = str(tmp_path / "run.checkpoint"), 0
    while True:
        parts = new(StopsEach(), path)
        resumed += parts.resume()
        try:
            parts.run()
        except Interrupted:
            continue
        break
    assert resumed == 6
    assert checkpoint_of(parts).digest == checkpoint_of(whole).digest
    assert whole.plan.labels.classes is not None
    assert whole.plan.labels.classes.tolist() == [1, 2, 5, 9]


# ---- estimators ---------------------------------------------------------------------------------


def test_fit_on_sets_of_labels(folder: Path) -> None:
    rows = source(folder, "sets.svm", multilabel=True)
    clf = TruncatedGradientClassifier(passes=2, shuffle=False, dtype="float64").fit(rows)
    assert clf.classes_.tolist() == [1, 2, 5, 9]
    table = clf.predict(rows)
    assert table.shape == (ROWS, 4)
    scores = clf.decision_function(rows)
    np.testing.assert_array_equal(table.toarray(), (scores >= 0).astype(int))
    X, Y = np.zeros((ROWS, COLUMNS)), np.zeros((ROWS, 4), int)
    for row, line in enumerate((folder / "sets.svm").read_text().splitlines()):
        labels, _, features = line.partition(" ")
        for pair in features.split():
            X[row, int(pair.partition(":")[0]) - 1] = float(pair.partition(":")[2])
        for label in filter(None, labels.split(",")):
            Y[row, [1, 2, 5, 9].index(int(label))] = 1
    params = clf.get_params() | {"gravity": 0.0}
    by_text = TruncatedGradientClassifier(**params).fit(rows)
    by_matrix = TruncatedGradientClassifier(**params).fit(X, Y)
    np.testing.assert_allclose(
        by_text.decision_function(X), by_matrix.decision_function(X), rtol=1e-9, atol=1e-9
    )


def test_partial_fit_finds_classes_of_a_source(folder: Path) -> None:
    rows = source(folder, "single.svm")
    X = np.zeros((6, COLUMNS))
    X[:, 0] = np.arange(6)
    clf = TruncatedGradientClassifier(store="hashed")
    clf.partial_fit(X, [2, 5, 9, 2, 5, 9], classes=[2, 5, 9])
    clf.partial_fit(rows)
    assert clf.classes_.tolist() == [1, 2, 5, 9]
    assert clf.decision_function(rows).shape == (ROWS, 4)
    assert clf.n_features_in_ == COLUMNS
    with pytest.raises(thresher.ParameterError, match="lists of labels"):
        clf.partial_fit(source(folder, "sets.svm", multilabel=True))


# ---- lists of nonzero weights -------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_nonzero_store_learns_the_same_weights(folder: Path, loss: str) -> None:
    """This holds without intercepts, which start at other values in this store."""
    params = {"loss": loss, "gravity": 1e-4, "fit_intercept": False, "dtype": "float64"}
    rows = source(folder, "single.svm")
    usual = TruncatedGradientClassifier(**params, passes=2, shuffle=False).fit(rows)
    lists = TruncatedGradientClassifier(**params, passes=2, shuffle=False, store="nonzero")
    lists.fit(rows)
    assert lists.classes_.tolist() == usual.classes_.tolist()
    np.testing.assert_allclose(lists.coef_.toarray(), usual.coef_, rtol=1e-8, atol=1e-10)


def test_intercepts_start_at_log_odds() -> None:
    X = np.zeros((400, 3))
    y = np.repeat([0, 1, 2], [200, 150, 50])
    tiny = {"loss": "hinge", "eta0": 1e-12, "passes": 1, "store": "nonzero"}
    X[:, 0] = 1.0
    clf = TruncatedGradientClassifier(**tiny).fit(X, y)
    share = (np.array([200, 150, 50]) + 0.5) / 401
    np.testing.assert_allclose(clf.intercept_, np.log(share / (1 - share)), atol=1e-9)
    clf = TruncatedGradientClassifier(**tiny).partial_fit(X, y, classes=[0, 1, 2])
    clf.partial_fit(X, np.full(400, 7))
    assert clf.classes_.tolist() == [0, 1, 2, 7]
    later = 1.5 / 402  # one of the 401 rows so far
    np.testing.assert_allclose(clf.intercept_[3], np.log(later / (1 - later)), rtol=1e-6)
    clf = TruncatedGradientClassifier(**tiny, fit_intercept=False).fit(X, y)
    assert not clf.intercept_.any()


def test_the_nonzero_store_refuses_other_parameters() -> None:
    X, y = np.eye(6), [0, 1, 2] * 2
    for wrong, words in (
        (FTRLClassifier(store="nonzero"), "truncated gradient and forward-backward"),
        (TruncatedGradientClassifier(store="nonzero", loss="squared"), "hinge"),
        (TruncatedGradientClassifier(store="nonzero", average=True), "average=True"),
        (TruncatedGradientClassifier(store="nonzero", target_nnz=3), "target_nnz=3"),
        (TruncatedGradientClassifier(store="nonzero", certify=True), "certify=True"),
        (TruncatedGradientClassifier(store="nonzero", shrink="subgradient"), "subgradient"),
        (thresher.TruncatedGradientRegressor(store="nonzero"), "classifiers"),
    ):
        with pytest.raises(thresher.ParameterError, match=words):
            wrong.fit(X, y)
    with pytest.raises(thresher.ParameterError, match="more than two classes"):
        TruncatedGradientClassifier(store="nonzero").fit(X, [0, 1] * 3)
