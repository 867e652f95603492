"""A search of a source gives the results of a search in memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import pipe
from support.source_searches import AS_STORED, agree, files_of, folds
from thresher import OnePassSearchCV, ParameterError, scan
from thresher.search.folds import fold_numbers
from thresher.training.scores import SCORES

RANKINGS = ("roc_auc", "average_precision")  # from counts in bins: test_ranking_scores.py
OF_CLASSES = [
    name for name, score in SCORES.items() if score.task == "classifier" and name not in RANKINGS
]
OF_VALUES = [name for name, score in SCORES.items() if score.task == "regressor"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return files_of(tmp_path_factory.mktemp("search"))


# With alpha = 1e-3, a change of the last bit of these rows changes the scores of a single averaged
# SGD model by 3e-4.
RULES: list[tuple[str, dict[str, Any]]] = [
    ("TruncatedGradient", {"gravity": [1e-3, 0.05], "average": [False, True]}),
    ("ForwardBackward", {"l1": [1e-3, 0.05]}),
    ("FTRL", {"l1": [0.1, 2.0], "passes": [1, 2]}),
    ("AveragedSGD", {"alpha": [1e-2, 0.1]}),
    ("DualAveraging", {"l1": [1e-3, 0.05]}),
]


def rate_of(rule: str) -> dict[str, float]:
    """Return the rate of FTRL; in a search, "auto" depends on the first rows of all folds."""
    return {"alpha": 1.0} if rule == "FTRL" else {}


@pytest.mark.filterwarnings("ignore:.*all weights are zero")
@pytest.mark.parametrize("name", ["two", "three"])
@pytest.mark.parametrize(("rule", "grid"), RULES)
def test_classifiers(files: dict[str, Path], rule: str, grid: Any, name: str) -> None:
    """All scores, with two and with more classes."""
    cls = getattr(thresher, f"{rule}Classifier")
    given = {"dtype": "float64", **AS_STORED, **rate_of(rule)}
    found = agree(files[name], cls(**given), grid, OF_CLASSES)
    assert found.best_score_ > 0.5
    assert found.classes_.tolist() == ([-1, 1] if name == "two" else [2, 4, 9])


@pytest.mark.filterwarnings("ignore:.*all weights are zero")
@pytest.mark.parametrize(("rule", "grid"), RULES)
def test_regressors(files: dict[str, Path], rule: str, grid: Any) -> None:
    """All scores of regressions."""
    cls = getattr(thresher, f"{rule}Regressor")
    given = {"dtype": "float64", "loss": "huber", **AS_STORED, **rate_of(rule)}
    agree(files["values"], cls(**given), grid, OF_VALUES)


def test_mirror_descent(files: dict[str, Path]) -> None:
    """Its norm depends on the number of features, which is found before training."""
    clf = thresher.MirrorDescentClassifier(**AS_STORED)
    agree(files["two"], clf, {"l1": [1e-3, 1e-2]}, ["accuracy", "neg_log_loss"])


def test_stores_threads_and_memory(files: dict[str, Path]) -> None:
    """The result does not depend on store, threads and memory limit."""
    grid = {"l1": [0.1, 2.0], "loss": ["logistic", "clipped_square"]}
    for options in ({}, {"n_jobs": 2}, {"memory_limit": 60 * 64 * 3}):
        for store in ("dense", "hashed"):
            clf = thresher.FTRLClassifier(alpha=1.0, dtype="float64", store=store, **AS_STORED)
            options = {} if store == "hashed" else options
            found = agree(files["three"], clf, grid, ["accuracy", "neg_log_loss"], **options)
            assert found.n_readings_ >= 2


def test_the_final_fit_is_to_the_source(files: dict[str, Path]) -> None:
    """It equals a fit to the source, shuffled within blocks."""
    clf = thresher.TruncatedGradientClassifier(passes=2, random_state=0)
    search = OnePassSearchCV(clf, {"gravity": ["auto", 0.01]}, cv=3).fit(scan(files["two"]))
    alone = clf.set_params(**search.best_params_).fit(scan(files["two"]))
    assert search.best_model_.weights.tobytes() == alone.model_.weights.tobytes()
    X, y = load_svmlight_file(str(files["two"]))
    assert search.score(X, y) > 0.8
    assert search.score(scan(files["two"])) == pytest.approx(search.score(X, y))
    assert search.predict(scan(files["two"])).shape == (300,)


class Counted:
    """Counts how often a source is read."""

    def __init__(self, source: Any) -> None:
        self.count, blocks = 0, source.blocks

        def counted(*args: Any, **options: Any) -> Any:
            self.count += 1
            return blocks(*args, **options)

        source.blocks = counted


def test_how_often_it_reads(files: dict[str, Path]) -> None:
    """It reads once per pass and once to score; once more if labels or width are not known.

    Rows that are shuffled are read once, and kept.
    """
    for cls, options, before in (
        (thresher.FTRLClassifier, {}, 1),
        (thresher.FTRLRegressor, {}, 1),
        (thresher.FTRLRegressor, {"bits": 10}, 0),
    ):
        source = scan(files["two"], **options)
        counted = Counted(source)
        grid, stored = {"l1": [0.1, 0.3, 1.0]}, cls(passes=3, shuffle="blocks")
        OnePassSearchCV(stored, grid, cv=5, refit=False).fit(source)
        assert counted.count == before + 3 + 1
        OnePassSearchCV(cls(passes=3), grid, cv=5).fit(source)
        assert counted.count == before + 3 + 1 + 1


def test_progress() -> None:
    """The callback is called at intervals, with the losses so far."""
    seen: list[Any] = []
    batches = [(np.eye(3), np.array([0, 1, 1]))] * 3

    def slowly() -> Any:
        for batch in batches:
            time.sleep(0.25)
            yield batch

    clf = thresher.FTRLClassifier(passes=2, shuffle="blocks")
    OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=2, callback=seen.append).fit(scan(slowly))
    assert {(p.number, p.rows) for p in seen} >= {(1, 3), (1, 9), (2, 9), (3, 9)}
    assert {p.lanes for p in seen} == {4}
    assert seen[-1].losses[0] < seen[0].losses[0]
    assert str(seen[-1]).startswith("scoring: 9 rows, 4 models")


def test_names(files: dict[str, Path]) -> None:
    """Features with names, in a hashed store."""
    clf = thresher.FTRLClassifier(store="hashed", passes=2)
    search = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=3).fit(scan(files["names"]))
    assert search.best_score_ > 0.7
    assert "^" in str(search.best_model_.top(1)[0].name)


def test_weights(tmp_path: Path) -> None:
    """Rows of weight 0 are neither learned nor scored; class weights equal those of a fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] > 0).astype(int)
    weights = (np.arange(200) % 4 > 0).astype(float)
    y[weights == 0] ^= 1
    clf = thresher.FTRLClassifier(dtype="float64", class_weight={0: 2.0}, **AS_STORED)
    source = scan(lambda: iter([(X[:70], y[:70], weights[:70]), (X[70:], y[70:], weights[70:])]))
    ours = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=3, refit=False).fit(source)
    for fold, (train, test) in enumerate(folds(200, 3)):
        alone = clf.set_params(l1=0.1).fit(X[train], y[train], weights[train])
        expected = np.average(alone.predict(X[test]) == y[test], weights=weights[test])
        assert ours.cv_results_[f"split{fold}_test_score"][0] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["two", "three"])
