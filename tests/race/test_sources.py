"""Races on sources: files, rows that do not fit in memory, and pipes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from support.files import pipe, svmlight, vw
from thresher import ParameterError, SparseClassifier, SparseRegressor, scan
from thresher.data.source import Source
from thresher.race import sample as sampling
from thresher.race.sample import read_sample

FEW = {
    "candidates": [
        "ftrl, 1 pass",
        "ftrl, 5 passes",
        "coordinate-descent, 0.01 of the largest l1",
        "coordinate-descent, 0.1 of the largest l1, scaled columns",
    ],
    "folds": 3,
    "rows": 10_000,
}


@pytest.fixture
def rows(tmp_path):
    return svmlight(tmp_path / "rows.svm")


def test_a_file_gives_the_model_of_its_matrix(rows):
    X, y = load_svmlight_file(str(rows))
    matrix = SparseClassifier(budget=FEW, random_state=0).fit(X, y.astype(int))
    source = SparseClassifier(budget=FEW, random_state=0).fit(scan(rows))
    assert source.race_.chosen.name == matrix.race_.chosen.name
    np.testing.assert_array_equal(source.model_.indices, matrix.model_.indices)
    np.testing.assert_array_equal(source.model_.weights, matrix.model_.weights)
    assert source.score(scan(rows)) == pytest.approx(matrix.score(X, y.astype(int)))
    assert source.classes_.tolist() == [-1, 1]
    assert source.predict(scan(rows)).tolist() == matrix.predict(X).tolist()


def test_names_of_an_earlier_fit_are_forgotten(rows):
    X, y = load_svmlight_file(str(rows))
    frame = pd.DataFrame(X.toarray(), columns=[f"column {n}" for n in range(X.shape[1])])
    clf = SparseClassifier(budget=FEW, random_state=0).fit(frame, y)
    assert str(clf.model_.top(1)[0].name).startswith("column")
    clf.fit(scan(rows))
    assert not hasattr(clf, "feature_names_in_")
    assert not str(clf.model_.top(1)[0].name).startswith("column")


def test_names_of_features(tmp_path):
    data = vw(tmp_path / "rows.vw")
    clf = SparseClassifier(budget=FEW, random_state=0).fit(scan(data), classes="binary")
    assert all("w" in str(f.name) or "years" in str(f.name) for f in clf.model_.top(10))
    assert clf.score(scan(data)) > 0.8
    unnamed = SparseClassifier(budget=FEW, random_state=0).fit(scan(data), names=False)
    assert unnamed.model_.names is None


def test_rows_that_do_not_fit_in_memory_are_sampled(tmp_path, monkeypatch):
    data = svmlight(tmp_path / "rows.svm", rows=1500)
    monkeypatch.setattr(sampling, "MOST_VALUES", 4000)
    clf = SparseClassifier(random_state=0).fit(scan(data))
    assert all(entrant.rule != "coordinate-descent" for entrant in clf.race_)
    remarks = " ".join(clf.race_.remarks)
    assert "of 1,500 rows; the winner was fitted to all" in remarks
    assert "only rules that learn row by row took part" in remarks
    assert clf.history_[-1].examples % 1500 == 0
    assert clf.score(scan(data)) > 0.8
    again = SparseClassifier(random_state=0).fit(scan(data))
    np.testing.assert_array_equal(again.model_.weights, clf.model_.weights)


def test_the_sample_is_random_and_has_bounds(tmp_path):
    data = svmlight(tmp_path / "rows.svm", rows=3000)
    all_rows = read_sample(scan(data), 0, lambda block: None)
    assert all_rows.total == len(all_rows.rows.labels) == 3000
    some = read_sample(scan(data), 0, lambda block: None, most=5000)
    assert some.total == 3000
    assert 2500 < len(some.rows.values) <= 5000
    whole = all_rows.rows.matrix().toarray()
    kept = some.rows.matrix().toarray()
    places = {row.tobytes(): n for n, row in enumerate(whole)}
    numbers = [places[row.tobytes()] for row in kept]
    assert numbers == sorted(numbers)
    assert np.mean(numbers) == pytest.approx(1500, rel=0.15)
    np.testing.assert_array_equal(some.rows.labels, all_rows.rows.labels[numbers])


def test_a_pipe_is_learned_without_a_race(rows):
    X, y = load_svmlight_file(str(rows))
    source = pipe(X, y)
    clf = SparseClassifier(random_state=0).fit(source, classes="binary")
    assert len(clf.race_) == 1
    assert "can be read only once" in clf.race_.remarks[0]
    assert 0 < clf.race_.chosen.loss < 1
    assert clf.score(X, y) > 0.75
    assert clf.race_.how.startswith("progressive")
    clf.report(rows.with_suffix(".html"))
    assert "can be read only once" in rows.with_suffix(".html").read_text()


def test_several_labels_of_a_source(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)).round(3)
    path = tmp_path / "labels.svm"
    path.write_text(
        "".join(
            ",".join(str(10 * k) for k in np.flatnonzero(row[:3] > 0.3))
            + " "
            + " ".join(f"{k + 1}:{v}" for k, v in enumerate(row))
            + "\n"
            for row in X
            if (row[:3] > 0.3).any()
        )
    )
    clf = SparseClassifier(random_state=0).fit(scan(path, multilabel=True))
    assert clf.classes_.tolist() == [0, 10, 20]
    found = clf.predict(scan(path, multilabel=True))
    assert sp.issparse(found)
    kept = X[(X[:, :3] > 0.3).any(axis=1)]
    assert np.mean(found.toarray() == (kept[:, :3] > 0.3)) > 0.85


def test_regression_and_weights_of_a_source(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    y = 100.0 + 5.0 * X[:, 2] + rng.normal(size=400)
    dump_svmlight_file(X, y, str(tmp_path / "values.svm"), zero_based=False)
    reg = SparseRegressor(random_state=0).fit(scan(tmp_path / "values.svm"))
    assert isinstance(scan(tmp_path / "values.svm"), Source)
    assert reg.score(scan(tmp_path / "values.svm")) > 0.9
    assert reg.model_.top(1)[0].name in (2, "2")


def test_refusals(rows):
    with pytest.raises(ParameterError, match="a source has its own labels"):
        SparseClassifier().fit(scan(rows), [1, 0])
    with pytest.raises(ValueError, match=r"rows\.svm"):
        SparseClassifier().fit(scan(rows), classes=[7, 8])
