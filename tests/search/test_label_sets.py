"""Searches over rows with any number of labels: indicator matrices and sources."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import thresher
from thresher import OnePassSearchCV, ParameterError, SparsityPath, scan
from thresher.search.folds import fold_numbers

RNG = np.random.default_rng(0)
X = sp.random_array((300, 30), density=0.25, rng=RNG, format="csr")
SETS = (X @ RNG.normal(size=(30, 4)) > 0.3).astype(int)
CLF = thresher.TruncatedGradientClassifier(passes=3, shuffle=False, dtype="float64")
GRID = {"gravity": [1e-4, 1e-2, 0.3], "eta0": [0.1, 0.5]}
FOLDS = KFold(3)

pytestmark = pytest.mark.filterwarnings("ignore:.*all weights are zero")


def mean_loss(model: Any, rows: Any, Y: Any) -> float:
    """Return the mean logistic loss over rows and labels."""
    return float(np.logaddexp(0.0, -np.where(Y, 1, -1) * model.decision_function(rows)).mean())


@pytest.mark.parametrize("scoring", [None, "f1_micro", "accuracy", "f1_macro"])
@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("width", [4, 2])
def test_rows_in_memory(kind: Any, scoring: Any, width: int) -> None:
    """The scores are those of `GridSearchCV`; all models train together."""
    Y = kind(SETS[:, :width])
    ours = OnePassSearchCV(CLF, GRID, cv=FOLDS, scoring=scoring).fit(X, Y)
    theirs = GridSearchCV(CLF, GRID, cv=FOLDS, scoring=scoring).fit(X, Y)
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-10)
    assert ours.n_readings_ == 1
    assert ours.best_params_ == theirs.best_params_
    found, expected = ours.predict(X), theirs.predict(X)
    assert sp.issparse(found) == (kind is sp.csr_matrix)
    assert (found != expected).sum() == 0
    assert ours.best_model_.multilabel
    assert ours.best_model_.frontier is not None


def test_several_scores_and_the_mean_loss() -> None:
    """The mean loss is over rows and labels; the frontier has it as its measure."""
    scoring = ["f1_micro", "neg_mean_loss"]
    search = OnePassSearchCV(CLF, GRID, cv=FOLDS, scoring=scoring, refit="neg_mean_loss")
    search.fit(X, SETS)
    for number, (train, test) in enumerate(FOLDS.split(X)):
        model = clone(CLF).set_params(gravity=1e-2, eta0=0.5).fit(X[train], SETS[train])
        at = search.cv_results_["params"].index({"gravity": 1e-2, "eta0": 0.5})
        found = search.cv_results_[f"split{number}_test_neg_mean_loss"][at]
        assert found == pytest.approx(-mean_loss(model, X[test], SETS[test]))
    assert search.best_model_.frontier.measure == "mean loss"
    assert search.score(X, SETS) == pytest.approx(-mean_loss(search, X, SETS))


def test_the_mean_loss_of_one_label_per_row() -> None:
    """It is for all classifiers, and no regressor."""
    y = SETS[:, 0]
    search = OnePassSearchCV(CLF, GRID, cv=FOLDS, scoring="neg_mean_loss").fit(X, y)
    log_loss = OnePassSearchCV(CLF, GRID, cv=FOLDS, scoring="neg_log_loss").fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], log_loss.cv_results_["mean_test_score"]
    )
    reg = thresher.FTRLRegressor()
    with pytest.raises(ParameterError, match=r"neg_mean_loss.* is for classifiers"):
        OnePassSearchCV(reg, {"l1": [0.1]}, scoring="neg_mean_loss", error_score="raise").fit(X, y)


def test_plain_fits_and_pipelines() -> None:
    """Both ways of training, and transformed rows."""
    ftrl = thresher.FTRLClassifier(passes=2, random_state=0)
    for estimator, grid in (
        (ftrl, {"target_nnz": [3, 9]}),
        (make_pipeline(MaxAbsScaler(), ftrl), {"ftrlclassifier__target_nnz": [3, 9]}),
        (make_pipeline(MaxAbsScaler(), CLF), {"truncatedgradientclassifier__eta0": [0.1, 0.5]}),
    ):
        options: dict[str, Any] = {"cv": FOLDS, "scoring": "f1_micro"}
        ours = OnePassSearchCV(estimator, grid, **options).fit(X, SETS)
        theirs = GridSearchCV(estimator, grid, **options).fit(X, SETS)
        name = "mean_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-10)


def test_texts() -> None:
    """Texts with several labels."""
    texts = ["good film", "bad film", "good book", "bad book", "weather"] * 20
    Y = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 0]] * 20)
    clf = thresher.FTRLClassifier(passes=5, random_state=0)
    pipe = make_pipeline(TfidfVectorizer(), clf)
    search = OnePassSearchCV(pipe, {"ftrlclassifier__l1": [0.1, 1.0]}, scoring="f1_micro")
    assert search.fit(texts, Y).score(texts, Y) > 0.9


def test_paths() -> None:
    """A path over gravities, by lanes; and over numbers of weights, by plain fits."""
    path = SparsityPath(CLF, cv=FOLDS, scoring="f1_micro").fit(X, SETS)
    assert path.frontier_.measure == "1 - f1_micro"
    for n, gravity in enumerate(path.gravities_[::5]):
        model = clone(CLF).set_params(gravity=gravity).fit(X, SETS)
        assert path.nonzeros_[5 * n] == model.model_.nnz
    assert path.chosen_estimator_.predict(X).shape == SETS.shape
    ftrl = thresher.FTRLClassifier(passes=2, random_state=0)
    path = SparsityPath(ftrl, [2, 8], cv=FOLDS, param_name="target_nnz").fit(X, SETS)
    assert path.nonzeros_.tolist() == [8, 32]  # of four labels


# ---- sources -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of the rows; some have no label."""
    file = tmp_path_factory.mktemp("sets") / "rows.svm"
    lines = []
    for row, labels in zip(X.toarray(), SETS, strict=True):
        features = " ".join(f"{j}:{v!r}" for j, v in enumerate(row.tolist()) if v)
        lines.append(f"{','.join(map(str, np.flatnonzero(labels)))} {features}")
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize(
    ("clf", "grid"),
    [(CLF, GRID), (thresher.FTRLClassifier(passes=2, shuffle=False), {"target_nnz": [3, 9]})],
    ids=["lanes", "plain fits"],
)
def test_sources(file: Path, clf: Any, grid: Any) -> None:
    """Scores are those of fits to the rows outside each fold."""
    source = scan(file, multilabel=True, zero_based=True)
    scoring = ["accuracy", "f1_micro", "neg_mean_loss"]
    search = OnePassSearchCV(clf, grid, cv=3, scoring=scoring, refit="f1_micro").fit(source)
    folds = fold_numbers(0, 300, 3)
    for number, chosen in enumerate(search.cv_results_["params"]):
        for fold in range(3):
            rows = folds != fold
            model = clone(clf).set_params(**chosen).fit(X[rows], SETS[rows])
            predicted = model.predict(X[~rows])
            expected = {
                "accuracy": accuracy_score(SETS[~rows], predicted),
                "f1_micro": f1_score(SETS[~rows], predicted, average="micro"),
                "neg_mean_loss": -mean_loss(model, X[~rows], SETS[~rows]),
            }
            for name, score in expected.items():
                found = search.cv_results_[f"split{fold}_test_{name}"][number]
                assert found == pytest.approx(score), (chosen, fold, name)
    best = clone(clf).set_params(**search.best_params_).fit(X, SETS)
    f1 = f1_score(SETS, best.predict(X), average="micro")
    assert search.score(source) == pytest.approx(f1)
    assert best.score(X, SETS) == pytest.approx(search.best_estimator_.score(source))


