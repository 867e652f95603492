"""Sources that can be read only once: each row is predicted before it is learned."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import pipe, svmlight
from thresher import DataError, OnePassSearchCV, ParameterError, scan


@pytest.mark.parametrize("labels", [(-1, 1), (0, 1), (2, 4, 9)])
def test_progressive_scores(tmp_path: Path, labels: tuple[int, ...]) -> None:
    """Each row is predicted before it is learned; the model with the best score is kept."""
    path = svmlight(tmp_path / "rows.svm", rows=150, classes=labels)
    X, y = load_svmlight_file(str(path))
    X, y = X.toarray(), y.astype(int)
    clf = thresher.TruncatedGradientClassifier(passes=1, dtype="float64")
    classes = None if len(labels) == 2 else labels
    search = OnePassSearchCV(clf, {"gravity": ["auto", 1e-3, 0.5]}).fit(pipe(X, y), classes=classes)
    assert search.n_splits_ == 1
    for point, params in enumerate(search.cv_results_["params"]):
        alone, hits = thresher.TruncatedGradientClassifier(dtype="float64", **params), []
        alone.partial_fit(X[:1], y[:1], classes=labels)
        zero = 1 if len(labels) == 2 else 0  # the class of a prediction of 0
        hits.append(y[0] == labels[zero])
        for i in range(1, 150):
            hits.append(alone.predict(X[i : i + 1])[0] == y[i])
            alone.partial_fit(X[i : i + 1], y[i : i + 1])
        assert search.cv_results_["split0_test_score"][point] == pytest.approx(np.mean(hits))
        if point == search.best_index_:
            assert search.best_model_.indices.tolist() == alone.model_.indices.tolist()
            np.testing.assert_allclose(search.best_model_.weights, alone.model_.weights, rtol=1e-12)
            np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    assert search.classes_.tolist() == list(labels)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    with pytest.raises(ParameterError, match="its training cannot continue"):
        search.best_estimator_.partial_fit(X, y)
    again = clone(search.best_estimator_).fit(X, y)
    assert type(again) is thresher.TruncatedGradientClassifier
    assert again.model_.nnz > 0


def test_progressive_scores_of_a_file(tmp_path: Path) -> None:
    """A file can be scored in this way too; the final fit makes all passes."""
    path = svmlight(tmp_path / "rows.svm", rows=300)
    clf = thresher.FTRLClassifier(passes=3, random_state=0)
    search = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, cv="progressive").fit(scan(path))
    X, y = load_svmlight_file(str(path))
    once = OnePassSearchCV(clf.set_params(passes=1), {"l1": [0.1, 1.0]}).fit(pipe(X.toarray(), y))
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], once.cv_results_["mean_test_score"]
    )
    assert search.best_estimator_.n_iter_ == 3


def test_names_of_a_pipe() -> None:
    """The best model has the names of its features, and can be saved."""
    rng = np.random.default_rng(0)
    rows = [({f"w{i}": 1.0 for i in rng.choice(20, 4)}, 0) for _ in range(300)]
    rows = [(row, int("w3" in row or "w5" in row)) for row, _ in rows]
    clf = thresher.FTRLClassifier(passes=1, store="hashed")
    search = OnePassSearchCV(clf, {"l1": [0.5, 3.0]}, scoring="neg_log_loss").fit(scan(iter(rows)))
    assert {feature.name for feature in search.best_model_.top(2)} == {"w3", "w5"}
    assert search.best_score_ > -0.6


def test_values_of_a_pipe() -> None:
    """A regression; features are not known before reading."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 90))
    X[:250, 40:] = 0
    reg = thresher.TruncatedGradientRegressor(passes=1, eta0=0.01, gravity=0.0)
    search = OnePassSearchCV(reg, {"gravity": [0.0, 0.1]}, refit=True, n_jobs=2)
    search.fit(pipe(X, 3 * X[:, 2] + 1))
    assert search.best_score_ > 0.5
    assert search.n_features_in_ == 90
    assert search.predict(X).shape == (500,)


@pytest.mark.parametrize("cv", [5, 2])
def test_folds_of_a_pipe(cv: int) -> None:
    """Folds are an error; the default is "progressive"."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = (X[:, 0] > 0).astype(int)
    clf = thresher.TruncatedGradientClassifier(passes=1)
    for search in (
        OnePassSearchCV(clf, {"gravity": [0.0, 0.1]}),
        thresher.SparsityPath(clf, [0.001, 0.1]),
    ):
        with pytest.raises(ParameterError, match=f"cv={cv}: .*only once.*cv='progressive'"):
            search.set_params(cv=cv).fit(pipe(X, y))
        named = clone(search).set_params(cv="progressive").fit(pipe(X, y))
        silent = clone(search).set_params(cv=None).fit(pipe(X, y))
        assert named.best_index_ == silent.best_index_


def test_words_from_a_pipe() -> None:
    """The error says how to give classes in Python, and names no option of the shell."""
    X, y = np.ones((4, 2)), np.array(["no", "yes"] * 2)
    clf = thresher.TruncatedGradientClassifier(passes=1)
    for search in (
        OnePassSearchCV(clf, {"gravity": [0.1]}),
        thresher.SparsityPath(clf, [0.001, 0.1]),
    ):
        with pytest.raises(DataError, match="give fit classes= for other labels") as caught:
            search.fit(pipe(X, y))
        assert "--" not in str(caught.value)
