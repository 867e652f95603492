"""Mirror descent equals the oracle; identities of the link; no overflow (P-12)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import thresher
from oracles import mirror_descent as oracles
from oracles.mirror_descent import link
from oracles.rates import Relative
from oracles.truncated_gradient import truncated_gradient
from support.streams import LOSSES, SCHEDULES, Stream, dense_weights, learner, streams
from thresher import (
    DataError,
    DivergenceError,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    _core,
)
from thresher.rules import core_args


def p_norm(x: np.ndarray, p: float) -> float:
    m = np.abs(x).max(initial=0.0)
    return float(m * np.sum((np.abs(x) / m) ** p) ** (1 / p)) if m > 0 else 0.0


class RelativeToTheNorm(Relative):
    """Relative rates in the geometry of the p-norm: (p - 1) ||x||_p^2 instead of ||x||^2."""

    p = 2.0

    def divisors(self, x: np.ndarray, weight: float) -> tuple[float, float]:
        return super().divisors(np.array([np.sqrt(self.p - 1) * p_norm(x, self.p)]), weight)


def calm(oracle: Any) -> bool:
    return bool(np.all(np.isfinite(oracle.predictions)) and np.abs(oracle.predictions).max() < 50)


@given(
    data=st.data(),
    loss=st.sampled_from(LOSSES),
    p=st.sampled_from([2.0, 2.3, 3.71, 12.0]),
    l1=st.sampled_from([0.0, 0.00117, 0.0531]),
    threshold=st.sampled_from(["paper", "scaled"]),
    schedule=st.sampled_from(SCHEDULES),
    decay=st.sampled_from([1.0, 0.7]),
    relative=st.booleans(),
    fit_intercept=st.booleans(),
)
def test_equals_the_oracle(
    data: st.DataObject, loss: str, p: float, l1: float, threshold: str, schedule: str,
    decay: float, relative: bool, fit_intercept: bool,
) -> None:  # fmt: skip
    stream = data.draw(streams(loss))
    params: dict[str, Any] = {
        "loss": loss, "p": p, "l1": l1, "threshold": threshold, "schedule": schedule,
        "decay": decay, "relative": relative, "fit_intercept": fit_intercept, "eta0": 0.151,
        "quantile": 0.3,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RelativeToTheNorm, "p", p)
        patch.setattr(oracles, "Relative", RelativeToTheNorm)
        oracle = oracles.mirror_descent(
            stream.X, stream.y, stream.passes, sample_weight=stream.weight, **params
        )
    assume(calm(oracle))
    model = stream.learn(learner("mirror_descent", stream.width, **params))
    w = dense_weights(model, stream.width)
    scale = max(1.0, np.abs(oracle.weights).max(initial=0.0), abs(oracle.intercept))
    np.testing.assert_allclose(w, oracle.weights, rtol=0, atol=1e-9 * scale)
    assert model.intercept() == pytest.approx(oracle.intercept, abs=1e-9 * scale)
    sure = np.abs(oracle.dual) > 1e-12 * scale
    np.testing.assert_array_equal(w[~sure], 0)
    assert np.all(w[sure & (np.abs(oracle.weights) > 1e-300)] != 0)
    assert model.nonzeros() == np.count_nonzero(w)
    assert model.steps == oracle.steps
    assert model.loss_sum == pytest.approx(sum(oracle.losses), rel=1e-8, abs=1e-8)
    # ||w||_q = ||theta||_p
    assert p_norm(w, p / (p - 1)) == pytest.approx(p_norm(oracle.dual, p), rel=1e-8, abs=1e-8)


@given(data=st.data(), loss=st.sampled_from(LOSSES), l1=st.sampled_from([0.0, 0.0107]))
def test_p_2_is_truncated_gradient(data: st.DataObject, loss: str, l1: float) -> None:
    """R-11.2."""
    stream = data.draw(streams(loss))
    params: dict[str, Any] = {"loss": loss, "schedule": "sqrt", "eta0": 0.151}
    other = truncated_gradient(
        stream.X, stream.y, stream.passes, gravity=l1, period=1, ceiling=np.inf,
        sample_weight=stream.weight, fit_intercept=True, **params,
    )  # fmt: skip
    assume(calm(other))
    model = stream.learn(learner("mirror_descent", stream.width, p=2.0, l1=l1, **params))
    scale = max(1.0, np.abs(other.weights).max(initial=0.0))
    got = dense_weights(model, stream.width)
    np.testing.assert_allclose(got, other.weights, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("p", [2.0, 2.5, 20.0, 1000.0])
def test_no_overflow(size: float, p: float) -> None:
    """P-12: for theta of 1e300 and 1e-300, weights are finite and equal to the oracle's."""
    X = size * np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 0.999, 0.0, 1e-3]])
    stream = Stream(X, np.array([1.0, -1.0]), None, [np.array([0, 1])])
    model = stream.learn(
        learner("mirror_descent", 4, p=p, eta0=size, schedule="constant", fit_intercept=False,
                loss="hinge")
    )  # fmt: skip
    theta = size * np.array([1.0, -0.999, 0.5, -1e-3]) * size
    np.testing.assert_allclose(
        dense_weights(model, 4), link(theta, p), rtol=1e-12, atol=1e-300 * size
    )
    assert np.isfinite(dense_weights(model, 4)).all()


