"""`compare`: invalid inputs, and rules that fail or are skipped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import thresher
from support.comparisons import problem
from thresher import DataError, ParameterError
from thresher.comparison import CANDIDATES, run


def test_a_failed_rule_has_a_reason_and_other_rules_continue(monkeypatch):
    def broken(self, X, y, sample_weight=None):
        raise thresher.DivergenceError("the weights are not finite")

    monkeypatch.setattr(thresher.StabilizedClassifier, "fit", broken)
    X, y = problem()
    found = thresher.compare(X, y, rules=["stabilized", "ftrl"], orders=2, folds=2)
    assert [row.rule for row in found] == ["ftrl", "stabilized"]
    assert "the weights are not finite" in found["stabilized"].reason
    assert "the weights are not finite" in found.table()
    assert "the weights are not finite" in found.to_html()


def test_an_error_of_the_callback_is_not_a_failure_of_the_rule():
    def broken(progress):
        raise ValueError("no room on the screen")

    X, y = problem(rows=60)
    with pytest.raises(ValueError, match="no room on the screen"):
        thresher.compare(X, y, rules=["sgd"], orders=1, folds=2, callback=broken)


def test_a_rule_that_is_too_expensive_is_skipped_with_a_reason(monkeypatch):
    from thresher.comparison import grids

    monkeypatch.setattr(grids, "_MOST_UPDATES", 10)
    few = {name: CANDIDATES[name] for name in ("sgd", "mirror-descent")}
    monkeypatch.setattr(run, "CANDIDATES", few)
    X, y = problem(rows=100)
    found = thresher.compare(X, y, orders=1, folds=2)["mirror-descent"]
    assert found.skipped.startswith("too slow: each step updates all 25 columns")
    named = thresher.compare(X, y, rules=["mirror-descent"], orders=1, folds=2)[0]
    assert named.measured  # a rule that is named is run


def test_a_rule_for_the_other_task_is_skipped_with_a_reason():
    X, y = problem(classes=0)
    found = thresher.compare(X, y, rules=["sgd", "stabilized"], orders=1, folds=2)
    assert found["stabilized"].reason == "skipped: it is only for classification"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rules": ["vw"]}, "rules must be from stabilized, "),
        ({"rules": []}, "rules must name at least one"),
        ({"orders": 0}, "orders must be a whole number >= 1; got 0"),
        ({"folds": 1}, "folds must be a whole number >= 2"),
        ({"folds": 200}, "folds=200 needs as many training rows of each class"),
        ({"seed": -1}, "seed must be"),
        ({"choose": "worst"}, "choose must be one of best, sparsest"),
        ({"scale": "minmax"}, "scale must be one of 'unit-norm', 'variance', or None"),
        ({"loss": "cubic"}, "loss must be one of logistic, "),
        ({"loss": "absolute", "task": "classification"}, "loss must be one of logistic, hinge"),
        ({"task": "ranking"}, "task must be one of"),
        ({"test_share": 1.5}, "test_share must be a number > 0 and < 1"),
        ({"test_share": None}, "test_share must be a number > 0 and < 1; got None"),
        ({"test_share": "x"}, "test_share must be a number > 0 and < 1; got 'x'"),
        ({"test_share": 0.01}, "test_share=0.01: "),
        ({"rules": ["lasso", "hard-threshold"]}, "rules: all rules are skipped: lasso: it is only"),
        ({"X_test": np.zeros((2, 25))}, "X_test and y_test must be given together"),
        ({"X_test": np.zeros((2, 3)), "y_test": [0, 1]}, "X_test has 3 columns and X has 25"),
    ],
)
def test_invalid_parameters(given, message):
    X, y = problem(rows=60)
    with pytest.raises(ParameterError) as caught:
        thresher.compare(X, y, **given)
    assert message in str(caught.value)


def test_invalid_data():
    X, y = problem(rows=60)
    y[0] = 1
    spoiled = X.copy()
    spoiled[7, 3] = np.inf
    for rows, labels, test, message in (
        (X, np.zeros(60), None, "all training rows have the label 0.0"),
        (X, y, np.full(60, 7), "no training row has a label of the test rows, such as 7"),
        (X, y[:50], None, "X has 60 rows and y has 50 labels"),
        (np.full((60, 25), np.nan), y, None, "X: the value of row 0, column 0, is NaN"),
        (sp.csr_matrix(spoiled), y, None, "X: the value of row 7, column 3, is inf"),
        (np.zeros((60, 25)), y, None, "all values of the training rows are zero"),
        (X * 1e200, y, None, "the largest value is .*e.200, and its square is too large"),
        (X, np.where(y, np.nan, 1.0), None, "y: the label of row 0 is nan; labels must be finite"),
        (X, np.array([None, "a"] * 30), None, "y: the label of row 0 is missing: None"),
        (X, np.array([1, "a"] * 30, dtype=object), None, "of one kind; row 0 has 1 .number., row"),
        (X, np.array(["a", "b"] * 30), y, "y has labels such as 'a', but y_test has"),
        (X, np.arange(60), None, "only one row .* 60 values: task='regression' takes them"),
    ):
        more = {} if test is None else {"X_test": X, "y_test": test}
        with pytest.raises(DataError, match=message):
            thresher.compare(rows, labels, rules=["sgd"], orders=1, folds=2, **more)
    with pytest.raises(ParameterError, match="y is needed"):
        thresher.compare(X)


def test_columns_of_training_and_test_tables_must_be_the_same():
    X, y = problem(rows=60, columns=8)
    table = pd.DataFrame(X, columns=list("abcdefgh"))
    given = {"rules": ["sgd"], "orders": 1, "folds": 2}
    for others, message in (
        (table[list("acbdefgh")], "X_test: column 1 is 'c', but in X it is 'b'"),
        (table.rename(columns={"a": "z"}), "X_test: column 0 is 'z', but in X it is 'a'"),
    ):
        with pytest.raises(ParameterError, match=message):
            thresher.compare(table, y, others, y, **given)
    assert thresher.compare(table, y, table, y, **given)[0].measured
    with pytest.raises(DataError, match="X: column 'b' must have numbers; row 0 has 'x'"):
        thresher.compare(table.assign(b="x"), y, **given)
    table.loc[4, "b"] = np.nan
    with pytest.raises(DataError, match="X: the value of row 4, column 'b', is NaN"):
        thresher.compare(table, y, **given)


def test_parameters_may_be_numpy_numbers():
    X, y = problem(rows=60)
    whole, share = np.int64(2), np.float32(0.25)
    given = {"orders": whole, "folds": whole, "seed": whole, "test_share": share}
    found = thresher.compare(X, y, rules=["sgd"], **given)
    assert thresher.Comparison.from_json(found.to_json()).about["orders"] == 2
    with pytest.raises(KeyError, match="is not one of sgd"):
        found["nope"]


def test_a_comparison_in_which_all_rules_failed_has_a_page(monkeypatch):
    def broken(self, X, y, sample_weight=None):
        raise thresher.DivergenceError("the weights are not finite")

    monkeypatch.setattr(thresher.StabilizedClassifier, "fit", broken)
    X, y = problem(rows=60)
    found = thresher.compare(X, y, rules=["stabilized"], orders=1, folds=2)
    for made in (found.to_html(), found._repr_html_(), found.table()):
        assert "the weights are not finite" in made
