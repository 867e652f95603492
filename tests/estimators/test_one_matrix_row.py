"""`partial_fit` with one row of a matrix: the short way gives what the general way gives."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from thresher import FTRLClassifier, TruncatedGradientClassifier
from thresher.errors import DataWarning
from thresher.estimators import __all__ as ESTIMATORS
from thresher.estimators.learn_row import _ROW
from thresher.rules import RULES

RNG = np.random.default_rng(3)
X = sp.random(300, 40, density=0.2, format="csr", random_state=RNG)
SCORES = np.asarray(X @ RNG.normal(size=40))
TWO, THREE = (SCORES > 0).astype(int), np.digitize(SCORES, [-0.3, 0.3])
STREAMING = [name for name in ESTIMATORS if RULES[getattr(thresher, name).rule].streams]


def learned(estimator: Any, rows: Any, y: Any, short: bool, classes: Any) -> tuple[Any, int]:
    """Learn row by row; return the estimator, and how many rows took the short way."""
    given = {} if estimator.task == "regressor" else {"classes": classes}
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.partial_fit(rows[:1], y[:1], **given)
        for i in range(1, rows.shape[0]):
            if not short:
                estimator._cached.pop(_ROW, None)
            before = estimator.__dict__["_fitted"]
            estimator.partial_fit(rows[i : i + 1], y[i : i + 1])
            count += estimator.__dict__["_fitted"] is before
    return estimator, count


def assert_same(one: Any, other: Any) -> None:
    """The weights are the same to the bit, and so are the records and the watches."""
    a, b = one.model_, other.model_
    assert np.array_equal(a.indices, b.indices)
    assert np.array_equal(a.weights, b.weights)
    assert np.array_equal(a.intercept, b.intercept)
    assert one._fitted.outputs.states() == other._fitted.outputs.states()
    records = ([record._replace(seconds=0.0) for record in each.history_] for each in (one, other))
    assert next(records) == next(records)
    assert one._fitted.order.state == other._fitted.order.state
    if one.task == "classifier":  # the scale of targets counts the row a little earlier
        assert vars(one._fitted.watch) == vars(other._fitted.watch)


@pytest.mark.parametrize("name", STREAMING)
def test_the_short_way_gives_the_same(name: str) -> None:
    cls = getattr(thresher, name)
    for y in (TWO, THREE) if cls.task == "classifier" else (SCORES,):
        short, count = learned(cls(), X[:120], y[:120], True, np.unique(y))
        long, none = learned(cls(), X[:120], y[:120], False, np.unique(y))
        assert none == 0
        assert_same(short, long)
    if name.startswith(("Truncated", "FTRL")):
        assert count > 80


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1, 1], [0.0, 1.0]])
@pytest.mark.parametrize("form", [sp.csr_array, lambda X: X.toarray(), lambda X: X.astype("f4")])
def test_labels_and_formats(labels: list[Any], form: Any) -> None:
    y, rows = np.array(labels)[TWO], form(X)
    short, count = learned(FTRLClassifier(), rows, y, True, labels)
    assert count > 200
    assert_same(short, learned(FTRLClassifier(), rows, y, False, labels)[0])


def test_weights_of_classes_and_a_changed_parameter() -> None:
    estimator = TruncatedGradientClassifier(class_weight={0: 1, 1: 3})
    short, count = learned(estimator, X, TWO, True, [0, 1])
    again = TruncatedGradientClassifier(class_weight={0: 1, 1: 3})
    assert count > 200
    assert_same(short, learned(again, X, TWO, False, [0, 1])[0])
    short.eta0 = 0.123
    with pytest.raises(thresher.ParameterError, match="eta0"):
        short.partial_fit(X[:1], TWO[:1])


def test_bad_rows_are_refused_and_change_nothing() -> None:
    estimator, _ = learned(FTRLClassifier(), X, TWO, True, [0, 1])
    before = estimator._fitted.outputs.states()
    bad = X[:1].copy()
    bad.data[0] = np.nan
    for rows, y, message in (
        (bad, [1], "NaN"),
        (X[:1], [0.5], "continuous"),
        (X[:1, :5], [1], "5 features"),
        (X[:1], [0, 1], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.partial_fit(rows, y)
    assert estimator._fitted.outputs.states() == before


def test_predictions_follow_each_row_and_pickles_continue() -> None:
    estimator, _ = learned(TruncatedGradientClassifier(), X, TWO, True, [0, 1])
    first = estimator.coef_.copy()
    estimator.partial_fit(X[3:4], TWO[3:4])
    assert not np.array_equal(first, estimator.coef_)
    copy = pickle.loads(pickle.dumps(estimator))
    for each in (estimator, copy):
        each.partial_fit(X[5:6], TWO[5:6]).partial_fit(X[6:7], TWO[6:7])
    assert_same(estimator, copy)


def test_ordered_rows_are_noticed() -> None:
    estimator = FTRLClassifier().partial_fit(X[:1], [0], classes=[0, 1])
    with pytest.warns(DataWarning, match="ordered by their labels"):
        [estimator.partial_fit(X[:1], [label]) for label in [0] * 3000 + [1] * 3000]
