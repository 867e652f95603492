"""Coordinate descent equals the oracle, never raises the objective, and is optimal (P-13)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression

import thresher
from oracles.coordinate_descent import CURVATURE, coordinate_descent, objective
from oracles.losses import MARGIN
from support.streams import Stream, streams
from thresher import (
    CoordinateDescentClassifier,
    CoordinateDescentRegressor,
    DataError,
    DivergenceError,
    ParameterError,
    _core,
)

LOSSES = tuple(CURVATURE)


def solver(
    stream: Stream, loss: str, l1: float, step: str = "coordinate", **kinds: Any
) -> _core.CoordinateDescent:
    X = sp.csc_matrix(stream.X)
    starts, keys = (a.astype(kinds.get("index", np.int32)) for a in (X.indptr, X.indices))
    columns = _core.sparse_batch(
        starts, keys, X.data.astype(kinds.get("value", np.float64)), X.shape[0]
    )
    return _core.CoordinateDescent(columns, stream.y, stream.weight, loss, 0.1, l1, step)


@given(
    data=st.data(),
    loss=st.sampled_from(LOSSES),
    l1=st.sampled_from([0.0, 0.0213, 0.117]),
    step=st.sampled_from(["coordinate", "global"]),
    index=st.sampled_from([np.int32, np.int64]),
    value=st.sampled_from([np.float32, np.float64]),
)
def test_equals_the_oracle(
    data: st.DataObject, loss: str, l1: float, step: str, index: Any, value: Any
) -> None:
    stream = data.draw(streams(loss))
    if stream.weight is not None and stream.weight.sum() == 0:
        return
    if step == "global":
        stream.X /= max(1.0, np.abs(stream.X).max())
        stream.X = stream.X.astype(np.float32).astype(np.float64)
    draws = data.draw(st.lists(st.integers(-1, stream.width - 1), max_size=60))
    oracle = coordinate_descent(
        stream.X, stream.y, draws, loss=loss, l1=l1, step=step, sample_weight=stream.weight
    )
    core = solver(stream, loss, l1, step, index=index, value=value)
    last = core.objective()
    for n, draw in enumerate(draws):
        core.steps(np.array([draw]))
        now = core.objective()
        assert now == pytest.approx(oracle.objectives[n], rel=1e-10, abs=1e-12)
        assert now <= last + 1e-12 * max(1.0, abs(last))  # P-13
        last = now
    scale = max(1.0, np.abs(oracle.weights).max(initial=0.0))
    np.testing.assert_allclose(core.weights(), oracle.weights, rtol=0, atol=1e-10 * scale)
    np.testing.assert_array_equal(core.weights() != 0, np.abs(oracle.weights) > 1e-13 * scale)
    assert core.intercept() == pytest.approx(oracle.intercept, abs=1e-10 * scale)
    # values updated at each step equal those recomputed from the weights
    kept = core.predictions()
    np.testing.assert_allclose(
        kept, stream.X @ core.weights() + core.intercept(), rtol=0, atol=1e-10 * scale
    )
    core.refresh()
    np.testing.assert_allclose(core.predictions(), kept, rtol=0, atol=1e-11 * scale)
    together = solver(stream, loss, l1, step, index=index, value=value)
    together.steps(np.array(draws, np.int64))
    core = solver(stream, loss, l1, step, index=index, value=value)
    for draw in draws:
        core.steps(np.array([draw]))
    np.testing.assert_array_equal(together.weights(), core.weights())


def gradient(e: Any, X: Any, y: Any, loss: str) -> np.ndarray:
    z = X @ e.coef_[0] + e.intercept_[0]
    slopes = _core.loss_values(loss, 0.1, 0.5, z, np.asarray(y, float))[1]
    return X.T @ slopes / len(y)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimality_conditions(loss: str) -> None:
    """P-13: |g_j| <= l1 where w_j = 0, g_j = -l1 sgn(w_j) elsewhere, up to violation_."""
    rng = np.random.default_rng(3)
    X = sp.random(300, 40, 0.3, random_state=3, format="csr") * 3
    y = X[:, 0].toarray().ravel() - X[:, 1].toarray().ravel() + 0.3 * rng.normal(size=300)
    cls = CoordinateDescentRegressor
    if loss in MARGIN:
        cls, y = CoordinateDescentClassifier, np.where(y > 0, 1.0, -1.0)
    e = cls(loss=loss, l1=0.01, tol=1e-9, passes=20000, random_state=0).fit(X, y)
    g, w = gradient(e, X, y, loss), e.coef_[0]
    assert 0 < e.model_.nnz < 40
    assert np.all(np.abs(g[w == 0]) <= 0.01 + 1e-8)
    np.testing.assert_allclose(g[w != 0], -0.01 * np.sign(w[w != 0]), atol=1e-8)
    worst = max(np.abs(g + 0.01 * np.sign(w))[w != 0].max(), (np.abs(g[w == 0]) - 0.01).max(), 0)
    assert e.violation_[0] >= worst - 1e-12
    losses = [record.loss for record in e.history_]
    assert np.all(np.diff(losses) <= 1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_lasso(fit_intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 60)) * rng.uniform(0.1, 10, 60)
    y = X[:, 0] - X[:, 5] + rng.normal(size=200) + 2
    other = Lasso(alpha=0.1, fit_intercept=fit_intercept, tol=1e-10, max_iter=100000).fit(X, y)
    e = CoordinateDescentRegressor(
        l1=0.1, fit_intercept=fit_intercept, tol=1e-9, passes=20000, random_state=0
    ).fit(X, y)
    values = [
        objective(X, y, m.coef_.ravel(), float(np.ravel(m.intercept_)[0]), loss="squared", l1=0.1)
        for m in (other, e)
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-9)
    np.testing.assert_allclose(e.coef_.ravel(), other.coef_, atol=1e-5)


@pytest.mark.parametrize(("solving", "fit_intercept"), [("liblinear", False), ("saga", True)])
def test_logistic_regression(solving: str, fit_intercept: bool) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 30)) * (rng.random((300, 30)) < 0.5)
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=300) > 0.5, 1.0, -1.0)
    l1 = 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the name of the penalty changed between versions
        other = LogisticRegression(
            penalty="l1", C=1 / (l1 * 300), solver=solving, fit_intercept=fit_intercept,
            tol=1e-10, max_iter=20000, random_state=0,
        ).fit(X, y)  # fmt: skip
    e = CoordinateDescentClassifier(
        l1=l1, fit_intercept=fit_intercept, tol=1e-8, passes=20000, random_state=0
    ).fit(sp.csc_matrix(X), y)
    values = [
        objective(X, y, m.coef_.ravel(), float(np.ravel(m.intercept_)[0]), loss="logistic", l1=l1)
        for m in (other, e)
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-6)
    assert values[1] <= values[0] + 1e-9


def test_a_row_of_weight_k_equals_k_copies() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 5)), rng.choice(["a", "b", "c"], 60)
    s = rng.integers(0, 4, 60).astype(float)
    params = {"l1": 0.01, "tol": 1e-10, "passes": 20000, "random_state": 0}
    weighted = CoordinateDescentClassifier(**params).fit(X, y, sample_weight=s)
    times = s.astype(int)
    copied = CoordinateDescentClassifier(**params).fit(X.repeat(times, 0), y.repeat(times))
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-7)
    with pytest.raises(ValueError, match="non-zero"):
        CoordinateDescentClassifier().fit(X, y, sample_weight=np.zeros(60))


def test_several_classes_are_solved_separately() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(90, 6)), np.repeat([0, 1, 2], 30)
    X[np.arange(90), y] += 2
    many = CoordinateDescentClassifier(l1=0.01, random_state=5).fit(X, y)
    for k in range(3):
        one = CoordinateDescentClassifier(l1=0.01, random_state=5).fit(X, y == k)
        np.testing.assert_array_equal(many.coef_[k], one.coef_[0])
    assert many.score(X, y) > 0.85
    assert many.violation_.shape == (3,)


def test_matrices_are_neither_copied_nor_changed() -> None:
    rng = np.random.default_rng(6)
    dense = rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.5)
    y = rng.normal(size=40)
    expected = CoordinateDescentRegressor(l1=0.05, random_state=0).fit(dense, y).coef_
    single = CoordinateDescentRegressor(l1=0.05, random_state=0).fit(dense.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, expected, atol=1e-5)
    csc = sp.csc_matrix(dense)
    for X in (csc, sp.csr_matrix(dense), sp.csc_array(dense)):
        got = CoordinateDescentRegressor(l1=0.05, random_state=0).fit(X, y)
        np.testing.assert_array_equal(got.coef_, expected)
        np.testing.assert_array_equal(got.predict(X), got.predict(dense))
    twice = sp.csc_matrix(
        (np.r_[csc.data, csc.data], np.r_[csc.indices, csc.indices], csc.indptr), csc.shape
    )
    twice.indices = np.concatenate(
        [np.tile(csc.indices[a:b], 2) for a, b in zip(csc.indptr, csc.indptr[1:], strict=False)]
    )
    twice.data = np.concatenate(
        [np.tile(csc.data[a:b], 2) / 2 for a, b in zip(csc.indptr, csc.indptr[1:], strict=False)]
    )
    twice.indptr = csc.indptr * 2
    twice.has_canonical_format = False
    before = twice.data.copy()
    got = CoordinateDescentRegressor(l1=0.05, random_state=0).fit(twice, y)
    np.testing.assert_allclose(got.coef_, expected, atol=1e-12)
    np.testing.assert_array_equal(twice.data, before)


def test_stopping_and_history(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(80, 9)), rng.normal(size=80)
    seen: list[Any] = []
    e = CoordinateDescentRegressor(
        l1=0.01,
        step="coordinate",
        random_state=0,
        callback=lambda record: seen.append(record) or len(seen) == 3,
    ).fit(X, y, eval_set=(X[:20], y[:20]))
    assert e.n_iter_ == 3
    assert e.history_ == seen
    assert [record.examples for record in seen] == [80, 160, 240]
    z = X[:20] @ e.coef_[0] + e.intercept_[0]
    assert seen[-1].valid_loss == pytest.approx(0.5 * np.mean((z - y[:20]) ** 2))
    assert seen[-1].loss == pytest.approx(
        objective(X, y, e.coef_[0], e.intercept_[0], loss="squared", l1=0.01)
    )
    with pytest.warns(ConvergenceWarning, match="after 1 scans.*violated by.*more passes"):
        CoordinateDescentRegressor(passes=1, step="coordinate", tol=1e-12).fit(X, y)
    assert not hasattr(e, "partial_fit")
    e.model_.save(tmp_path / "a.thresher")
    np.testing.assert_array_equal(thresher.load(tmp_path / "a.thresher").predict(X), e.predict(X))


def test_a_global_step_that_is_too_long_is_an_error() -> None:
    rng = np.random.default_rng(8)
    X, y = 3 * rng.normal(size=(50, 4)), rng.normal(size=50)
    with pytest.raises(DivergenceError, match=r"step='global'.*\[-1, 1\].*coordinate"):
        CoordinateDescentRegressor(step="global").fit(X, y)
    X /= np.abs(X).max()
    e = CoordinateDescentRegressor(step="global", l1=0.001, tol=1e-6, passes=20000).fit(X, y)
    other = CoordinateDescentRegressor(l1=0.001, tol=1e-6, passes=20000).fit(X, y)
    np.testing.assert_allclose(e.coef_, other.coef_, atol=1e-3)


def test_bad_arguments_are_refused() -> None:
    X, y = np.eye(6), np.arange(6.0)
    for bad in (np.nan, np.inf, 1e200):
        X[3, 2] = bad
        with pytest.raises(DataError, match="row 3: the value of feature 2 is"):
            CoordinateDescentRegressor().fit(X, y)
    with pytest.raises(ParameterError, match="loss must be one of"):
        CoordinateDescentRegressor(loss="absolute").fit(np.eye(6), y)
    columns = _core.sparse_batch(np.array([0, 1]), np.array([6]), np.ones(1), 6)
    with pytest.raises(ValueError, match="row number 6 is outside"):
        _core.CoordinateDescent(columns, y, None, "squared", 0.1, 0.0, "coordinate")
    for loss in ("poisson", "hinge", "clipped_square"):
        with pytest.raises(ValueError, match="curvature"):
            _core.CoordinateDescent(columns, y, None, loss, 0.1, 0.0, "coordinate")
    columns = _core.sparse_batch(np.array([0, 1]), np.array([5]), np.ones(1), 6)
    core = _core.CoordinateDescent(columns, y, None, "squared", 0.1, 0.0, "coordinate")
    for draw in (-2, 1):
        with pytest.raises(ValueError, match="a draw must be a feature"):
            core.steps(np.array([draw]))
