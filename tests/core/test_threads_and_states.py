"""The core with several threads, damaged states and bad rows."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from support.streams import Stream, dense_weights, learner
from thresher import FTRLClassifier, TruncatedGradientRegressor, _core

RNG = np.random.default_rng(0)
CASES: list[tuple[str, dict[str, Any]]] = [
    ("truncated_gradient", {"gravity": 0.01, "l2": 0.1}),
    ("truncated_gradient", {"gravity": 0.01, "average": True}),
    ("averaged_sgd", {}),
    ("averaged_sgd", {"center": True}),
    ("ftrl", {"l1": 0.1}),
]


def stream() -> Stream:
    X = RNG.normal(size=(50, 8)) * (RNG.random((50, 8)) < 0.5)
    return Stream(X, RNG.choice([-1.0, 1.0], 50), None, [np.arange(50)])


def test_reading_while_another_thread_learns() -> None:
    """The hash table grows and moves while other threads read it."""
    model, stop = FTRLClassifier(store="hashed"), threading.Event()
    width = 200_000
    keys = RNG.integers(0, width, 4000 * 20)
    X = sp.csr_matrix((np.ones(4000 * 20), keys, np.arange(0, 80_001, 20)), shape=(4000, width))
    y = np.arange(4000) % 2
    model.partial_fit(X[:10], y[:10], classes=[0, 1])
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                assert np.isfinite(model.decision_function(X[:200])).all()
                assert model.model_.nnz >= 0
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for start in range(10, 4000, 190):
        model.partial_fit(X[start : start + 190], y[start : start + 190])
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures


@pytest.mark.parametrize(("rule", "params"), CASES)
def test_damaged_states_are_refused(rule: str, params: dict[str, Any]) -> None:
    """A state that is cut short, too long or flipped is an error, and the learner is unchanged."""
    data = stream()
    state = data.learn(learner(rule, 8, **params)).state()
    other = data.learn(learner(rule, 8, eta0=0.3, alpha=0.7, **params))
    before = other.state()
    for cut in range(0, len(state), 7):
        with pytest.raises(ValueError, match="state"):
            other.restore(state[:cut])
        assert other.state() == before
    with pytest.raises(ValueError, match="left over"):
        other.restore(state + b"x")
    assert other.state() == before
    for position in range(0, len(state), 5):
        flipped = bytearray(state)
        flipped[position] ^= 0xFF
        fresh = learner(rule, 8, **params)
        try:
            fresh.restore(bytes(flipped))
            fresh.predict(data.batch())
        except (ValueError, MemoryError, _core.DivergenceError):
            pass  # refused, or an error when it is used; never a crash


@pytest.mark.parametrize(("rule", "params"), CASES)
def test_states_of_other_learners_are_refused(rule: str, params: dict[str, Any]) -> None:
    state = stream().learn(learner(rule, 8, **params)).state()
    for other, others in CASES:
        if (other, others) != (rule, params):
            with pytest.raises(ValueError, match="state"):
                learner(other, 8, **others).restore(state)
    with pytest.raises(ValueError, match="number type"):
        learner(rule, 8, dtype="float32", **params).restore(state)


def test_a_refused_row_changes_nothing() -> None:
    """It does not change the norms of relative rates either."""
    data = stream()
    clean = learner("truncated_gradient", 8, relative=True, eta0=0.5, dtype="float32")
    data.learn(clean)
    tried = learner("truncated_gradient", 8, relative=True, eta0=0.5, dtype="float32")
    batch = data.batch()
    tried.learn(batch, None, 0, 20)
    for bad in (np.nan, 1e30):
        row = _core.dense_batch(np.full((1, 8), bad), np.ones(1))
        with pytest.raises((_core.DataError, _core.DivergenceError)):
            tried.learn(row)
    tried.learn(batch, None, 20, 50)
    np.testing.assert_array_equal(dense_weights(tried, 8), dense_weights(clean, 8))


def test_divergence_of_the_intercept_is_an_error() -> None:
    """In rows without features, only the intercept can diverge."""
    model = TruncatedGradientRegressor(eta0=3.0, decay=1.0, passes=20, gravity=0.0)
    with pytest.raises(_core.DivergenceError, match="eta0"):
        model.fit(np.zeros((1024, 1)), np.ones(1024))


def test_a_gradient_too_large_for_a_float_is_divergence() -> None:
    """This holds even with a stored zero, where inf * 0 would be NaN."""
    X = sp.csr_matrix(([0.0], [0], [0, 1]), shape=(1, 2))
    with pytest.raises(_core.DivergenceError):
        TruncatedGradientRegressor(eta0=1.0, passes=1).fit(X, [1e39])


def test_a_mean_needs_a_number_of_columns() -> None:
    batch = _core.sparse_batch(np.array([0, 1]), np.array([100_000]), np.array([1.0]), 0)
    with pytest.raises(ValueError, match="columns"):
        _core.mean_row(batch)
    with pytest.raises(ValueError, match="columns"):
        _core.sparse_batch(np.array([0, 1]), np.array([0]), np.array([1.0]), -1)
