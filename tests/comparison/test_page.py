"""`compare`: remarks and limits on the page and in the text table."""

from __future__ import annotations

import json

import numpy as np
import pytest

import thresher
from support.comparisons import problem


@pytest.fixture(scope="module")
def found():
    X, y = problem()
    return thresher.compare(X, y, rules=["ftrl", "sgd", "stabilized-paper"], orders=2, folds=3)


def test_the_page_states_the_limits_of_the_comparison(found):
    html = found.to_html()
    share = found[0].error.mean / 100
    points = 100 * np.sqrt(share * (1 - share) / 60)
    assert f"on 60 test rows has a standard error of about {points:.1f} points" in html
    for words in (
        "over orders of the same training rows",
        "is not an estimate for new rows",
        "The stabilized rule has no grid",
        "The coloured line has the least error on these test rows",
    ):
        assert words in html
    for row in found.frontier:
        assert f"{row.title} \N{LARGE CIRCLE}" in html
    assert found[0] in found.frontier
    X, y = problem(classes=0)
    numbers = thresher.compare(X, y, rules=["sgd"], orders=1, folds=2)
    assert "standard error of about" not in numbers.to_html()


def test_remarks_on_rules_are_below_the_table(found):
    noted = [row for row in found if row.notes]
    assert noted
    for row in noted:
        assert f"\n{row.title}: {row.notes[0]}" in found.table()


def test_the_table_shows_a_rule_of_another_version(found):
    text = json.loads(found.to_json())
    text["rows"][0] |= {"rule": "newest", "title": "the newest"}
    again = thresher.Comparison.from_json(json.dumps(text))
    assert "the newest" in again.to_html()
    assert "the newest" in again.table()


def test_a_remark_on_badly_scaled_columns():
    X, y = problem()
    given = {"rules": ["sgd"], "orders": 1, "folds": 2}
    for factor, than in ((1e4, "larger"), (1e-5, "smaller")):
        rows = X.copy()
        rows[:, 2] *= factor
        odd = thresher.compare(rows, y, **given)
        remark = odd.about["remarks"][0]
        assert remark.startswith("columns differ in scale: column 2 is ")
        assert f"times {than} than the median column" in remark
        assert odd.table().startswith(remark)
        assert "columns differ in scale" in odd._repr_html_()
        assert thresher.compare(rows, y, scale="variance", **given).about["remarks"] == []


def test_dense_separable_rows_do_not_hang_the_logistic_control():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 25))
    y = X[:, 0] - 2 * X[:, 3] + rng.normal(size=240) > 0
    row = thresher.compare(X, y, rules=["l1-logistic"], orders=1, folds=2)[0]
    assert row.error.mean < 30


@pytest.mark.data
def test_the_warning_of_the_published_rule_does_not_suggest_its_own_loss(data_dir):
    data = thresher.datasets.load("dexter_scaled", data_dir)
    X = thresher.preprocessing.UnitVarianceScaler().fit_transform(data.X_train)
    given = {"variant": "paper", "annealing": 0.0, "keep": 0.5, "passes": 10, "random_state": 0}
    for loss, named in (("logistic", False), ("hinge", True)):
        model = thresher.StabilizedClassifier(loss=loss, **given)
        with pytest.warns(UserWarning, match="count='gradient'") as caught:
            model.fit(X, data.y_train)
        assert any("loss='logistic'" in str(warning.message) for warning in caught) == named
