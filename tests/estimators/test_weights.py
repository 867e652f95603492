"""A row of weight k is learned as k rows, by every estimator that learns row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from thresher.rules import RULES

KINDS = [
    (name, task, getattr(thresher, kind))
    for name, rule in RULES.items()
    if rule.streams
    for task, kind in rule.estimators.items()
]


def given(rule: str, task: str) -> dict[str, Any]:
    """Return the parameters that must be numbers, so that weights equal copies to the last bit.

    Rates of the first rows are others if rows are copied. In a regression, a rate keeps the targets
    in their units: their running mean counts a row of weight k at once, and k copies one by one.
    """
    rates = {RULES[rule].rate_from_rows: 0.3} if RULES[rule].rate_from_rows else {}
    if task == "regressor":
        rates |= {"eta0": 0.05, "strength": 5.0}
    return rates


# The rule one-pass makes steps of weight 1, 1, 2, 4, ..., and averages once in a row.
STREAMING = [(kind, given(rule, task)) for rule, task, kind in KINDS if rule != "one-pass"]
NEARLY = [kind for rule, task, kind in KINDS if task == "regressor" or rule == "one-pass"]
PASSES = {"passes": 2, "shuffle": False, "tol": None}


def rows(classes: int = 2) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(4)
    X = sp.random(90, 12, 0.4, "csr", random_state=3, data_rvs=rng.standard_normal)
    y = np.abs(X[:, :classes].toarray() + 0.2 * rng.normal(size=(90, classes))).argmax(1)
    return X, y, rng.integers(0, 6, 90)


def made(kind: Any, params: dict[str, Any]) -> Any:
    known = kind().get_params()
    return kind(**{name: value for name, value in (PASSES | params).items() if name in known})


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)


@pytest.mark.parametrize(("kind", "params"), STREAMING)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_weight_equals_copies(kind: Any, params: dict[str, Any], classes: int) -> None:
    """With the default penalties, in `fit` and in `partial_fit`."""
    X, y, copies = rows(classes)
    at = np.repeat(np.arange(90), copies)
    one = made(kind, params).fit(X, y, sample_weight=copies)
    assert_same(one, made(kind, params).fit(X[at], y[at]))
    more = {"classes": np.arange(classes)} if "Classifier" in kind.__name__ else {}
    one, two = made(kind, params), made(kind, params)
    for first, last in ((0, 40), (40, 90)):
        some = at[(at >= first) & (at < last)]
        one.partial_fit(X[first:last], y[first:last], sample_weight=copies[first:last], **more)
        two.partial_fit(X[some], y[some], **more)
    assert_same(one, two)


@pytest.mark.parametrize("kind", NEARLY)
def test_a_weight_is_nearly_copies_with_automatic_rates(kind: Any) -> None:
    X, y, copies = rows()
    at = np.repeat(np.arange(90), copies)
    weighted, repeated, plain = (
        made(kind, {}).fit(*fitted) for fitted in ((X, y, copies), (X[at], y[at]), (X, y))
    )
    predict = "predict" if kind().task == "regressor" else "decision_function"
    found, expected, without = (getattr(each, predict)(X) for each in (weighted, repeated, plain))
    limit = 0.4 if "OnePass" in kind.__name__ else 0.15
    assert np.linalg.norm(found - expected) < limit * np.linalg.norm(without - expected)


@pytest.mark.parametrize(("kind", "params"), STREAMING)
def test_class_weights_repeat_rows(kind: Any, params: dict[str, Any]) -> None:
    if "Classifier" not in kind.__name__:
        pytest.skip("a regression has no classes")
    X, y, _ = rows()
    at = np.repeat(np.arange(90), np.where(y == 1, 3, 1))
    one = made(kind, params | {"class_weight": {0: 1.0, 1: 3.0}}).fit(X, y)
    assert_same(one, made(kind, params).fit(X[at], y[at]))


def test_heavy_rows_are_not_cancelled() -> None:
    """With eta0="auto", the rate was divided by weights above the mean."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.random(2000) < 0.2
    shares = [
        thresher.TruncatedGradientClassifier(average=True, class_weight={False: 1.0, True: weight})
        .fit(X, y)
        .predict(X)
        .mean()
        for weight in (1.0, 20.0)
    ]
    assert shares[0] < 0.2
    assert shares[1] > 0.8


def test_the_robust_rule_keeps_heavy_rows_whole() -> None:
    """A feature that only one row has is evidence of one half at most, whatever its weight."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(200, 3)), np.zeros(200)])
    y = X[:, 0] > 0
    X[7, 3], y[7] = 1.0, True
    weight = np.where(np.arange(200) == 7, 30.0, 1.0)
    clf = thresher.StabilizedClassifier(min_updates=1, target_nnz=4, random_state=0)
    why = clf.fit(X, y, sample_weight=weight).model_.why(3)
    assert why.selection_probability <= 0.5
