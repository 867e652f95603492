"""`compare` with numbers as labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.model_selection import KFold

import thresher
from support.comparisons import problem
from thresher import TruncatedGradientClassifier, TruncatedGradientRegressor
from thresher.comparison.controls import MeanOfRuns
from thresher.comparison.cross_validation import choose
from thresher.losses import CLASSIFIER_LOSSES, REGRESSOR_LOSSES


@pytest.mark.parametrize("loss", CLASSIFIER_LOSSES)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_scores_of_a_mean_of_runs_are_the_mean_of_their_scores(loss, classes):
    X, y = problem(rows=80, classes=classes)
    one = TruncatedGradientClassifier(loss=loss, gravity=0.0)
    runs = [one.set_params(random_state=i).fit(X, y).decision_function(X) for i in range(4)]
    mean = MeanOfRuns(one, 4).fit(X, y).decision_function(X)
    np.testing.assert_allclose(mean, np.mean(runs, axis=0), atol=1e-5)


@pytest.mark.parametrize("loss", REGRESSOR_LOSSES)
def test_the_predictions_of_a_mean_of_runs_apply_the_link_of_the_loss(loss):
    X, _ = problem(rows=80)
    y = np.clip(0.3 + 0.2 * X[:, 0], 0, 1)
    one = TruncatedGradientRegressor(loss=loss, gravity=0.0)
    runs = [one.set_params(random_state=i).fit(X, y).model_.raw(X)[:, 0] for i in range(4)]
    raw = np.mean(runs, axis=0)
    links = {"poisson": np.exp, "clipped_square": lambda v: np.clip(v, 0, 1)}
    mean = MeanOfRuns(one, 4).fit(X, y).predict(X)
    np.testing.assert_allclose(mean, links.get(loss, lambda v: v)(raw), atol=1e-5)


def test_results_do_not_depend_on_the_unit_of_the_labels():
    X, y = problem(classes=0)
    rules = ["ftrl", "averaged-sgd", "dual-averaging", "rounding", "lasso", "coordinate-descent"]
    given = {"rules": rules, "orders": 2, "folds": 3}
    one = thresher.compare(X, y, **given)
    for factor, shift in ((1e-6, 0.0), (128.0, 0.0), (1e4, 1e6)):
        other = thresher.compare(X, factor * y + shift, **given)
        assert "standardised labels" in other.table()
        for row in one:
            twin = other[row.rule]
            assert twin.chosen == pytest.approx(row.chosen), row.rule
            assert twin.r2.mean == pytest.approx(row.r2.mean, abs=1e-6)
            assert twin.mse.mean == pytest.approx(row.mse.mean * factor**2, rel=1e-5)
            assert twin.cv_error == pytest.approx(row.cv_error * factor**2, rel=1e-5)


def test_the_loss_or_the_task_decides_whether_whole_numbers_are_classes():
    X, y = problem(classes=0)
    y = np.round(10 * y).astype(int)
    given = {"rules": ["sgd"], "orders": 1, "folds": 2}
    for more, task in (
        ({"loss": "squared"}, "regression"),
        ({"task": "regression"}, "regression"),
        ({"loss": "squared", "task": "classification"}, "binary"),
        ({}, "binary"),
    ):
        labels = (y > 0).astype(int) if task == "binary" else y
        assert thresher.compare(X, labels, **given, **more).task == task
    words = np.where(y > 0, "yes", "no")
    assert thresher.compare(X, words, loss="squared", **given).task == "binary"


def test_very_small_errors_are_compared_exactly():
    X, y = problem(classes=0)
    folds = list(KFold(3).split(X))
    given = {"task": "regression", "lanes": False, "how": "best", "n_jobs": 1}
    points = []
    for unit in (1.0, 1e-8):
        grid = {"alpha": [unit * alpha for alpha in (0.01, 0.1, 10.0)]}
        points.append(choose(Lasso(), grid, X, unit * y, folds, **given))
    assert points[1].point["alpha"] == pytest.approx(1e-8 * points[0].point["alpha"])
    assert points[1].error == pytest.approx(1e-16 * points[0].error)
