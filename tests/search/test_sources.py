"""A search over a source: what it would find in memory, without holding the rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV, KFold

import thresher
from support.files import pipe, svmlight, vw
from thresher import OnePassSearchCV, ParameterError, scan
from thresher.data.targets import Targets
from thresher.search.folds import fold_numbers
from thresher.stability import StreamingStabilitySelection
from thresher.training.lanes import LaneTeam
from thresher.training.scores import SCORES

AS_THEY_LIE = {"shuffle": False, "passes": 2}
OF_CLASSES = [name for name, score in SCORES.items() if score.task == "classifier"]
OF_VALUES = [name for name, score in SCORES.items() if score.task == "regressor"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return files of two classes, three classes, values, and names."""
    folder = tmp_path_factory.mktemp("search")
    return {
        "two": svmlight(folder / "two.svm", rows=300),
        "three": svmlight(folder / "three.svm", rows=300, classes=(2, 4, 9)),
        "values": svmlight(folder / "values.svm", rows=300, classes=(0, 1, 2, 3, 4, 5)),
        "names": vw(folder / "names.vw", rows=300),
    }


def folds(rows: int, count: int) -> list[tuple[Any, Any]]:
    """Return the folds of a source as splits of rows in memory."""
    number = fold_numbers(0, rows, count)
    return [(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(count)]


# ---- folds -----------------------------------------------------------------------------------


def test_classes_are_counted_and_not_tabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several classes, the one of each row is known without what each output is told."""
    path = svmlight(tmp_path / "rows.svm", rows=120, classes=(2, 4, 9))
    asked, before = list[int](), Targets.__getitem__

    def told(self: Targets, output: int) -> Any:
        if len(self) > 1 and output != 0:  # a batch is told of one
            asked.append(output)
        return before(self, output)

    clf = thresher.FTRLClassifier(passes=1)
    monkeypatch.setattr(Targets, "__getitem__", told)
    search = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, refit=False).fit(scan(path))
    assert search.best_score_ > 0.5
    weights = {2: 1.0, 4: 2.0, 9: 1.0}
    halves = StreamingStabilitySelection(clf.set_params(class_weight=weights), pairs=2)
    assert halves.fit(scan(path)).n_rows_ >= 118
    rows, y = load_svmlight_file(str(path))
    assert halves.fit(rows, y).n_rows_ >= 118
    assert asked == []


def test_folds_are_fixed() -> None:
    """SplitMix64 of seed 0: its first numbers are published."""
    assert fold_numbers(0, 1, 2**40).tolist() == [0xE220A8397B1DCDAF % 2**40]
    assert fold_numbers(1, 2, 1000).tolist() == [
        0x6E789E6AA1B965F4 % 1000,
        0x06C45D188009454F % 1000,
    ]
    counts = np.bincount(fold_numbers(0, 100_000, 5))
    assert (np.abs(counts - 20_000) < 600).all()


@given(st.integers(0, 2**40), st.lists(st.integers(0, 50), max_size=6), st.integers(2, 11))
def test_folds_do_not_depend_on_blocks(first: int, sizes: list[int], count: int) -> None:
    """However rows are cut."""
    starts = first + np.cumsum([0, *sizes])
    parts = [fold_numbers(int(at), size, count) for at, size in zip(starts, sizes, strict=False)]
    whole = fold_numbers(first, sum(sizes), count)
    assert np.concatenate([np.zeros(0, int), *parts]).tolist() == whole.tolist()


# ---- as in memory ----------------------------------------------------------------------------

# At an alpha of 1e-3, a change of the last bit of these rows moves the scores of averaged SGD,
# trained alone, by 3e-4.
RULES: list[tuple[str, dict[str, Any]]] = [
    ("TruncatedGradient", {"gravity": [1e-3, 0.05], "average": [False, True]}),
    ("ForwardBackward", {"l1": [1e-3, 0.05]}),
    ("FTRL", {"l1": [0.1, 2.0], "passes": [1, 2]}),
    ("AveragedSGD", {"alpha": [1e-2, 0.1]}),
    ("DualAveraging", {"l1": [1e-3, 0.05]}),
]


def agree(path: Path, estimator: Any, grid: Any, scoring: list[str], **options: Any) -> Any:
    """Search a file and its rows in memory; both must find the same."""
    X, y = load_svmlight_file(str(path))
    y = y if estimator.task == "regressor" else y.astype(int)
    refit = scoring[0]
    ours = OnePassSearchCV(estimator, grid, scoring=scoring, refit=refit, cv=4, **options)
    ours.fit(scan(path))
    theirs = GridSearchCV(estimator, grid, scoring=scoring, refit=refit, cv=folds(300, 4))
    theirs.fit(X, y)
    for name, expected in theirs.cv_results_.items():
        if name.startswith(("split", "mean_test", "std_test")):
            np.testing.assert_allclose(ours.cv_results_[name], expected, rtol=1e-6, err_msg=name)
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.n_splits_ == 4
    in_memory = OnePassSearchCV(estimator, grid, cv=folds(300, 4), refit=False).fit(X, y)
    assert ours.nonzeros_.tolist() == in_memory.nonzeros_.tolist()
    return ours


@pytest.mark.filterwarnings("ignore:.*all weights are zero")
@pytest.mark.parametrize("name", ["two", "three"])
@pytest.mark.parametrize(("rule", "grid"), RULES)
def test_classifiers(files: dict[str, Path], rule: str, grid: Any, name: str) -> None:
    """All scores, of two classes and of more."""
    cls = getattr(thresher, f"{rule}Classifier")
    found = agree(files[name], cls(dtype="float64", **AS_THEY_LIE), grid, OF_CLASSES)
    assert found.best_score_ > 0.5
    assert found.classes_.tolist() == ([-1, 1] if name == "two" else [2, 4, 9])


@pytest.mark.filterwarnings("ignore:.*all weights are zero")
@pytest.mark.parametrize(("rule", "grid"), RULES)
def test_regressors(files: dict[str, Path], rule: str, grid: Any) -> None:
    """All scores of values."""
    cls = getattr(thresher, f"{rule}Regressor")
    agree(files["values"], cls(dtype="float64", loss="huber", **AS_THEY_LIE), grid, OF_VALUES)


def test_mirror_descent(files: dict[str, Path]) -> None:
    """Its norm is that of the number of features, which the look before tells."""
    clf = thresher.MirrorDescentClassifier(**AS_THEY_LIE)
    agree(files["two"], clf, {"l1": [1e-3, 1e-2]}, ["accuracy", "neg_log_loss"])


def test_stores_threads_and_memory(files: dict[str, Path]) -> None:
    """None of them matters."""
    grid = {"l1": [0.1, 2.0], "loss": ["logistic", "clipped_square"]}
    for options in ({}, {"n_jobs": 2}, {"memory_limit": 60 * 64 * 3}):
        for store in ("dense", "hashed"):
            clf = thresher.FTRLClassifier(dtype="float64", store=store, **AS_THEY_LIE)
            options = {} if store == "hashed" else options
            found = agree(files["three"], clf, grid, ["accuracy", "neg_log_loss"], **options)
            assert found.n_readings_ >= 2


def test_the_last_fit_is_to_the_source(files: dict[str, Path]) -> None:
    """Shuffled within blocks, as a fit to the source is."""
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
    """Once for each pass and once to score; before, once for labels or width not known yet."""
    for cls, options, looks in (
        (thresher.FTRLClassifier, {}, 1),
        (thresher.FTRLRegressor, {}, 1),
        (thresher.FTRLRegressor, {"bits": 10}, 0),
    ):
        source = scan(files["two"], **options)
        counted = Counted(source)
        search = OnePassSearchCV(cls(passes=3), {"l1": [0.1, 0.3, 1.0]}, cv=5, refit=False)
        search.fit(source)
        assert counted.count == looks + 3 + 1


def test_progress() -> None:
    """A callback is told now and then, and of the losses so far."""
    seen: list[Any] = []
    batches = [(np.eye(3), np.array([0, 1, 1]))] * 3

    def slowly() -> Any:
        for batch in batches:
            time.sleep(0.25)
            yield batch

    clf = thresher.FTRLClassifier(passes=2)
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
    """Rows of weight 0 neither teach nor count; class weights are those of a fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] > 0).astype(int)
    weights = (np.arange(200) % 4 > 0).astype(float)
    y[weights == 0] ^= 1
    clf = thresher.FTRLClassifier(dtype="float64", class_weight={0: 2.0}, **AS_THEY_LIE)
    source = scan(lambda: iter([(X[:70], y[:70], weights[:70]), (X[70:], y[70:], weights[70:])]))
    ours = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=3, refit=False).fit(source)
    for fold, (train, test) in enumerate(folds(200, 3)):
        alone = clf.set_params(l1=0.1).fit(X[train], y[train], weights[train])
        expected = np.average(alone.predict(X[test]) == y[test], weights=weights[test])
        assert ours.cv_results_[f"split{fold}_test_score"][0] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["two", "three"])