def test_stored_zeros_and_denormal_numbers() -> None:
    X = np.array([5e-324, 0.0, 1e-310])
    batch = _core.sparse_batch(np.array([0, 3]), np.arange(3), X, 3, np.ones(1))
    for relative in (False, True):
        model = learner("mirror_descent", 3, p=3.0, relative=relative)
        model.learn(batch)
        assert np.isfinite(dense_weights(model, 3)).all()
        assert model.nonzeros() <= 2


def test_divergence_is_reported_before_weights_are_lost() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 5)), rng.normal(size=50)
    stream = Stream(X, y, None, [np.arange(50)] * 20)
    model = learner("mirror_descent", 5, p=3.0, eta0=50.0, loss="squared")
    with pytest.raises(DivergenceError, match=r"lower eta0; for these rows .* is safe") as caught:
        stream.learn(model)
    assert np.isfinite(dense_weights(model, 5)).all()
    safe = float(str(caught.value).split()[-3])
    stream.learn(learner("mirror_descent", 5, p=3.0, eta0=safe, loss="squared"))


def test_states() -> None:
    """A state of another learner, or a damaged one, is refused and changes nothing."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 6))
    stream = Stream(X, rng.choice([-1.0, 1.0], 30), None, [np.arange(30)])
    model = stream.learn(learner("mirror_descent", 6, p=3.0, l1=0.01))
    state, before = model.state(), dense_weights(model, 6)
    other = learner("ftrl", 6).state()
    for bad in (other, state[:-1], state + b"0", state[:-8] + b"\0" * 8, b""):
        with pytest.raises(ValueError, match="state"):
            model.restore(bad)
        np.testing.assert_array_equal(dense_weights(model, 6), before)
    narrow = learner("mirror_descent", 3, p=3.0, l1=0.01)
    with pytest.raises(ValueError, match="damaged"):
        narrow.restore(state)
    for call in (
        lambda: model.start_from(np.zeros(1, np.uint64), np.ones(1), 0.0),
        lambda: model.center(np.zeros(1, np.uint64), np.ones(1)),
    ):
        with pytest.raises(ValueError, match="this rule"):
            call()


def test_bad_rows() -> None:
    y = np.ones(2)
    for values, what in (([1.0, np.nan], "NaN"), ([1.0, np.inf], "inf"), ([1.0, 1e200], "1e")):
        model = learner("mirror_descent", 2, p=3.0)
        batch = _core.dense_batch(np.array([[1.0, 0.0], values]), y)
        with pytest.raises(DataError, match=f"row 1: .*{what}"):
            model.learn(batch)
        assert model.steps == 1
    batch = _core.sparse_batch(np.array([0, 1]), np.array([2]), np.ones(1), 3, np.ones(1))
    with pytest.raises(DataError, match="feature number 2 is outside"):
        learner("mirror_descent", 2).learn(batch)
    for bad in ({"p": 1.5}, {"threshold": "soft"}, {"p": np.inf}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            learner("mirror_descent", 2, **bad)


@pytest.mark.parametrize(
    ("p", "width", "expected"),
    [("2ln", 1000, 13.8155), ("0.5ln", 1000, 3.4539), ("0.5ln", 3, 2.0), (5, 9, 5.0)],
)
def test_p_depends_on_the_width(p: Any, width: int, expected: float) -> None:
    params = MirrorDescentClassifier(p=p).get_params()
    numbers, _ = core_args.core_parameters("mirror-descent", params, 100, width)
    assert numbers["p"] == pytest.approx(expected, abs=1e-4)


def test_estimators(tmp_path: Path) -> None:
    """Passes, streaming and files give the core's results."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 60))
    y = X[:, 0] - X[:, 1] > 0
    clf = MirrorDescentClassifier(l1=1e-4, random_state=0, shuffle=False, passes=1).fit(X, y)
    online = MirrorDescentClassifier(l1=1e-4)
    for rows in np.array_split(np.arange(400), 7):
        online.partial_fit(X[rows], y[rows], classes=[False, True])
    np.testing.assert_array_equal(clf.coef_, online.coef_)
    assert MirrorDescentClassifier(random_state=0).fit(X, y).score(X, y) > 0.95
    clf.model_.save(tmp_path / "a.thresher")
    loaded = thresher.load(tmp_path / "a.thresher")
    np.testing.assert_allclose(loaded.decision_function(X), clf.decision_function(X), rtol=1e-12)
    reg = MirrorDescentRegressor(random_state=0).fit(X, X[:, 0] - 2 * X[:, 1])
    assert reg.score(X, X[:, 0] - 2 * X[:, 1]) > 0.9
