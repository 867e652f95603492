"""OnePassSearchCV gives the results of GridSearchCV."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import thresher
from thresher import OnePassSearchCV, datasets
from thresher.search import SearchProgress
from thresher.training.lanes import LaneTeam

RNG = np.random.default_rng(0)
X = sp.random_array((240, 30), density=0.25, rng=RNG, format="csr")
SIGNAL = X @ RNG.normal(size=30)
TWO = np.where(SIGNAL > 0, "yes", "no")
THREE = np.digitize(SIGNAL, [-0.4, 0.4])
VALUES = SIGNAL + 0.1 * RNG.normal(size=240)
AS_THEY_LIE: dict[str, Any] = {"shuffle": False, "passes": 2, "dtype": "float64"}

pytestmark = pytest.mark.filterwarnings("ignore:.*all weights are zero")


def agree(estimator: Any, grid: Any, y: Any, fit: Any = None, rows: Any = X, **options: Any) -> Any:
    """Search with OnePassSearchCV and GridSearchCV; the results must be equal."""
    ours = OnePassSearchCV(estimator, grid, **options).fit(rows, y, **(fit or {}))
    theirs = GridSearchCV(estimator, grid, **options).fit(rows, y, **(fit or {}))
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    for name, expected in theirs.cv_results_.items():
        found = ours.cv_results_[name]
        if name.startswith(("split", "mean_test", "std_test")):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10, err_msg=name)
        elif name == "params":
            assert found == expected
        elif "time" not in name:
            assert found.tolist() == expected.tolist(), name  # masked values are None
    assert ours.n_splits_ == theirs.n_splits_
    assert ours.multimetric_ == theirs.multimetric_
    if options.get("refit", True):
        assert ours.best_params_ == theirs.best_params_
        assert ours.best_index_ == theirs.best_index_
        np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
        assert ours.best_model_.nnz == theirs.best_estimator_.model_.nnz
    return ours


def made(name: str) -> Any:
    """Return an estimator that does not shuffle; mirror descent has no dtype."""
    cls = getattr(thresher, name)
    known = cls().get_params()
    return cls(**{name: value for name, value in AS_THEY_LIE.items() if name in known})


GRIDS: list[tuple[str, dict[str, Any]]] = [
    (
        "TruncatedGradient",
        {"gravity": ["auto", 1e-3, 0.1], "period": [1, 7], "eta0": ["auto", 0.3]},
    ),
    ("TruncatedGradient", {"shrink": ["round", "subgradient"], "ceiling": [0.1], "l2": [0, 0.01]}),
    ("TruncatedGradient", {"average": [False, True], "schedule": ["constant", "sqrt", "inverse"]}),
    ("TruncatedGradient", {"target_nnz": [3, None], "refit": [False], "certify": [True, False]}),
    ("ForwardBackward", {"l1": ["auto", 1e-3, 0.1], "decay": [0.5, 1.0]}),
    ("FTRL", {"l1": [0.0, 0.3, 2.0], "alpha": [0.1, 1.0], "fit_intercept": [True, False]}),
    ("AveragedSGD", {"alpha": [1e-4, 1e-2], "average": [True, False]}),
    ("DualAveraging", {"l1": ["auto", 1e-2], "strength": ["auto", 1.0]}),
    ("MirrorDescent", {"l1": [1e-3, 1e-2], "p": ["2ln", 3.0]}),
]


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(("rule", "grid"), GRIDS)
def test_classifiers(rule: str, grid: dict[str, Any], y: Any) -> None:
    """Every rule, with two and with more classes, in one group of models."""
    found = agree(made(f"{rule}Classifier"), grid, y, cv=3)
    assert found.n_readings_ == 1


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_margin_perceptrons(y: Any) -> None:
    """Models that stop early wait for the others."""
    clf = thresher.MarginPerceptronClassifier(**{**AS_THEY_LIE, "passes": 30})
    agree(clf, {"margin": [0.0, 0.3, 1.0], "shrink": ["touched", "all"]}, y, cv=3)


@pytest.mark.parametrize(("rule", "grid"), GRIDS)
def test_regressors(rule: str, grid: dict[str, Any]) -> None:
    """Every rule that learns values."""
    if rule == "AveragedSGD":  # with alpha = 1e-4, the first steps magnify rounding errors
        grid = {**grid, "alpha": [1e-2, 1.0]}
    agree(made(f"{rule}Regressor"), grid, VALUES, cv=4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_stores_and_numbers(store: str, dtype: str) -> None:
    """Results are equal with both stores and both number types."""
    given = {**AS_THEY_LIE, "alpha": 1.0, "store": store, "dtype": dtype}
    clf = thresher.FTRLClassifier(**given)
    agree(clf, {"l1": [0.1, 1.0], "loss": ["logistic", "hinge"]}, THREE, cv=3)


SPLITTERS = [
    4,
    KFold(3),
    KFold(3, shuffle=True, random_state=1),
    ShuffleSplit(3, test_size=0.3, random_state=0),
    RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    PredefinedSplit(np.arange(240) % 4 - 1),
    [(np.arange(60, 240), np.arange(60)), (np.arange(0, 200), np.arange(150, 240))],
    [(np.arange(239, -1, -1), np.arange(10, 40)), (np.arange(240) % 100, np.arange(100, 240))],
    [(np.arange(240) < 150, np.arange(240) >= 150)],
]


@pytest.mark.parametrize("cv", SPLITTERS, ids=lambda cv: type(cv).__name__)
def test_splitters(cv: Any) -> None:
    """Splits may overlap, leave rows out, repeat rows, and have any order."""
    clf = thresher.TruncatedGradientClassifier(**AS_THEY_LIE)
    agree(clf, {"gravity": ["auto", 0.01]}, TWO, cv=cv)


def test_groups() -> None:
    """A splitter that needs groups gets them."""
    clf = thresher.FTRLClassifier(**AS_THEY_LIE)
    agree(clf, {"l1": [0.1, 1.0]}, TWO, cv=GroupKFold(3), fit={"groups": np.arange(240) // 20})


def test_a_split_that_repeats_rows_is_shuffled_like_a_fit() -> None:
    """Its models equal fits to the same rows."""
    train = RNG.integers(0, 240, 200)
    clf = thresher.FTRLClassifier(passes=2, random_state=3)
    agree(clf, {"l1": [0.1, 1.0]}, TWO, cv=[(train, np.arange(50)), (train[:90], np.arange(40))])


@pytest.mark.parametrize("class_weight", [None, {"no": 3.0}, "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights(class_weight: Any, weighted: bool) -> None:
    """Weights of rows and classes; balanced weights are computed per fold."""
    clf = thresher.TruncatedGradientClassifier(class_weight=class_weight, **AS_THEY_LIE)
    fit = {"sample_weight": np.random.default_rng(1).random(240)} if weighted else {}
    agree(clf, {"gravity": ["auto", 0.01]}, TWO, cv=3, fit=fit)


def test_parameters_of_the_run_are_searched_too() -> None:
    """Points with different passes or shuffling train in separate groups."""
    grid = [
        {"passes": [1, 3], "l1": [0.1, 1.0]},
        {"store": ["hashed"], "dtype": ["float64"], "class_weight": [None, {"no": 2.0}]},
    ]
    found = agree(thresher.FTRLClassifier(shuffle=False), grid, TWO, cv=3)
    assert found.n_readings_ == 4


@pytest.mark.parametrize("shuffle", ["each", "once", "replace", "blocks"])
def test_shuffled_rows(shuffle: str) -> None:
    """All models have the same order of rows; the result does not depend on threads."""
    clf = thresher.TruncatedGradientClassifier(shuffle=shuffle, passes=3, random_state=0)
    grid = {"gravity": [1e-4, 1e-2], "eta0": [0.1, "auto"]}
    one = OnePassSearchCV(clf, grid, cv=3).fit(X, TWO)
    two = OnePassSearchCV(clf, grid, cv=3, n_jobs=2, memory_limit=6 * 8 * 31).fit(X, TWO)
    assert two.n_readings_ > one.n_readings_ == 1
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )
    assert one.best_score_ > 0.8


SCORINGS: list[tuple[Any, Any]] = [
    ("accuracy", True),
    ("roc_auc", True),
    ("neg_log_loss", True),
    (make_scorer(accuracy_score), True),
    (lambda clf, X, y: -float(clf.model_.nnz), True),
    (lambda clf, X, y: -float(np.abs(clf.coef_).sum() + abs(clf.intercept_[0])), True),
    (lambda clf, X, y: float((clf.predict(X[:5]) == y[:5]).mean()), True),
    (["accuracy", "neg_log_loss"], "neg_log_loss"),
    ({"a": "accuracy", "b": "balanced_accuracy"}, False),
    ({"a": "accuracy"}, lambda results: int(np.argmin(results["mean_test_a"]))),
    (lambda clf, X, y: {"a": clf.score(X, y), "b": 1.0}, "a"),
]


@pytest.mark.parametrize(("scoring", "refit"), SCORINGS)
def test_scorings(scoring: Any, refit: Any) -> None:
    """Any scorer, several scorers, and any choice of the best point."""
    clf = thresher.TruncatedGradientClassifier(**AS_THEY_LIE)
    agree(clf, {"gravity": [1e-4, 0.02, 0.05]}, TWO, cv=3, scoring=scoring, refit=refit)


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_nonzeros(y: Any) -> None:
    """`nonzeros_` equals the result of a scorer that counts nonzeros."""
    clf = thresher.TruncatedGradientClassifier(**AS_THEY_LIE)
    grid = {"gravity": [1e-4, 0.02, 0.2], "average": [False, True]}
    grids = [grid, {"target_nnz": [4], "refit": [False]}]
    count = OnePassSearchCV(clf, grids, cv=3, scoring=lambda clf, X, y: clf.model_.nnz).fit(X, y)
    splits = [count.cv_results_[f"split{k}_test_score"] for k in range(3)]
    assert count.nonzeros_.T.tolist() == np.array(splits).tolist()
    assert count.nonzeros_[0].min() > count.nonzeros_[2].max() >= 0


def test_frames() -> None:
    """Columns keep their names."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X.toarray(), columns=[f"f{i}" for i in range(30)])
    clf = thresher.FTRLClassifier(**AS_THEY_LIE)
    found = agree(clf, {"l1": [0.1, 1.0]}, pandas.Series(TWO), rows=frame, cv=3)
    assert found.feature_names_in_[0] == "f0"
    assert str(found.best_model_.top(1)[0].name).startswith("f")