def test_balanced_classes(files: dict[str, Path], name: str) -> None:
    """The weights of a fold are those of the rows it learns from: folds train apart."""
    clf = thresher.FTRLClassifier(dtype="float64", class_weight="balanced", **AS_THEY_LIE)
    found = agree(files[name], clf, {"l1": [0.1, 2.0]}, ["accuracy", "neg_log_loss"])
    assert found.n_readings_ == 4
    plain = OnePassSearchCV(clf.set_params(class_weight=None), {"l1": [0.1, 2.0]}, cv=4)
    plain.fit(scan(files[name]))
    assert plain.n_readings_ == 1
    assert (plain.nonzeros_ != found.nonzeros_).any()


def test_balanced_classes_of_rows_as_they_come(files: dict[str, Path]) -> None:
    """Where rows can be read twice, they are counted first; a pipe is refused, with the reason."""
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


def test_rates_and_stores_that_rows_decide(files: dict[str, Path]) -> None:
    """The first rows decide the rate of FTRL, and names the store, as in a fit."""
    X, y = load_svmlight_file(str(files["two"]))
    for rows in ((scan(files["two"]),), (X, y.astype(int))):
        clf = thresher.FTRLClassifier(alpha="auto", dtype="float64", **AS_THEY_LIE)
        grid = {"l1": [0.1, 2.0], "alpha": ["auto", 0.05]}
        found = OnePassSearchCV(clf, grid, cv=4).fit(*rows)
        rate = clf.fit(*rows).model_.parameters["alpha"]
        assert isinstance(rate, float)
        told = OnePassSearchCV(clf, {**grid, "alpha": [rate, 0.05]}, cv=4).fit(*rows)
        for name in ("mean_test_score", "std_test_score"):
            assert found.cv_results_[name].tolist() == told.cv_results_[name].tolist()
    path = thresher.SparsityPath(clf, [0.1, 2.0]).fit(scan(files["two"]))
    assert {model.parameters["alpha"] for model in path.models_ if model} == {rate}
    named = thresher.FTRLClassifier(store="auto", passes=1)
    path = thresher.SparsityPath(named, [0.1, 2.0]).fit(scan(files["names"]))
    assert path.best_estimator_.model_.parameters["store"] == "hashed"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cv", [3, "progressive"])
