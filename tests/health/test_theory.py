"""The theorems of the papers, checked on the core (P-05, P-06, P-07, P-19's memory side)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from oracles import losses
from support.streams import Stream, dense_weights, learner
from thresher import _core

# loss: constants A and B of ||gradient||^2 <= A L + B where ||x|| <= 1 (R-1.*)
BOUNDED = {
    "hinge": (0.0, 1.0),
    "logistic": (0.0, 1.0),
    "square": (4.0, 0.0),
    "absolute": (0.0, 1.0),
}


class Iterates:
    """A learner that learns one row at a time and returns all its weights."""

    def __init__(self, X: np.ndarray, **params: object) -> None:
        self.model = learner("truncated_gradient", X.shape[1], fit_intercept=False, **params)
        self.X, self.loss = X, str(params["loss"])

    def step(self, row: int, y: float) -> tuple[float, np.ndarray]:
        """Return the loss before the step and the weights after it."""
        x = sp.csr_matrix(self.X[[row]])
        batch = _core.sparse_batch(x.indptr, x.indices, x.data, x.shape[1], np.array([y]))
        before = self.model.loss_sum
        self.model.learn(batch)
        return self.model.loss_sum - before, dense_weights(self.model, x.shape[1])


@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(sorted(BOUNDED)),
    adversarial=st.booleans(),
    gravity=st.sampled_from([0.0, 0.01, 0.2]),
    period=st.sampled_from([1, 4]),
    ceiling=st.sampled_from([np.inf, 0.05]),
)
def test_regret_bound(
    seed: int, loss: str, adversarial: bool, gravity: float, period: int, ceiling: float
) -> None:
    """R-7.2, Theorem 1.1: on any stream, also an adversarial one, against any w-bar.

    The adversary chooses the label with the largest loss after each prediction.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6)) * (rng.random((60, 6)) < 0.5)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    A, B = BOUNDED[loss]
    eta = 0.1
    run = Iterates(X, loss=loss, eta0=eta, gravity=gravity, period=period, ceiling=ceiling)
    left, labels, kept, w = 0.0, [], [], np.zeros(6)
    for i, x in enumerate(X, 1):
        p = float(w @ x)
        if not adversarial:
            y = float(rng.choice([-1.0, 1.0]))
        else:
            y = max((-1.0, 1.0), key=lambda label, p=p: losses.value(loss, p, label))
        loss_before, w = run.step(i - 1, y)
        g_i = period * gravity if i % period == 0 else 0.0
        below = np.abs(w) <= ceiling
        left += (1 - 0.5 * A * eta) * loss_before + g_i * np.abs(w[below]).sum()
        labels.append(y), kept.append((g_i, below))
    for wbar in (np.zeros(6), rng.normal(size=6), w):
        right = eta * B * len(X) / 2 + wbar @ wbar / (2 * eta)
        for x, y, (g_i, below) in zip(X, labels, kept, strict=True):
            right += losses.value(loss, float(wbar @ x), y) + g_i * np.abs(wbar[below]).sum()
        assert left <= right * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("loss", ["hinge", "logistic", "square"])
def test_averaged_iterate_bound(loss: str) -> None:
    """R-7.3, Theorem 1.2: the averaged iterate, as a mean over random draws of the rows."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 5))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40) > 0, 1.0, -1.0)
    (A, B), eta, g, T = BOUNDED[loss], 0.05, 0.02, 400
    a = 1 - 0.5 * A * eta

    def objective(w: np.ndarray, gravity: float) -> float:
        values = [losses.value(loss, float(w @ x), label) for x, label in zip(X, y, strict=True)]
        return float(np.mean(values) + gravity * np.abs(w).sum())

    left = []
    for seed in range(60):
        # what_T is the mean of w_1 = 0 and the weights after the first T - 1 steps
        order = np.random.default_rng(seed).integers(0, 40, T - 1)
        stream = Stream(X, y, None, [order])
        model = learner(
            "truncated_gradient", 5, loss=loss, eta0=eta, gravity=g, fit_intercept=False,
            average=True,
        )  # fmt: skip
        stream.learn(model)
        left.append(a * objective(dense_weights(model, 5, average=True) * (T - 1) / T, g / a))
    for wbar in (np.zeros(5), dense_weights(model, 5)):
        right = eta * B / 2 + wbar @ wbar / (2 * eta * T) + objective(wbar, g)
        assert np.mean(left) <= right + 3 * np.std(left) / np.sqrt(len(left))


def test_solves_the_lasso() -> None:
    """R-7.5: small steps reach the lasso's objective; scikit-learn's alpha is g / 2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10)) / 3
    y = X @ np.array([2.0, -1.5, 1.0, 0, 0, 0, 0, 0, 0, 0]) + 0.1 * rng.normal(size=200)
    g = 0.05

    def objective(w: np.ndarray) -> float:
        return float(np.mean((X @ w - y) ** 2) + g * np.abs(w).sum())

    best = objective(Lasso(alpha=g / 2, fit_intercept=False, tol=1e-10).fit(X, y).coef_)
    gaps = []
    for eta, passes in ((0.05, 20), (0.005, 100), (0.0005, 500)):
        stream = Stream(X, y, None, [rng.permutation(200) for _ in range(passes)])
        model = learner(
            "truncated_gradient", 10, loss="square", eta0=eta, gravity=g, fit_intercept=False
        )
        gaps.append(objective(dense_weights(stream.learn(model), 10)) - best)
    assert gaps[0] > gaps[1] > gaps[2] >= -1e-9
    assert gaps[2] < 5e-4


def test_larger_period_is_sparser() -> None:
    """R-6.7, A-39: at equal total gravity a larger K gives sparser models."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 40))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=500) > 0, 1.0, -1.0)
    stream = Stream(X, y, None, [rng.permutation(500) for _ in range(20)])
    counts = [
        stream.learn(
            learner("truncated_gradient", 40, eta0=0.5, gravity=0.005, period=period)
        ).nonzeros()
        for period in (1, 10, 100)
    ]
    assert counts[0] > counts[1] > counts[2] >= 5


def test_the_hashed_store_keeps_only_nonzero_weights() -> None:
    """R-6.13, N-2: memory does not grow with a long stream of rare features."""
    rng = np.random.default_rng(0)
    model = learner(
        "truncated_gradient", 0, store="hashed", dtype="float32", gravity=0.05, eta0=0.5, period=10
    )
    starts = np.arange(0, 20 * 1000 + 1, 20, dtype=np.int64)
    largest = 0
    for _ in range(50):
        keys = rng.integers(-(2**63), 2**63, 20 * 1000)
        keys[::20] = 7  # the only feature related to the label
        y = rng.choice([-1.0, 1.0], 1000)
        values = np.ones(20 * 1000, np.float32)
        values[::20] = y
        model.learn(_core.sparse_batch(starts, keys, values, 0, y))
        largest = max(largest, model.store_bytes)
    found, weights = model.weights()
    assert 7 in found.tolist()
    assert abs(weights[found.tolist().index(7)]) == np.abs(weights).max()
    assert 4 * largest < 50 * 1000 * 19 * 16  # the size with all features of the stream
