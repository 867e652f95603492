"""Predictions by loss: probabilities, clipped squares, rates, quantiles, and centred rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from oracles.averaged import averaged
from thresher import (
    AveragedSGDRegressor,
    FTRLClassifier,
    FTRLRegressor,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

ROWS, COLUMNS = 300, 20
RNG = np.random.default_rng(7)
X = RNG.normal(size=(ROWS, COLUMNS)) * (RNG.random((ROWS, COLUMNS)) < 0.4)
X = X.astype(np.float32).astype(np.float64)  # exact in float32
X[[11, 140]] = 0.0
Y = X[:, 0] - 2.0 * X[:, 3] + 0.5 * X[:, 5] + 0.3 + 0.1 * RNG.normal(size=ROWS)
LABELS = np.where(Y > 0, "yes", "no")
THREE = np.array(["ash", "birch", "oak"])[np.digitize(Y, [-0.7, 0.9])]


def test_probabilities_of_two_classes_are_logistic() -> None:
    model = TruncatedGradientClassifier(eta0=0.1, random_state=0).fit(X, LABELS)
    score, p = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(score, X @ model.coef_[0] + model.intercept_[0], atol=1e-12)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-score)), rtol=1e-14)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(X), np.where(score >= 0, "yes", "no"))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))


def test_probabilities_of_three_classes_sum_to_one() -> None:
    model = FTRLClassifier(alpha=0.1, l1=0.1, random_state=0).fit(X, THREE)
    p = model.predict_proba(X)
    assert p.shape == (ROWS, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    share = 1 / (1 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(p, share / share.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "square"])
def test_other_losses_have_no_probabilities(loss: str) -> None:
    model = TruncatedGradientClassifier(loss=loss, eta0=0.01, random_state=0).fit(X, LABELS)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(ValueError, match="logistic"):
        model.model_.predict_proba(X)
    assert model.score(X, LABELS) > 0.9


def test_a_score_of_zero_is_the_second_class() -> None:
    """A-20."""
    model = TruncatedGradientClassifier(eta0=0.1, fit_intercept=False).fit(X, LABELS)
    assert model.predict(np.zeros((1, COLUMNS))).tolist() == ["yes"]


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_clipped_square_classifier(rows: Any) -> None:
    """R-0.7, R-1.8: q = w.x / sqrt(|x|_0) + b, the score is q - 0.5, the probability clip(q)."""
    model = TruncatedGradientClassifier(
        loss="clipped_square", eta0=0.2, gravity=1e-4, random_state=0, dtype="float64"
    ).fit(rows, LABELS)
    q = (X @ model.coef_[0]) / np.sqrt(np.maximum(1, (X != 0).sum(axis=1))) + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(rows), q - 0.5, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1], np.clip(q, 0, 1), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert ((q < 0) | (q > 1)).any()  # some values are clipped
    assert model.score(rows, LABELS) > 0.85


@pytest.mark.parametrize(
    "estimator",
    [
        TruncatedGradientRegressor(loss="poisson", eta0=0.01, gravity=0.0, passes=20),
        FTRLRegressor(loss="poisson", alpha=0.1, l1=0.0, passes=20),
    ],
    ids=["truncated-gradient", "ftrl"],
)
def test_poisson_finds_the_rates(estimator: Any) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(4000, 3)) * 0.5
    rates = np.exp(inputs @ [1.0, -0.5, 0.0] + 0.7)
    model = clone(estimator).set_params(random_state=0).fit(inputs, rng.poisson(rates))
    assert (model.predict(inputs) > 0).all()
    np.testing.assert_allclose(model.predict(inputs).mean(), rates.mean(), rtol=0.1)
    np.testing.assert_allclose(model.coef_[0], [1.0, -0.5, 0.0], atol=0.15)
    assert not hasattr(model, "decision_function")


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantile_regression_estimates_the_quantile(quantile: float) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(4000, 3))
    y = inputs @ [1.0, 0.0, -1.0] + rng.exponential(size=4000)
    model = TruncatedGradientRegressor(
        loss="quantile", quantile=quantile, eta0=0.1, schedule="sqrt", gravity=0.0, passes=10,
        random_state=0,
    ).fit(inputs, y)  # fmt: skip
    assert np.mean(y <= model.predict(inputs)) == pytest.approx(quantile, abs=0.04)
    assert model.intercept_[0] == pytest.approx(-np.log(1 - quantile), abs=0.15)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_centred_rows(average: bool, rows: Any) -> None:
    """R-14.7: it equals training on rows minus their mean, in fit and in partial_fit."""
    params = {"alpha": 0.5, "center": True, "average": average, "dtype": "float64"}
    oracle = averaged(
        X, Y, [np.arange(ROWS)] * 2, loss="huber", epsilon=0.5, alpha=0.5, center=True
    )
    weights = oracle.average_weights if average else oracle.weights
    bias = oracle.average_intercept if average else oracle.intercept
    model = AveragedSGDRegressor(loss="huber", epsilon=0.5, passes=2, shuffle=False, **params)
    model.fit(rows, Y)
    np.testing.assert_allclose(model.coef_[0], weights, atol=1e-10)
    assert model.intercept_[0] == pytest.approx(bias, abs=1e-10)
    streamed = AveragedSGDRegressor(loss="huber", epsilon=0.5, **params)
    streamed.partial_fit(rows[:100], Y[:100], mean=X.mean(axis=0))
    streamed.partial_fit(rows[100:], Y[100:]).partial_fit(rows, Y)
    np.testing.assert_allclose(streamed.coef_, model.coef_, atol=1e-12)