def test_weights_that_are_all_zero(cv: Any) -> None:
    """There is nothing to learn, or nothing to score by: an error, and no warnings of numpy's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    clf = thresher.FTRLClassifier(**AS_THEY_LIE)
    none = scan(lambda: iter([(X, y, np.zeros(60))]))
    with pytest.raises(thresher.DataError, match="the weights of all rows are 0"):
        OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=cv).fit(none)
    if cv == 3:
        weights = (fold_numbers(0, 60, 3) != 1).astype(float)
        some = scan(lambda: iter([(X, y, weights)]))
        with pytest.raises(thresher.DataError, match="the weights of all rows of fold 1 are 0"):
            OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv=cv).fit(some)


# ---- what is refused -------------------------------------------------------------------------


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model may learn."""

    def learn(*_: Any, **__: Any) -> None:
        raise AssertionError("a model has begun to learn")

    monkeypatch.setattr(LaneTeam, "learn", learn)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"scoring": "roc_auc"}, "by sums over rows alone: accuracy, balanced_accuracy"),
    ({}, {"scoring": ["accuracy", "r2"], "refit": "r2"}, "got 'r2'"),
    ({}, {"scoring": lambda clf, X, y: 1.0}, "by sums over rows alone"),
    (
        {"loss": "hinge"},
        {"scoring": "neg_log_loss"},
        "losses with probabilities: logistic, clipped_square",
    ),
    ({}, {"cv": KFold(3)}, "cv must be a number of folds >= 2, or 'progressive'"),
    ({}, {"cv": 1}, "'cv' parameter of OnePassSearchCV must be an int in the range"),
    ({}, {"cv": [([0], [1])]}, "cv must be a number of folds >= 2"),
    ({"class_weight": {5: 2.0}}, {}, "class_weight has weights of \\['5'\\], which are no classes"),
    ({}, {"fit": {"y": [1]}}, "a source has its own labels and weights"),
    ({}, {"fit": {"classes": [1]}}, "at least 2 classes"),
    ({}, {"memory_limit": 100}, "a single model of this grid needs"),
]


