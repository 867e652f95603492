"""Certificates of fitted margin perceptrons: equal to brute force, or with the right reason."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from oracles.margin_perceptron import margin_perceptron
from thresher import MarginPerceptronClassifier
from thresher.certificates import Certificate, mistake_certificate

RNG = np.random.default_rng(2)
U = RNG.normal(size=12)
X = RNG.normal(size=(600, 12)) * (RNG.random((600, 12)) < 0.5)
X = X[np.abs(X @ U) > 1.0]
Y = np.where(X @ U > 0, 1, -1)
GIVEN: dict[str, Any] = {"shuffle": False, "dtype": "float64", "margin": 0.1, "passes": 50}


def of(clf: Any) -> dict[str, Certificate]:
    return {certificate.name: certificate for certificate in clf.model_.certificates}


@pytest.mark.parametrize("shrink", ["touched", "all"])
@pytest.mark.parametrize("l1", [0.0, 1e-4])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("store", ["dense", "hashed"])
def test_certificates_of_separable_rows(
    shrink: str, l1: float, fit_intercept: bool, store: str
) -> None:
    """P-10: the certificates of R-9.8, R-9.10 and R-9.12 equal those from the oracle's numbers."""
    params = {"l1": l1, "fit_intercept": fit_intercept, "shrink": shrink}
    clf = MarginPerceptronClassifier(**GIVEN, **params, store=store)
    found = of(clf.fit(sp.csr_matrix(X), Y))
    assert found == of(MarginPerceptronClassifier(**GIVEN, **params).fit(X, Y))
    assert list(found) == ["norm", "mistakes", "generalisation"]
    oracle = margin_perceptron(X, Y, [np.arange(len(Y))] * 50, margin=0.1, **params)
    w, b = oracle.weights, oracle.intercept
    norm2 = float(w @ w) + b**2
    radius2 = float(np.square(X).sum(axis=1).max()) + fit_intercept
    most = oracle.updates * (radius2 + (0.0 if oracle.least_eps >= 0.2 else 0.2))
    if shrink == "touched":  # with "all", the core ignores the shrinkage of untouched weights
        assert found["norm"].value == pytest.approx(min(oracle.bound, most))
    assert norm2 <= found["norm"].value * (1 + 1e-12)
    given = {"eta": 1.0, "margin": 0.1, "updates": oracle.updates}
    gaps = Y * (X @ w + b) - l1 * (np.abs(w).sum() if shrink == "all" else (X != 0) @ np.abs(w))
    gap = gaps.min() / np.sqrt(norm2)
    assert gap > 0
    assert found["mistakes"].value == pytest.approx((radius2 + 0.2) / gap**2)
    assert oracle.updates <= found["mistakes"].value
    if shrink == "touched":
        intercept = b if fit_intercept else None
        same = mistake_certificate(X, Y, w, **given, l1=l1, intercept=intercept)
        assert found["mistakes"].value == pytest.approx(same.value)
    assert found["generalisation"].available
    again = thresher.certificates.generalisation_certificate(
        len(Y), int(oracle.updated.sum()), consistent=True, same_order=True
    )
    assert found["generalisation"] == again
    assert "with probability 0.95" in str(again)


def test_inseparable_rows_are_the_reason() -> None:
    noisy = np.where(RNG.random(len(Y)) < 0.2, -Y, Y)
    found = of(MarginPerceptronClassifier(**GIVEN).fit(X, noisy))
    assert found["norm"].available
    assert "does not hold that u separates the rows" in found["mistakes"].reason
    assert "classifies every training row correctly" in found["generalisation"].reason
    much = of(MarginPerceptronClassifier(**(GIVEN | {"l1": 0.2})).fit(X, Y))
    assert "u separates the rows with this shrinkage" in much["mistakes"].reason


@pytest.mark.parametrize("shuffle", ["each", "blocks", "replace"])
def test_generalisation_needs_the_same_order_in_every_pass(shuffle: str) -> None:
    params = GIVEN | {"shuffle": shuffle, "random_state": 0}
    found = of(MarginPerceptronClassifier(**params).fit(X, Y))
    assert "same order in every pass" in found["generalisation"].reason
    once = of(MarginPerceptronClassifier(**(params | {"shuffle": "once"})).fit(X, Y))
    assert once["generalisation"].available


def test_generalisation_needs_a_fit_without_early_stopping() -> None:
    reason = "neither tol nor a callback"
    for params in ({"callback": lambda record: True}, {"tol": 9.0, "patience": 1}):
        found = of(MarginPerceptronClassifier(**GIVEN, **params).fit(X, Y))
        assert reason in found["generalisation"].reason
    dense = of(MarginPerceptronClassifier(**GIVEN, max_density=0.5).fit(X, Y))
    assert reason not in dense["generalisation"].reason


def test_row_weights_other_than_one_are_the_reason() -> None:
    weights = np.ones(len(Y))
    assert of(MarginPerceptronClassifier(**GIVEN).fit(X, Y, weights))["norm"].available
    weights[3] = 2.0
    clf = MarginPerceptronClassifier(**GIVEN).fit(X, Y, weights)
    assert all("all rows have weight 1" in found.reason for found in clf.model_.certificates)
    clf.partial_fit(X, Y)  # the norm still includes the weighted rows
    assert "all rows have weight 1" in of(clf)["norm"].reason
    balanced = MarginPerceptronClassifier(**GIVEN, class_weight={-1: 1, 1: 2}).fit(X, Y)
    assert "all rows have weight 1" in of(balanced)["norm"].reason


def test_rows_of_earlier_calls_are_not_available() -> None:
    fitted = MarginPerceptronClassifier(**GIVEN, warm_start=True).fit(X, Y)
    streamed = MarginPerceptronClassifier(**GIVEN).partial_fit(X, Y, classes=[-1, 1])
    for clf in (streamed, fitted.fit(X, Y), fitted.partial_fit(X, Y)):
        found = of(clf)
        assert found["norm"].available
        for name in ("mistakes", "generalisation"):
            assert found[name].reason == "the rows of earlier calls are not available"


def test_each_class_has_its_certificates_and_they_are_saved(tmp_path: Any) -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(X @ U, [-2.0, 2.0])]
    clf = MarginPerceptronClassifier(**GIVEN).fit(X, labels)
    names = [f"{kind}, class {c}" for c in "abc" for kind in ("norm", "mistakes", "generalisation")]
    assert list(of(clf)) == names
    clf.model_.save(tmp_path / "a.thresher")
    assert thresher.load(tmp_path / "a.thresher").certificates == clf.model_.certificates
    assert pickle.loads(pickle.dumps(clf)).model_.certificates == clf.model_.certificates
