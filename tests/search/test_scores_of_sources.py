"""The score of an estimator on a source equals the score on the same rows in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import pipe, svmlight
from thresher import OnePassSearchCV, ParameterError, scan


@pytest.mark.parametrize("labels", [(-1, 1), (2, 4, 9)])
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_accuracy(tmp_path: Path, labels: tuple[int, ...], store: str) -> None:
    """The accuracy of a file and of a pipe equals that of the rows in memory."""
    path = svmlight(tmp_path / "rows.svm", rows=200, classes=labels)
    X, y = load_svmlight_file(str(path))
    clf = thresher.FTRLClassifier(store=store, random_state=0).fit(X[:100], y[:100])
    expected = np.mean(clf.predict(X) == y)
    assert 0.5 < expected < 1
    assert clf.score(scan(path)) == pytest.approx(expected)
    assert clf.score(pipe(X, y)) == pytest.approx(expected)
    assert clf.score(X, y) == pytest.approx(expected)


def test_r2(tmp_path: Path) -> None:
    """R2 of a regression with labels far from zero."""
    path = svmlight(tmp_path / "rows.svm", rows=200, classes=(1000, 1001, 1002))
    X, y = load_svmlight_file(str(path))
    reg = thresher.TruncatedGradientRegressor(random_state=0, gravity=0.0).fit(X, y)
    assert reg.score(scan(path)) == pytest.approx(reg.score(X, y))


def test_weights_of_rows_count(tmp_path: Path) -> None:
    """Importance weights in a file are used for classes and for values."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(80, 3)).round(3), rng.integers(1, 9, 80)
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, 1, -1)
    path = tmp_path / "rows.vw"
    path.write_text(
        "".join(
            f"{label} {weight} | 0:{a} 1:{b} 2:{c}\n"
            for label, weight, (a, b, c) in zip(y, w, X.tolist(), strict=True)
        )
    )
    for kind in (thresher.FTRLClassifier, thresher.FTRLRegressor):
        model: Any = kind(random_state=0).fit(X, y)
        expected = model.score(X, y, sample_weight=w)
        assert expected != pytest.approx(model.score(X, y))
        assert model.score(scan(path)) == pytest.approx(expected)


def test_sets_of_labels(tmp_path: Path) -> None:
    """A row is right if its set of labels is exactly right; an unknown label is always wrong."""
    X = np.eye(4)
    lines = ["1,2 1:1\n", "2 2:1\n", "3 3:1\n", "1,3 4:1\n"]
    path = tmp_path / "sets.svm"
    path.write_text("".join(lines * 30))
    clf = thresher.TruncatedGradientClassifier(eta0=1.0, gravity=0.0, random_state=0)
    clf.fit(scan(path, multilabel=True))
    assert clf.score(scan(path, multilabel=True)) == 1.0
    Y = csr_matrix([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]])
    assert clf.score(X, Y) == 1.0
    path.write_text("1,2 1:1\n1,2 2:1\n3,7 3:1\n1,3 4:1\n")  # the second and third are wrong
    assert clf.score(scan(path, multilabel=True)) == 0.5


def test_labels_besides_a_source(tmp_path: Path) -> None:
    """A source has its own labels and weights."""
    path = svmlight(tmp_path / "rows.svm", rows=50)
    clf = thresher.FTRLClassifier().fit(scan(path))
    with pytest.raises(ParameterError, match="a source has its own labels"):
        clf.score(scan(path), np.ones(50))
    with pytest.raises(ParameterError, match="a source has its own labels"):
        clf.score(scan(path), sample_weight=np.ones(50))


def test_the_best_of_a_search(tmp_path: Path) -> None:
    """The best estimator of a search can score a source."""
    path = svmlight(tmp_path / "rows.svm", rows=120)
    X, y = load_svmlight_file(str(path))
    clf = thresher.FTRLClassifier(passes=1)
    search = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}).fit(pipe(X.toarray(), y.astype(int)))
    found = search.best_estimator_.score(scan(path))
    assert found == pytest.approx(np.mean(search.predict(X) == y))