def test_predictions_of_the_best() -> None:
    """The search predicts with the best estimator."""
    clf = thresher.FTRLClassifier(passes=2, random_state=0)
    search = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=3, scoring="roc_auc").fit(X, THREE == 1)
    best = search.best_estimator_
    for ask in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        np.testing.assert_array_equal(getattr(search, ask)(X), getattr(best, ask)(X))
    assert search.score(X, THREE == 1) == pytest.approx(search.scorer_(best, X, THREE == 1))
    assert search.classes_.tolist() == [False, True]
    assert search.n_features_in_ == 30
    assert search.refit_time_ > 0
    assert search.best_model_ is best.model_


def test_it_is_an_estimator() -> None:
    """Clones, parameters, pickles and pipelines."""
    search = OnePassSearchCV(thresher.FTRLClassifier(passes=2), {"l1": [0.1, 1.0]}, cv=3)
    copy = clone(search).set_params(cv=4, estimator__alpha=0.5)
    assert (copy.cv, copy.estimator.alpha, search.estimator.alpha) == (4, 0.5, "auto")
    piped = make_pipeline(MaxAbsScaler(), copy).fit(X, TWO)
    again = pickle.loads(pickle.dumps(piped))
    np.testing.assert_array_equal(piped.predict(X), again.predict(X))


