"""ONNX, SQL and scikit-learn predict as our models do, on real data."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import thresher
from support.exports import answers, in_duckdb, in_sqlite, inferred
from support.training_cases import trained
from thresher import FTRLClassifier, FTRLRegressor, scan

pytestmark = [pytest.mark.data, pytest.mark.filterwarnings("ignore::thresher.errors.DataWarning")]


@pytest.fixture(scope="module")
def a9a(data_dir):
    with lzma.open(data_dir / "a9a.svm.xz") as file:
        X, y = load_svmlight_file(file, n_features=123)
    return X[:4000], y[:4000]


@pytest.fixture(scope="module")
def housing(data_dir):
    rows = np.loadtxt(data_dir / "uci" / "housing.data")
    return rows[:, :13], rows[:, 13]


def test_census_income(a9a, tmp_path):
    X, y = a9a
    model = FTRLClassifier(random_state=0).fit(X, y).model_
    labels, probabilities = model.predict(X), model.predict_proba(X)
    found = inferred(model, tmp_path, X.toarray())
    assert np.array_equal(found[0], labels)
    assert np.abs(found[1] - probabilities).max() < 1e-7
    estimator = model.to_sklearn()
    assert sp.issparse(estimator.coef_)
    assert np.array_equal(estimator.predict(X), labels)
    assert np.abs(estimator.predict_proba(X) - probabilities).max() < 1e-15
    assert np.array_equal(estimator.predict(X[:50].toarray()), labels[:50])
    names = [f"x{k}" for k in range(123)]
    for engine in (in_sqlite, in_duckdb):
        made = answers(engine, model, X[:500].toarray().tolist(), names)
        assert np.array_equal(made["predicted_label"], labels[:500])
        assert np.abs(made["predicted_score"] - model.decision_function(X[:500])).max() < 1e-13
        assert np.abs(made["predicted_probability"] - probabilities[:500, 1]).max() < 1e-14


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
def test_prices_of_houses(housing, tmp_path, loss):
    X, y = housing
    X = X / np.abs(X).max(axis=0)
    model = FTRLRegressor(loss=loss, random_state=0, passes=5).fit(X, y).model_
    rows = X.astype(np.float32).astype(np.float64)
    wanted = model.predict(rows)
    (found,) = inferred(model, tmp_path, rows)
    assert np.abs(found[:, 0] / wanted - 1).max() < 1e-6
    assert np.abs(model.to_sklearn().predict(rows) / wanted - 1).max() < 1e-13
    names = [f"x{k}" for k in range(13)]
    for engine in (in_sqlite, in_duckdb):
        made = answers(engine, model, rows.tolist(), names)
        assert np.abs(made["predicted_value"] / wanted - 1).max() < 1e-13


@pytest.mark.parametrize("missing", ["zero", "indicator"])
def test_credit_applications_with_words_and_missing_cells(data_dir, tmp_path, missing):
    """Columns of words, numbers and missing cells; some numbers begin with zeros."""
    source = data_dir / "uci" / "crx.data"
    (tmp_path / "crx.csv").write_bytes(source.read_bytes())
    path, _ = trained(tmp_path, "crx.csv", "--label", "a16", "--missing", missing)
    model = thresher.load(path)
    rows = scan(tmp_path / "crx.csv", label="a16", missing=missing)
    scores = model.decision_function(rows)
    lines = [line.split(",") for line in source.read_text().split()]
    kinds = {"a2", "a3", "a8", "a11", "a14", "a15"}

    def value(name, cell):  # in a column of words, "?" is a word
        if name not in kinds:
            return cell
        return None if cell == "?" else float(cell)

    cells = [[value(*pair) for pair in zip(lines[0], line, strict=True)] for line in lines[1:]]
    assert sum(cell is None for line in cells for cell in line) == 25
    for engine in (in_sqlite, in_duckdb):
        made = answers(engine, model, cells, lines[0])
        assert np.abs(made["predicted_score"] - scores).max() < 1e-12
        assert made["predicted_label"].tolist() == model.predict(rows).tolist()
    found = []
    for line in cells[:100]:
        row = {}
        for name, cell in zip(lines[0][:-1], line[:-1], strict=True):
            if cell is None:
                row |= {f"{name}=missing": 1.0} if missing == "indicator" else {}
            else:
                row |= {name: cell} if isinstance(cell, float) else {f"{name}={cell}": 1.0}
        found.append(row)
    labels, probabilities = inferred(model, tmp_path, found)
    assert labels.tolist() == model.predict(rows)[:100].tolist()
    assert np.abs(probabilities - 1 / (1 + np.exp(-scores[:100, None] * [-1, 1]))).max() < 1e-6


def test_news_of_rcv1(data_dir, tmp_path):
    path = data_dir / "rcv1_small.vw.xz"
    (tmp_path / "rcv1.vw").write_bytes(lzma.decompress(path.read_bytes()))
    model = thresher.load(trained(tmp_path, "rcv1.vw", "--target-nnz", "300")[0])
    rows = [
        {f"f^{name}": float(value) for name, value in (p.split(":") for p in line.split()[2:])}
        for line in (tmp_path / "rcv1.vw").read_text().splitlines()[:100]
    ]
    scores = model.decision_function(rows)
    labels, probabilities = inferred(model, tmp_path, rows)
    assert np.array_equal(labels, model.predict(rows))
    assert np.abs(probabilities - model.predict_proba(rows)).max() < 1e-6
    names = sorted(model.names.values())
    cells = [[row.get(name) for name in names] for row in rows]
    for engine in (in_sqlite, in_duckdb):
        made = answers(engine, model, cells, names)
        assert np.abs(made["predicted_score"] - scores).max() < 1e-12


def test_several_classes_of_animals(data_dir, tmp_path):
    lines = [line.split(",") for line in (data_dir / "uci" / "zoo.data").read_text().split()]
    names, cells = lines[0], np.array(lines[1:])
    X, y = cells[:, :-1].astype(float), cells[:, -1]
    model = FTRLClassifier(random_state=0, passes=5).fit(X, y).model_
    labels, probabilities = inferred(model, tmp_path, X)
    assert np.array_equal(labels, model.predict(X))
    assert np.abs(probabilities - model.predict_proba(X)).max() < 1e-6
    assert np.array_equal(model.to_sklearn().predict(X), model.predict(X))
    assert np.allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), atol=1e-14)
    for engine in (in_sqlite, in_duckdb):
        made = answers(engine, model, X.tolist(), names[:-1], given=True)
        assert np.array_equal(made["predicted_label"], model.predict(X))
        for k in range(7):
            share = np.array(made[f"predicted_probability_{k}"])
            assert np.abs(share - model.predict_proba(X)[:, k]).max() < 1e-14
