"""Predictions equal X @ coef_.T + intercept_: of estimators and of models from files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import NotFittedError

import thresher
from thresher import (
    FTRLClassifier,
    OnePassClassifier,
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)
from thresher.losses import LOSSES

WIDTH = 12
RNG = np.random.default_rng(7)
X = sp.random(200, WIDTH, density=0.4, format="csr", random_state=RNG)
RAW = np.asarray(X @ RNG.normal(size=(WIDTH, 3)))
TARGETS = {
    "two": (RAW[:, 0] > 0).astype(int),
    "three": RAW.argmax(axis=1),
    "labels": (RAW > 0).astype(int),
    "number": RAW[:, 0],
}
CASES = [
    (FTRLClassifier, "two", {}),
    (FTRLClassifier, "two", {"dtype": "float32"}),
    (FTRLClassifier, "two", {"store": "hashed"}),
    (FTRLClassifier, "three", {}),
    (FTRLClassifier, "labels", {}),
    (TruncatedGradientClassifier, "two", {"loss": "clipped_square"}),
    (TruncatedGradientRegressor, "number", {}),
    (OnePassClassifier, "three", {}),
]


@cache
def trained(case: int, partly: bool) -> tuple[Any, thresher.Model]:
    """Return an estimator, and its model from a file."""
    cls, target, params = CASES[case]
    estimator, y = cls(random_state=0, **params), TARGETS[target]
    if partly:
        classes = {} if target == "number" else {"classes": np.arange(3 if target != "two" else 2)}
        estimator.partial_fit(X, y, **classes)
    else:
        estimator.fit(X, y)
    with TemporaryDirectory() as folder:
        estimator.model_.save(Path(folder) / "a.thresher")
        return estimator, thresher.load(Path(folder) / "a.thresher")


@st.composite
def matrices(draw: Any) -> sp.csr_matrix:
    """Return CSR rows: unsorted, with repeated keys, explicit zeros and empty rows."""
    values = st.one_of(st.just(0.0), st.floats(-100, 100, width=32))
    row = st.lists(st.tuples(st.integers(0, WIDTH - 1), values), max_size=20)
    rows = draw(st.lists(row, min_size=1, max_size=12))
    key, value = draw(st.sampled_from(["i4", "i8"])), draw(st.sampled_from(["f4", "f8"]))
    found = sp.csr_matrix((len(rows), WIDTH), dtype=value)
    pairs = [pair for row in rows for pair in row]
    found.indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(key)
    found.indices = np.array([k for k, _ in pairs], key)
    found.data = np.array([x for _, x in pairs], value)
    return found


def product(estimator: Any, rows: sp.csr_matrix) -> NDArray[np.float64]:
    """Return the decision function, computed plainly."""
    coef = estimator.coef_.toarray() if sp.issparse(estimator.coef_) else estimator.coef_
    dense = rows.toarray().astype(np.float64)
    if LOSSES[estimator.model_.loss].scales_rows:
        dense /= np.sqrt(np.maximum(np.count_nonzero(dense, axis=1), 1))[:, None]
    raw = dense @ coef.T + estimator.intercept_
    at = LOSSES[estimator.model_.loss].decision_at if estimator.task == "classifier" else 0.0
    return np.asarray(raw[:, 0] if raw.shape[1] == 1 else raw) - at


@pytest.mark.parametrize("case", range(len(CASES)))
@given(rows=matrices(), partly=st.booleans())
def test_predictions_are_products(case: int, rows: sp.csr_matrix, partly: bool) -> None:
    estimator, model = trained(case, partly)
    if LOSSES[model.loss].scales_rows:
        rows.sum_duplicates()  # else rounding decides whether a sum is zero
    expected, close = product(estimator, rows), {"rtol": 1e-5, "atol": 1e-4}
    forms = [rows, sp.csr_array(rows), rows.toarray(), np.asfortranarray(rows.toarray())]
    for form in forms:
        found = model.decision_function(form)
        np.testing.assert_allclose(found, expected, **close)
        if estimator.task == "regressor":
            np.testing.assert_allclose(estimator.predict(form), expected, **close)
            continue
        own = estimator.decision_function(form)
        np.testing.assert_allclose(own, expected, **close)
        labels = estimator.predict(form)
        if CASES[case][1] == "labels":
            assert np.array_equal(labels, (own >= 0).astype(int))
        elif own.ndim == 1:
            assert np.array_equal(labels, estimator.classes_[(own >= 0).astype(int)])
        else:
            assert np.array_equal(labels, estimator.classes_[own.argmax(axis=1)])
        if hasattr(estimator, "predict_proba"):
            p = estimator.predict_proba(form)
            assert ((p >= 0) & (p <= 1)).all()
            if own.ndim == 1 and model.loss == "logistic":
                np.testing.assert_allclose(p[:, 1], expit(own), **close)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_rows_do_not_depend_on_others(case: int) -> None:
    """A model gives the same bits for a row alone, among others, in CSR and in an array."""
    _, model = trained(case, False)
    whole = model.decision_function(X)
    assert np.array_equal(whole, model.decision_function(X.toarray()))
    for i in (0, 7, 199):
        assert np.array_equal(whole[i : i + 1], model.decision_function(X[i]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_bad_values_are_refused(case: int, bad: float) -> None:
    rows = X[:5].copy()
    rows.data[-1] = bad
    for each in trained(case, False):
        for form in (rows, rows.toarray()):
            with pytest.raises(ValueError, match=r"row \d: the value of feature \d+ is"):
                each.predict(form)


def test_messages_of_wrong_rows() -> None:
    estimator, _ = trained(0, False)
    with pytest.raises(ValueError, match="X has 5 features, but FTRLClassifier is expecting 12"):
        estimator.predict(X[:, :5])
    with pytest.raises(ValueError, match="0 sample"):
        estimator.predict(X[:0])
    with pytest.raises(ValueError, match="Expected 2D array"):
        estimator.predict(np.zeros(12))
    with pytest.raises(NotFittedError):
        FTRLClassifier().predict(X)
    assert np.array_equal(estimator.predict(X.tocsc()), estimator.predict(X))
    whole = (X * 9).astype(int)
    assert np.array_equal(estimator.predict(whole), estimator.predict(whole.astype(float)))


def test_few_dicts_are_predicted_like_many() -> None:
    """Up to 64 dicts are read one by one; more of them are read as a source."""
    rng = np.random.default_rng(0)
    rows = [{f"w{k}": float(k) for k in rng.integers(0, 50, 8).tolist()} for _ in range(100)]
    rows[3] = {"colour": "red", "other": None}
    y = rng.integers(0, 3, 100)
    for labels in (y % 2, y):
        estimator = FTRLClassifier().partial_fit(rows, labels, classes=np.unique(labels))
        for each in (estimator, estimator.model_):
            many = each.decision_function(rows)
            few = np.concatenate(
                [each.decision_function(rows[i : i + 5]) for i in range(0, 100, 5)]
            )
            np.testing.assert_allclose(few, many, rtol=1e-6)
            np.testing.assert_allclose(each.decision_function(rows[0]), many[:1], rtol=1e-6)
            with pytest.raises(ValueError, match="nan"):
                each.predict([{"w1": float("nan")}])