@parametrize_with_checks(
    [
        OnePassSearchCV(cls(passes=2, random_state=0), {"l1": [0.1, 0.3]}, cv=2)
        for cls in (thresher.FTRLClassifier, thresher.FTRLRegressor)
    ]
)
def test_contract(estimator: Any, check: Any) -> None:
    """scikit-learn's checks of estimators."""
    check(estimator)


def test_without_refit() -> None:
    """Only scores are available."""
    search = OnePassSearchCV(thresher.FTRLClassifier(passes=1), {"l1": [0.1]}, refit=False)
    search.fit(X, TWO)
    assert search.best_params_ == {"l1": 0.1}
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "predict")


def test_the_lanes_are_freed_without_the_garbage_collector() -> None:
    X, y = np.eye(8), np.tile([0, 1], 4)
    search = OnePassSearchCV(
        thresher.TruncatedGradientClassifier(), {"gravity": [0.0, 0.1]}, cv=2, n_jobs=2
    )
    gc.collect()
    gc.disable()
    try:
        search.fit(X, y)
        assert not any(isinstance(each, LaneTeam) for each in gc.get_objects())
    finally:
        gc.enable()


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    """The callback gets each pass and the scoring."""
    seen: list[SearchProgress] = []
    clf = thresher.FTRLClassifier(passes=3, random_state=0)
    options = {"cv": 4, "callback": seen.append, "verbose": 1}
    OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, **options).fit(X, THREE)
    assert [p.number for p in seen if p.rows == 240] == [1, 2, 3, 4]
    assert {p.lanes for p in seen} == {2 * 4 * 3}
    assert {(p.reading, p.readings, p.passes) for p in seen} == {(1, 1, 3)}
    assert [sorted(p.losses) for p in seen] == [[0, 1]] * len(seen)
    assert seen[-1].losses[0] < seen[0].losses[0]  # later passes have a smaller loss
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= len(seen)  # in a file, a line every 5 seconds
    assert lines[0].startswith("pass 1/3: 240 rows, 24 models")


# ---- real data -------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", [pytest.param("a9a", marks=pytest.mark.soak), "pcmac"])
def test_real_data(data_dir: Path, name: str) -> None:
    """The results are equal on real data, and the chosen model is good."""
    data = datasets.load(name, data_dir)
    rows, y = data.X_train[:4000], data.y_train[:4000]
    clf = thresher.TruncatedGradientClassifier(**AS_THEY_LIE)
    grid = {"gravity": [1e-5, 1e-4, 1e-3], "eta0": ["auto", 0.1]}
    found = agree(clf, grid, y, rows=rows, cv=5, n_jobs=2)
    assert found.score(data.X_test, data.y_test) > 0.8