def test_losses_in_a_grid(file: Path) -> None:
    """The mean loss of a model is that of its own loss."""
    source = scan(file, multilabel=True, zero_based=True)
    grid = {"loss": ["logistic", "hinge", "clipped_square"]}
    for scoring in ("neg_mean_loss", "f1_micro"):
        ours = OnePassSearchCV(CLF, grid, cv=3, scoring=scoring).fit(source)
        for number, chosen in enumerate(ours.cv_results_["params"]):
            alone = OnePassSearchCV(CLF.__class__(**{**CLF.get_params(), **chosen}), {"l2": [0.0]})
            alone.set_params(cv=3, scoring=scoring).fit(source)
            found = ours.cv_results_["mean_test_score"][number]
            assert found == pytest.approx(alone.best_score_)


def test_a_source_that_is_read_once(file: Path, tmp_path: Path) -> None:
    """Rows are scored before they are learned; the labels must be known."""
    clf = thresher.TruncatedGradientClassifier(passes=1)
    search = OnePassSearchCV(clf, {"gravity": [1e-4, 1.0]}, scoring="f1_micro")
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    for classes in (None, [0, 1, 2, 3]):
        writer = Thread(target=lambda: fifo.write_bytes(file.read_bytes()))
        writer.start()
        source = scan(fifo, multilabel=True, zero_based=True, format="svmlight")
        if classes is None:
            with pytest.raises(ParameterError, match="labels are not known"):
                search.fit(source)
            sum(block.rows for block in source.blocks())
        else:
            search.fit(source, classes=classes)
        writer.join()
    assert search.best_params_ == {"gravity": 1e-4}
    assert search.best_model_.multilabel
    progressive = clone(search).set_params(cv="progressive")
    progressive.fit(scan(file, multilabel=True, zero_based=True))
    assert progressive.best_score_ == pytest.approx(search.best_score_)


def test_scores_that_a_source_does_not_have(file: Path) -> None:
    """The error names those that it has."""
    search = OnePassSearchCV(CLF, GRID, scoring="roc_auc")
    with pytest.raises(ParameterError, match=r"several labels .*: accuracy, f1_micro, neg_mean_l"):
        search.fit(scan(file, multilabel=True, zero_based=True))
    source = scan(file, multilabel=True, zero_based=True)
    path = SparsityPath(CLF, cv=3, scoring="f1_micro").fit(source)
    assert path.errors_.min() < 0.3
