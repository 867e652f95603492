"""Sources and options that a search refuses, before training if possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

import thresher
from support.files import pipe
from support.source_searches import files_of
from thresher import OnePassSearchCV, ParameterError, scan
from thresher.search.folds import fold_numbers
from thresher.training.lanes import LaneTeam


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return files_of(tmp_path_factory.mktemp("search"))


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model may learn."""

    def learn(*_: Any, **__: Any) -> None:
        raise AssertionError("a model has begun to learn")

    monkeypatch.setattr(LaneTeam, "learn", learn)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"scoring": "f1"}, "only by sums over rows: accuracy, balanced_accuracy"),
    ({}, {"scoring": ["accuracy", "r2"], "refit": "r2"}, "got 'r2'"),
    ({}, {"scoring": lambda clf, X, y: 1.0}, "only by sums over rows"),
    (
        {"loss": "hinge"},
        {"scoring": "neg_log_loss"},
        "losses with probabilities: logistic",
    ),
    ({}, {"cv": KFold(3)}, "cv must be a number of folds >= 2, or 'progressive'"),
    ({}, {"cv": 1}, "'cv' parameter of OnePassSearchCV must be an int in the range"),
    ({}, {"cv": [([0], [1])]}, "cv must be a number of folds >= 2"),
    (
        {"class_weight": {5: 2.0}},
        {},
        "class_weight has weights of \\['5'\\], which are not classes",
    ),
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
    """Errors that depend on the source."""
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
    rare.write_text("1 1:1\n1 2:1\n" * 20 + "7 3:1\n")
    order = np.random.default_rng(0).permutation(41)  # of shuffled rows
    fold = fold_numbers(int(np.flatnonzero(order == 40)[0]), 1, 5)[0]
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
    """The memory limit is checked before the store grows."""
    X = np.zeros((20, 3000))
    X[:10, 0], X[10:, 2999] = 1.0, 1.0
    search = OnePassSearchCV(
        thresher.FTRLClassifier(passes=1), {"l1": [0.1, 1.0]}, memory_limit=10_000
    )
    with pytest.raises(MemoryError, match="memory_limit is 10,000"):
        search.fit(pipe(X, np.arange(20) % 2, size=5))


def test_labels_that_a_loss_does_not_allow() -> None:
    """Labels are checked for every loss of the grid."""
    reg = thresher.FTRLRegressor(passes=1)
    search = OnePassSearchCV(reg, {"loss": ["poisson", "clipped_square"]})
    with pytest.raises(thresher.DataError, match="the label is -3; loss poisson needs >= 0"):
        search.fit(pipe(np.eye(4), np.array([0.0, 1.0, -3.0, 0.0])))


def test_labels_of_two_kinds() -> None:
    """Numbers and words cannot be sorted together."""
    batches = [(np.eye(2), np.array([0, 1])), (np.eye(2), np.array(["no", "yes"]))]
    search = OnePassSearchCV(thresher.FTRLClassifier(), {"l1": [0.1]})
    with pytest.raises(ParameterError, match="labels are partly numbers and partly words"):
        search.fit(scan(lambda: iter(batches * 10)))


def test_a_label_that_is_not_a_class() -> None:
    """The error names the row."""
    search = OnePassSearchCV(thresher.FTRLClassifier(passes=1), {"l1": [0.1]})
    with pytest.raises(thresher.DataError, match="label is 3; labels must be -1 and 1, or 0 and 1"):
        search.fit(pipe(np.eye(4), np.array([0, 1, 3, 0])))
