"""`compare`: fitted models of its rules, and weights of rows."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import thresher
from support.comparisons import plain, problem
from support.slices import sliced
from thresher import DataError, ParameterError
from thresher.comparison import CANDIDATES, Comparison
from thresher.comparison.measures import error_of, measured

QUICK = {"rules": ["ftrl", "sgd", "coordinate-descent"], "orders": 2, "folds": 3}


# ---- models --------------------------------------------------------------------------------------


def test_the_best_estimator_has_the_least_error_over_folds():
    X, y = problem()
    labels = np.array(["no", "yes"])[y]
    found = thresher.compare(X, labels, **QUICK)
    able = [row for row in found if not row.control]
    assert found.best_.cv_error == min(row.cv_error for row in able)
    best = found.best_estimator_
    assert best is found.best_estimator_ is found.estimator(found.best_.rule)
    expected = thresher.estimators.estimator_class(found.best_.rule, "classifier")(
        **found.best_.chosen, random_state=0
    ).fit(X, labels)
    np.testing.assert_array_equal(best.coef_, expected.coef_)
    assert set(best.predict(X)) == {"no", "yes"}
    assert np.mean(best.predict(X) == labels) > 0.7


@pytest.mark.soak  # the others take a part of the rules
def test_every_rule_has_a_model():
    X, y = problem()
    found = thresher.compare(X, y, orders=1, folds=2)
    for row in found:
        predicted = found.estimator(row.rule).predict(X)
        assert np.mean(predicted == y) > 0.6, row.rule
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    by_name = thresher.compare(frame, y, **QUICK).estimator("ftrl")
    assert by_name.feature_names_in_[1] == "f1"


@pytest.mark.parametrize(
    ("scale", "weighted"),
    sliced(itertools.product([None, "unit-norm", "variance"], [False, True]), 2, 5),
)
def test_models_take_rows_and_give_numbers_as_given(scale, weighted):
    """Neither the scaling of rows nor the standardising of labels shows."""
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(rng.normal(size=(200, 12)) * 3)
    y = 5000 * X[:, 0].toarray().ravel() + 100 * rng.normal(size=200)
    rules = ["ftrl", "lasso", "sgd-mean", "coordinate-descent"]
    weights = rng.integers(1, 4, 200) if weighted else None
    found = thresher.compare(
        X, y, sample_weight=weights, rules=rules, orders=1, folds=2, scale=scale
    )
    assert any("standardised labels" in remark for remark in found.remarks)
    for rule in rules:
        errors = found.estimator(rule).predict(X) - y
        assert 1 - errors.var() / y.var() > 0.7, rule
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(
        again.best_estimator_.predict(X), found.best_estimator_.predict(X)
    )


def test_models_of_several_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 6))
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    weights = rng.uniform(0.5, 2.0, 240)
    rules = ["ftrl", "l1-logistic", "sgd-mean", "stabilized-paper"]
    found = thresher.compare(X, y, sample_weight=weights, rules=rules, orders=1, folds=2)
    for rule in rules:
        assert found[rule].measured, found[rule].reason
        assert np.mean(found.estimator(rule).predict(X) == y) > 0.8, rule


def test_models_of_sources(tmp_path):
    X, y = problem()
    lines = [
        f"{2 * label - 1} {1 + i % 2} 't| " + " ".join(f"f{k}:{v:.6g}" for k, v in enumerate(row))
        for i, (row, label) in enumerate(zip(X, y, strict=True))
    ]
    path = tmp_path / "rows.vw"
    path.write_text("\n".join(lines) + "\n")
    found = thresher.compare(thresher.scan(str(path), bits=18), **QUICK)
    assert "rows have weights" in found.remarks[0]
    best = found.estimator("ftrl")
    assert np.mean(best.predict(thresher.scan(str(path), bits=18)) == 2 * y - 1) > 0.7
    scaled = thresher.compare(thresher.scan(str(path), bits=18), scale="unit-norm", **QUICK)
    with pytest.raises(ParameterError, match="named features"):
        scaled.estimator("ftrl")


def test_models_of_sources_without_names(tmp_path):
    X, y = problem()
    path = tmp_path / "rows.svm"
    with path.open("w") as file:
        for row, label in zip(X, y, strict=True):
            pairs = " ".join(f"{k + 1}:{v:.6g}" for k, v in enumerate(row))
            file.write(f"{2 * label - 1} {pairs}\n")
    found = thresher.compare(thresher.scan(str(path)), scale="unit-norm", **QUICK)
    assert np.mean(found.estimator("ftrl").predict(sp.csr_matrix(X)) == 2 * y - 1) > 0.7


def test_comparisons_without_rows_have_no_models():
    X, y = problem()
    found = thresher.compare(X, y, rules=["ftrl", "lasso"], orders=1, folds=2)
    again = Comparison.from_json(found.to_json())
    assert again.best_.rule == "ftrl"
    assert not hasattr(again, "best_estimator_")
    with pytest.raises(AttributeError, match="read from JSON"):
        again.estimator("ftrl")
    with pytest.raises(ParameterError, match="only for regression"):
        found.estimator("lasso")
    with pytest.raises(KeyError):
        found.estimator("other")
    alone = thresher.compare(X, y, rules=["sgd"], orders=1, folds=2)
    assert alone.best_.rule == "sgd"  # a control, because there is nothing else


def test_continued_comparisons_have_models(tmp_path):
    X, y = problem()
    weights = np.arange(len(y)) % 3 + 0.5
    given = {"sample_weight": weights, "checkpoint": tmp_path / "work.json", **QUICK}
    one, other = (thresher.compare(X, y, **given) for _ in range(2))
    assert [plain(row) for row in one] == [plain(row) for row in other]
    np.testing.assert_array_equal(one.best_estimator_.coef_, other.best_estimator_.coef_)
    with pytest.raises(ParameterError, match="training rows"):
        thresher.compare(X, y, **{**given, "sample_weight": None})


# ---- weights -------------------------------------------------------------------------------------


def test_measures_of_weighted_rows_are_those_of_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = problem()
    clf = thresher.FTRLClassifier(random_state=0).fit(X[:100], y[:100])
    weights = rng.integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), weights)
    one = measured(clf, X, y, "binary", weights.astype(float))
    other = measured(clf, X[again], y[again], "binary")
    assert one == pytest.approx(other)
    scores = clf.decision_function(X)
    assert one["auc"] == pytest.approx(roc_auc_score(y, scores, sample_weight=weights))
    assert one["error"] == error_of(scores, y, weights.astype(float))
    reg = thresher.FTRLRegressor(random_state=0).fit(X[:100], X[:100, 0])
    one = measured(reg, X, X[:, 1], "regression", weights.astype(float))
    assert one == pytest.approx(measured(reg, X[again], X[again, 1], "regression"))


def test_weights_count_in_training_and_on_test_rows():
    """Weighted runs are those of a plain loop."""
    X, y = problem()
    rng = np.random.default_rng(3)
    weights, test_weights = rng.uniform(0.1, 3.0, 180), rng.uniform(0.1, 3.0, 60)
    rows = X[:180], y[:180], X[180:], y[180:]
    row = thresher.compare(*rows, weights, test_weights, rules=["ftrl"], orders=2)["ftrl"]
    for number, run in enumerate(row.runs):
        rng = np.random.default_rng([0, number])
        order = rng.permutation(180)
        model = thresher.FTRLClassifier(**row.chosen, random_state=int(rng.integers(2**31)))
        model.fit(X[:180][order], y[:180][order], weights[order])
        wrong = (2 * y[180:] - 1) * model.decision_function(X[180:]) <= 0
        assert run["error"] == pytest.approx(100 * np.average(wrong, weights=test_weights))
    unweighted = thresher.compare(*rows, rules=["ftrl"], orders=2)["ftrl"]
    assert unweighted.cv_error != row.cv_error


@pytest.mark.parametrize(
    "rule", sliced(["ftrl", "coordinate-descent", "l1-logistic", "stabilized-paper"], 0, 2)
)
def test_weights_count_in_cross_validation(rule):
    """Rows of weight 0 have no influence on the error over folds, wherever they are."""
    X, y = problem()
    wrong = np.arange(len(y)) % 2 == 0
    labels = np.where(wrong, 1 - y, y)  # the weights say which labels are right
    found = thresher.compare(
        X, labels, sample_weight=(~wrong).astype(float), rules=[rule], orders=1, folds=3
    )
    assert found[rule].cv_error < 35
    assert thresher.compare(X, labels, rules=[rule], orders=1, folds=3)[rule].cv_error > 35


def test_equal_weights_change_nothing():
    X, y = problem()
    one = thresher.compare(X, y, sample_weight=np.ones(len(y)), **QUICK)
    other = thresher.compare(X, y, **QUICK)
    assert [plain(row) for row in one] == [plain(row) for row in other]
    assert one.about["digests"] == other.about["digests"]


def test_grids_follow_repeated_rows():
    """Weights of 2 give the penalties of rows that are given twice."""
    X, y = problem()
    for name in ("ftrl", "l1-logistic"):
        found = thresher.compare(
            X[:180], y[:180], X[180:], y[180:], np.full(180, 2.0), rules=[name], orders=1, folds=2
        )
        twice = np.repeat(np.arange(180), 2)
        expected = thresher.compare(
            X[twice], y[twice], X[180:], y[180:], rules=[name], orders=1, folds=2
        )
        for values, others in zip(
            found[name].grid.values(), expected[name].grid.values(), strict=True
        ):
            assert values == pytest.approx(others)
        assert name in CANDIDATES


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight": [1.0, 2.0]}, "sample_weight has 2 weights, and there are 240 rows"),
        ({"sample_weight": np.full(240, -1.0)}, "the weight of row 0 is -1.0"),
        ({"sample_weight": np.full(240, np.nan)}, "the weight of row 0 is nan"),
        ({"sample_weight": np.zeros(240)}, "the weights of all training rows are 0"),
        ({"sample_weight": "heavy"}, "sample_weight: "),
    ],
)
def test_bad_weights(given, message):
    X, y = problem()
    with pytest.raises(DataError, match=message):
        thresher.compare(X, y, **given, **QUICK)


def test_weights_of_test_rows_need_test_rows():
    X, y = problem()
    with pytest.raises(ParameterError, match="needs X_test"):
        thresher.compare(X, y, sample_weight_test=np.ones(3), **QUICK)
