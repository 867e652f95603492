"""The regret certificate of truncated gradient: the core's sums, and the theorem (R-7.2, R-7.7)."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import thresher
from oracles import losses
from oracles.losses import MARGIN
from oracles.truncated_gradient import truncated_gradient
from support.streams import LOSSES, Stream, learner, streams
from thresher import TruncatedGradientClassifier, TruncatedGradientRegressor

FEASIBLE = {"eta0": 0.05, "decay": 1.0, "certify": True}
RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 8)) * (RNG.random((200, 8)) < 0.5)
Y = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=200)


def pulls(stream: Stream, params: dict[str, Any], dtype: str) -> float:
    """Return the sum of g_i ||w_{i+1}||_1, with the oracle's weights after each event."""
    order, total = np.concatenate(stream.passes), 0.0
    for i in range(params["period"], len(order) + 1, params["period"]):
        oracle = truncated_gradient(
            stream.X, stream.y, [order[:i]], sample_weight=stream.weight, dtype=np.dtype(dtype),
            **params,
        )  # fmt: skip
        total += params["period"] * params["gravity"] * float(np.abs(oracle.weights).sum())
    return total


@given(
    data=st.data(),
    loss=st.sampled_from(LOSSES),
    gravity=st.sampled_from([0.0, 0.0107, 0.103]),
    period=st.sampled_from([1, 3, 10]),
    fit_intercept=st.booleans(),
    store=st.sampled_from(["dense", "hashed"]),
    dtype=st.sampled_from(["float64", "float64", "float32"]),
)
def test_the_core_computes_the_sums(
    data: st.DataObject, loss: str, gravity: float, period: int, fit_intercept: bool, store: str,
    dtype: str,
) -> None:  # fmt: skip
    """The sums agree with the oracle, despite sweeps and stored zeros; weights do not change."""
    stream = data.draw(streams(loss))
    if stream.weight is not None:
        stream.weight = np.clip(stream.weight, 0.5, 1.0)  # one step for each row
    if data.draw(st.booleans()):
        stored = stream.csr.copy()
        stored.data[::3] = 0.0
        stream = Stream(stored.toarray(), stream.y, stream.weight, stream.passes)
        stream.csr = stored
    params = {
        "loss": loss, "gravity": gravity, "period": period, "eta0": 0.0503,
        "fit_intercept": fit_intercept,
    }  # fmt: skip
    oracle = truncated_gradient(
        stream.X, stream.y, stream.passes, sample_weight=stream.weight, **params
    )
    assume(np.all(np.isfinite(oracle.predictions)) and np.abs(oracle.predictions).max() < 50)
    options = {"store": store, "dtype": dtype, **params}
    options["sweep_events"] = data.draw(st.sampled_from([2, 7, 1 << 20]))
    model = stream.learn(learner("truncated_gradient", stream.width, certify=True, **options))
    facts = model.facts()
    expected = pulls(stream, params, dtype)
    relative = 1e-10 if dtype == "float64" else 1e-4
    assert facts["pull_sum"] == pytest.approx(expected, rel=relative, abs=relative)
    assert facts["gravity_sum"] == pytest.approx(model.steps // period * period * gravity)
    rows = [losses.row_scale(loss, x) * x for x in stream.X[np.concatenate(stream.passes)]]
    largest = max(float(x @ x) for x in rows)
    assert facts["squared_radius"] == pytest.approx(largest, rel=1e-6)
    plain = stream.learn(learner("truncated_gradient", stream.width, **options))
    assert plain.facts() == {}
    for one, other in zip(plain.weights(), model.weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert plain.loss_sum == model.loss_sum


def test_a_weight_counts_until_it_becomes_zero() -> None:
    """A weight of 0.1 that shrinks by 0.03 adds g (0.07 + 0.04 + 0.01), even if it is dropped."""
    params = {"loss": "squared", "eta0": 0.1, "gravity": 0.3, "fit_intercept": False}
    for store in ("dense", "hashed"):
        stream = Stream(np.eye(60), np.r_[1.0, np.zeros(59)], None, [np.arange(60)])
        model = learner("truncated_gradient", 60, store=store, certify=True, **params)
        assert stream.learn(model).facts()["pull_sum"] == pytest.approx(0.3 * 0.12)
        assert model.nonzeros() == 0


@pytest.mark.parametrize(
    "params",
    [
        {"ceiling": 0.5}, {"shrink": "subgradient"}, {"shrink": "round", "ceiling": 0.1},
        {"l2": 0.1}, {"average": True}, {"decay": 0.9}, {"schedule": "sqrt"}, {"relative": True},
        {"fading": True},
    ],
)  # fmt: skip
def test_the_core_computes_no_sums_without_a_closed_form(params: dict[str, Any]) -> None:
    stream = Stream(X, np.sign(Y), None, [np.arange(200)])
    model = learner("truncated_gradient", 8, certify=True, gravity=0.1, **params)
    assert stream.learn(model).facts() == {}


# ---- the theorem --------------------------------------------------------------------------------


@given(
    data=st.data(),
    loss=st.sampled_from([loss for loss in LOSSES if loss != "poisson"]),
    gravity=st.sampled_from([0.0, 0.0107, 0.103]),
    period=st.sampled_from([1, 3, 10]),
    fit_intercept=st.booleans(),
)
def test_right_minus_left_equals_brute_force_and_is_never_negative(
    data: st.DataObject, loss: str, gravity: float, period: int, fit_intercept: bool
) -> None:
    """R-7.2 with the estimators, on any stream."""
    stream = data.draw(streams(loss, weighted=False))
    assume(len(np.unique(stream.y)) > 1)
    eta, passes = 0.02, 2
    classifies = loss in MARGIN
    cls = TruncatedGradientClassifier if classifies else TruncatedGradientRegressor
    estimator = cls(
        loss=loss, eta0=eta, gravity=gravity, period=period, fit_intercept=fit_intercept,
        decay=1.0, passes=passes, shuffle=False, dtype="float64", certify=True,
    ).fit(stream.csr, stream.y)  # fmt: skip
    order = [np.arange(len(stream.y))] * passes
    params = {"loss": loss, "gravity": gravity, "period": period, "eta0": eta}
    params["fit_intercept"] = fit_intercept
    oracle = truncated_gradient(stream.X, stream.y, order, **params)
    pulled = pulls(Stream(stream.X, stream.y, None, order), params, "float64")
    scaled = np.array([losses.row_scale(loss, x) * x for x in stream.X])
    C2 = max(float(x @ x) for x in scaled) + fit_intercept
    A, B = losses.CONSTANTS[loss](math.sqrt(C2))
    assume(A * eta < 2)
    T, events = oracle.steps, oracle.steps // period
    final = oracle.weights, oracle.intercept
    comparators = (final, (np.zeros(stream.width), 0.0))
    for certificate, (w, b) in zip(estimator.model_.certificates, comparators, strict=True):
        loss_sum = passes * sum(
            losses.value(loss, float(w @ x) + b, y) for x, y in zip(scaled, stream.y, strict=True)
        )
        right = eta * B * T / 2 + (w @ w + b * b) / (2 * eta) + loss_sum
        right += events * period * gravity * np.abs(w).sum()
        slack = right - (1 - 0.5 * A * eta) * sum(oracle.losses) - pulled
        assert slack >= -1e-9
        assert certificate.available, certificate
        assert certificate.value == pytest.approx(slack, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("shuffle", ["each", "once", "replace", "blocks", False])
@pytest.mark.parametrize(
    ("params", "steps"),
    [
        ({"passes": 3}, 600),
        ({"passes": 3, "callback": lambda record: record.examples >= 128}, 128),  # stopped early
        ({"passes": 9, "tol": 0.0, "patience": 2}, 200),  # the first pass is restored
    ],
)
def test_the_comparator_is_evaluated_on_the_rows_that_were_learned(
    params: dict[str, Any], steps: int, shuffle: Any
) -> None:
    """Rows are empty, so losses are those of zero weights, and labels show which rows counted."""
    labels = RNG.normal(size=200)
    reg = TruncatedGradientRegressor(
        loss="absolute", fit_intercept=False, shuffle=shuffle, random_state=3, **FEASIBLE, **params
    )
    empty = sp.csr_matrix((200, 4))
    reg.fit(empty, labels, eval_set=(empty, labels) if "tol" in params else None)
    statement = reg.model_.certificates[1].statement
    assert statement.startswith(f"{steps} steps")
    lost = statement.split("lost ")[1].split(" ")[0]
    assert statement.endswith(f"a comparator that lost {lost}")


def test_each_class_has_its_certificates_and_they_are_saved(tmp_path: Any) -> None:
    classes = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])]
    clf = TruncatedGradientClassifier(**FEASIBLE, random_state=0).fit(X, classes)
    names = [certificate.name for certificate in clf.model_.certificates]
    assert names == [
        f"regret against {what}, class {label}"
        for label in "abc"
        for what in ("the final weights", "zero")
    ]
    assert all(certificate.available for certificate in clf.model_.certificates)
    json.dumps([certificate.to_dict() for certificate in clf.model_.certificates])
    clf.model_.save(tmp_path / "a.thresher")
    assert thresher.load(tmp_path / "a.thresher").certificates == clf.model_.certificates
    assert pickle.loads(pickle.dumps(clf)).model_.certificates == clf.model_.certificates


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"eta0": "auto"}, "the rate is not constant"),
        ({"decay": 0.9}, "the rate is not constant"),
        ({"schedule": "sqrt"}, "the rate is not constant"),
        ({"ceiling": 0.5}, "the ceiling is finite"),
        ({"shrink": "subgradient"}, "shrink is 'subgradient'"),
        ({"l2": 0.1}, "l2 penalty"),
        ({"average": True}, "average of weights"),
        ({"loss": "poisson"}, "the gradient of poisson"),
        ({"eta0": 0.3}, "is below 2 / A"),
    ],
)
def test_an_unavailable_certificate_has_a_reason(params: dict[str, Any], reason: str) -> None:
    labels = np.abs(Y) if params.get("loss") == "poisson" else Y
    reg = TruncatedGradientRegressor(**(FEASIBLE | {"passes": 2} | params)).fit(X, labels)
    for certificate in reg.model_.certificates:
        assert not certificate.available
        assert reason in certificate.reason


def test_row_weights_and_earlier_rows_are_reasons() -> None:
    weighted = TruncatedGradientRegressor(**FEASIBLE).fit(X, Y, sample_weight=np.full(200, 0.5))
    assert "all rows have weight 1" in weighted.model_.certificates[0].reason
    ones = TruncatedGradientRegressor(**FEASIBLE).fit(X, Y, sample_weight=np.ones(200))
    assert ones.model_.certificates[0].available
    more = ones.partial_fit(X, Y)
    assert "rows of earlier calls" in more.model_.certificates[0].reason
    warm = TruncatedGradientRegressor(**FEASIBLE, warm_start=True).fit(X, Y).fit(X, Y)
    assert "rows of earlier calls" in warm.model_.certificates[0].reason
    stream = TruncatedGradientRegressor(**FEASIBLE).partial_fit(X, Y)
    assert "gravity='auto' falls" in stream.model_.certificates[0].reason
    assert TruncatedGradientRegressor().fit(X, Y).model_.certificates == ()