def test_balanced_classes(files: dict[str, Path], name: str) -> None:
    """Each fold has the class weights of its training rows, so folds train separately."""
    given = {"alpha": 1.0, "dtype": "float64", **AS_STORED}
    clf = thresher.FTRLClassifier(class_weight="balanced", **given)
    found = agree(files[name], clf, {"l1": [0.1, 2.0]}, ["accuracy", "neg_log_loss"])
    assert found.n_readings_ == 4
    plain = OnePassSearchCV(clf.set_params(class_weight=None), {"l1": [0.1, 2.0]}, cv=4)
    plain.fit(scan(files[name]))
    assert plain.n_readings_ == 1
    assert (plain.nonzeros_ != found.nonzeros_).any()


def test_balanced_classes_with_progressive_scores(files: dict[str, Path]) -> None:
    """A file is read once more to count the rows of each class; a pipe is an error."""
    X, y = load_svmlight_file(str(files["three"]))
    clf = thresher.FTRLClassifier(dtype="float64", passes=1, class_weight="balanced")
    options = {"param_grid": {"l1": [0.1, 2.0]}, "cv": "progressive", "refit": False}
    found = OnePassSearchCV(clf, **options).fit(scan(files["three"]))
    counts = np.unique(y, return_counts=True)[1]
    weights = dict(zip([2, 4, 9], (300 / (3 * counts)).tolist(), strict=True))
    same = OnePassSearchCV(clf.set_params(class_weight=weights), **options)
    same.fit(pipe(X.toarray(), y.astype(int)), classes=[2, 4, 9])
    assert found.best_score_ == same.best_score_
    search = OnePassSearchCV(clf.set_params(class_weight="balanced"), **options)
    with pytest.raises(ParameterError, match="class_weight='balanced' needs the number of rows"):
        search.fit(pipe(X.toarray(), y.astype(int)), classes=[2, 4, 9])


def test_automatic_rates_and_stores(files: dict[str, Path]) -> None:
    """As in a fit, the first rows decide the rate of FTRL, and names decide the store."""
    X, y = load_svmlight_file(str(files["two"]))
    for rows in ((scan(files["two"]),), (X, y.astype(int))):
        clf = thresher.FTRLClassifier(alpha="auto", dtype="float64", **AS_STORED)
        grid = {"l1": [0.1, 2.0], "alpha": ["auto", 0.05]}
        found = OnePassSearchCV(clf, grid, cv=4).fit(*rows)
        rate = clf.fit(*rows).model_.parameters["alpha"]
        assert isinstance(rate, float)
        given = OnePassSearchCV(clf, {**grid, "alpha": [rate, 0.05]}, cv=4).fit(*rows)
        for name in ("mean_test_score", "std_test_score"):
            assert found.cv_results_[name].tolist() == given.cv_results_[name].tolist()
    path = thresher.SparsityPath(clf, [0.1, 2.0]).fit(scan(files["two"]))
    assert {model.parameters["alpha"] for model in path.models_ if model} == {rate}
    named = thresher.FTRLClassifier(store="auto", passes=1)
    path = thresher.SparsityPath(named, [0.1, 2.0]).fit(scan(files["names"]))
    assert path.best_estimator_.model_.parameters["store"] == "hashed"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cv", [3, "progressive"])
def test_weights_that_are_all_zero(cv: Any) -> None:
    """Nothing can be learned or scored: an error, without warnings of NumPy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    clf = thresher.FTRLClassifier(**AS_STORED)
    none = scan(lambda: iter([(X, y, np.zeros(60))]))
    with pytest.raises(thresher.DataError, match="the weights of all rows are 0"):
        OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=cv).fit(none)
    if cv == 3:
        weights = (fold_numbers(0, 60, 3) != 1).astype(float)
        some = scan(lambda: iter([(X, y, weights)]))
        with pytest.raises(thresher.DataError, match="the weights of all rows of fold 1 are 0"):
            OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=cv).fit(some)