@pytest.mark.usefixtures("untrained")
@pytest.mark.parametrize(("params", "options", "message"), REFUSED)
def test_refused(files: dict[str, Path], params: Any, options: Any, message: str) -> None:
    """Errors before anything is trained."""
    fit = dict(options).pop("fit", {})
    options = {name: value for name, value in options.items() if name != "fit"}
    search = OnePassSearchCV(thresher.FTRLClassifier(**params), {"l1": [0.1]}, **options)
    with pytest.raises((ValueError, MemoryError), match=message):
        search.fit(scan(files["two"]), **fit)


@pytest.mark.usefixtures("untrained")
def test_refused_of_sources(files: dict[str, Path], tmp_path: Path) -> None:
    """What a source has, or has not."""
    clf = thresher.FTRLClassifier(passes=1)
    grid = {"l1": [0.1]}
    rows = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ParameterError, match="features with names need store='hashed'"):
        OnePassSearchCV(clf, grid).fit(scan(files["names"]))
    with pytest.raises(ParameterError, match="can be read only once: passes must be 1; got 20"):
        OnePassSearchCV(thresher.FTRLClassifier(), grid).fit(pipe(*rows))
    with pytest.raises(ParameterError, match="all points of the grid must have the same"):
        OnePassSearchCV(clf, {"dtype": ["float32", "float64"]}).fit(pipe(*rows))
    truncated = thresher.TruncatedGradientClassifier()
    with pytest.raises(ParameterError, match="certify is not available for a source"):
        OnePassSearchCV(truncated, {"certify": [True]}).fit(scan(files["two"]))
    perceptron = thresher.MarginPerceptronClassifier(levels=(0.1,))
    with pytest.raises(ParameterError, match="levels is not available for a source"):
        OnePassSearchCV(perceptron, {"margin": [0.1]}).fit(scan(files["two"]))
    rare = tmp_path / "rare.svm"
    rare.write_text("1 1:1\n-1 2:1\n" * 20 + "7 3:1\n")
    fold = fold_numbers(40, 1, 5)[0]
    with pytest.raises(
        ParameterError, match=f"training part of split {fold} has no row of class 7"
    ):
        OnePassSearchCV(clf, grid).fit(scan(rare))
    few = tmp_path / "few.svm"
    few.write_text("1 1:1\n-1 2:1\n" * 3)
    with pytest.raises(ParameterError, match=r"cv: fold \d+ has none of the 6 rows of"):
        OnePassSearchCV(clf, grid, cv=20).fit(scan(few))
    mirror = thresher.MirrorDescentClassifier(passes=1)
    with pytest.raises(ParameterError, match="its norm depends on the number of features"):
        OnePassSearchCV(mirror, {"l1": [0.1]}).fit(pipe(*rows))
    empty = tmp_path / "empty.svm"
    empty.write_text("# nothing\n")
    with pytest.raises(thresher.DataError, match="no rows"):
        OnePassSearchCV(clf, grid).fit(scan(empty))


def test_a_pipe_that_is_too_wide() -> None:
    """Memory is looked at before weights are made for more features."""
    X = np.zeros((20, 3000))
    X[:10, 0], X[10:, 2999] = 1.0, 1.0
    search = OnePassSearchCV(
        thresher.FTRLClassifier(passes=1), {"l1": [0.1, 1.0]}, memory_limit=10_000
    )
    with pytest.raises(MemoryError, match="memory_limit is 10,000"):
        search.fit(pipe(X, np.arange(20) % 2, size=5))


def test_labels_that_a_loss_does_not_take() -> None:
    """Those of every loss of the grid are refused, and not of the estimator's alone."""
    reg = thresher.FTRLRegressor(passes=1)
    search = OnePassSearchCV(reg, {"loss": ["squared", "poisson", "clipped_square"]})
    with pytest.raises(thresher.DataError, match="the label is -3; loss poisson needs >= 0"):
        search.fit(pipe(np.eye(4), np.array([0.0, 1.0, -3.0, 0.0])))


def test_labels_of_two_kinds() -> None:
    """Numbers and words cannot be put in an order."""
    batches = [(np.eye(2), np.array([0, 1])), (np.eye(2), np.array(["no", "yes"]))]
    search = OnePassSearchCV(thresher.FTRLClassifier(), {"l1": [0.1]})
    with pytest.raises(ParameterError, match="labels are partly numbers and partly words"):
        search.fit(scan(lambda: iter(batches * 10)))


def test_a_label_that_is_not_a_class() -> None:
    """The error names the row."""
    search = OnePassSearchCV(thresher.FTRLClassifier(passes=1), {"l1": [0.1]})
    with pytest.raises(thresher.DataError, match="label is 3; labels must be -1 and 1, or 0 and 1"):
        search.fit(pipe(np.eye(4), np.array([0, 1, 3, 0])))
