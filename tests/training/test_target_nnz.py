"""`target_nnz`: the core equals the oracle, and models keep that number of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from oracles.ftrl import ftrl
from oracles.truncated_gradient import truncated_gradient
from support.exactness import assert_equal, calm
from support.streams import Stream, learner
from thresher import FTRLClassifier, ParameterError, StabilizedClassifier
from thresher import TruncatedGradientClassifier as TruncatedGradient


@st.composite
def long_streams(draw: st.DrawFn) -> Stream:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(60, 25)) * (rng.random((60, 25)) < 0.3)
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    return Stream(X.astype(np.float32).astype(float), y, None, [rng.permutation(60)] * 4)


@given(
    stream=long_streams(),
    target=st.sampled_from([1, 5, 15]),
    store=st.sampled_from(["dense", "hashed"]),
    period=st.sampled_from([1, 3]),
    l2=st.sampled_from([0.0, 0.03]),
)
def test_truncated_gradient(
    stream: Stream, target: int, store: str, period: int, l2: float
) -> None:
    params: dict[str, Any] = {
        "loss": "logistic", "gravity": 0.0107, "period": period, "l2": l2, "eta0": 0.211,
        "target_nnz": target,
    }  # fmt: skip
    oracle = truncated_gradient(stream.X, stream.y, stream.passes, **params)
    model = learner("truncated_gradient", stream.width, store=store, fit_intercept=False, **params)
    assert_equal(stream.learn(model), stream, oracle, "float64")


@given(
    stream=long_streams(), target=st.sampled_from([1, 5, 15, 40]), l1=st.sampled_from([0.0, 0.3])
)
def test_ftrl(stream: Stream, target: int, l1: float) -> None:
    params: dict[str, Any] = {"loss": "logistic", "l1": l1, "alpha": 0.53, "target_nnz": target}
    oracle = ftrl(stream.X, stream.y, stream.passes, **params)
    assume(calm(oracle))
    model = learner("ftrl", stream.width, fit_intercept=False, **params)
    assert_equal(stream.learn(model), stream, oracle, "float64")
    model.steer()
    assert model.nonzeros() <= target


def problem(rows: int = 600, width: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, width)) * (rng.random((rows, width)) < 0.05)
    y = np.where(X[:, :10] @ rng.normal(size=10) + 0.1 * rng.normal(size=rows) > 0, "b", "a")
    return X, y


@pytest.mark.parametrize("estimator", [TruncatedGradient, FTRLClassifier, StabilizedClassifier])
@pytest.mark.parametrize("target", [20, 100, 500])
def test_models_keep_at_most_the_target(estimator: Any, target: int) -> None:
    """They have at most the target, and at least 95 % of it if enough features are useful."""
    X, y = problem()
    clf = estimator(target_nnz=target, random_state=0).fit(X, y)
    assert 0.95 * target <= clf.model_.nnz <= target
    assert np.count_nonzero(clf.coef_) == clf.model_.nnz
    np.testing.assert_array_equal(clf.decision_function(X), clf.model_.decision_function(X))
    assert clf.score(X, y) > 0.65


@pytest.mark.parametrize("estimator", [TruncatedGradient, FTRLClassifier])
def test_batches_do_not_matter(estimator: Any) -> None:
    """The result is the same for any split of the rows, and never exceeds the target."""
    X, y = problem()
    whole = estimator(target_nnz=50, refit=False).partial_fit(X, y, classes=["a", "b"])
    parts = estimator(target_nnz=50, refit=False)
    for rows in np.array_split(np.arange(len(y)), 7):
        parts.partial_fit(X[rows], y[rows], classes=["a", "b"])
        assert parts.model_.nnz <= 50
    np.testing.assert_array_equal(whole.coef_, parts.coef_)


def test_targets_above_the_number_of_features() -> None:
    X, y = problem(100, 30)
    for estimator in (TruncatedGradient, FTRLClassifier, StabilizedClassifier):
        assert estimator(target_nnz=1000, random_state=0).fit(X, y).model_.nnz <= 30


@pytest.mark.parametrize(
    "other", [{"gravity": 0}, {"average": True}, {"shrink": "round", "ceiling": 0.1}]
)
def test_contradicting_parameters_are_refused(other: dict[str, Any]) -> None:
    X, y = problem(50, 10)
    with pytest.raises(ParameterError, match="target_nnz"):
        TruncatedGradient(target_nnz=5, **other).fit(X, y)


@pytest.mark.parametrize("estimator", [TruncatedGradient, FTRLClassifier])
def test_records_are_of_the_kept_weights(estimator: Any) -> None:
    """Validation loss and nonzeros are computed with the weights that the model keeps."""
    X, y = problem()
    clf = estimator(target_nnz=30, passes=3, random_state=0)
    clf.fit(X[:400], y[:400], eval_set=(X[400:], y[400:]))
    assert all(record.nonzeros <= 30 for record in clf.history_ if record.nonzeros is not None)
    if estimator is TruncatedGradient:  # FTRL adjusts l1 again at the end
        expected = log_loss(y[400:], clf.predict_proba(X[400:]))
        assert clf.history_[-1].valid_loss == pytest.approx(expected, rel=1e-6)
