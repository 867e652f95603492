"""Newton steps of coordinate descent: the gap is a bound, and the optimum is reached (R-12.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from oracles.coordinate_descent import CURVATURE, objective
from oracles.duality_gap import duality_gap
from oracles.losses import MARGIN
from thresher import CoordinateDescentClassifier, CoordinateDescentRegressor, _core

LOSSES = tuple(CURVATURE)


def rows(
    loss: str, seed: int, shape: tuple[int, int], density: float, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return sparse rows with columns of different sizes, and labels."""
    rng = np.random.default_rng(seed)
    X = (
        rng.normal(size=shape)
        * (rng.random(shape) < density)
        * scale ** rng.uniform(-1, 1, shape[1])
    )
    y = X @ (rng.normal(size=shape[1]) * (rng.random(shape[1]) < 0.3)) + rng.normal(size=shape[0])
    if loss in MARGIN:
        y = np.where(y > 0.3, 1.0, -1.0)
        y[:2] = 1.0, -1.0
    return X, y


def made(
    X: np.ndarray, y: np.ndarray, weights: Any, loss: str, l1: float, value: Any = np.float64
) -> _core.CoordinateDescent:
    csc = sp.csc_matrix(X)
    columns = _core.sparse_batch(csc.indptr, csc.indices, csc.data.astype(value), X.shape[0])
    return _core.CoordinateDescent(columns, y, weights, loss, 0.1, l1, "coordinate")


def solved(core: _core.CoordinateDescent, intercept: bool, share: float, most: int = 300) -> float:
    """Improve until the gap is a share of the first objective; return this objective."""
    start = core.begin(intercept)
    for _ in range(most):
        if core.gap() <= share * start:
            break
        core.improve(share * start)
    return start


@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 2**16),
    shape=st.tuples(st.integers(4, 40), st.integers(1, 60)),
    density=st.sampled_from([0.1, 0.5, 1.0]),
    scale=st.sampled_from([1.0, 100.0]),
    share=st.sampled_from([0.5, 0.1, 0.01]),
    intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_the_gap_is_a_bound(
    loss: str, seed: int, shape: tuple[int, int], density: float, scale: float, share: float,
    intercept: bool, weighted: bool,
) -> None:  # fmt: skip
    X, y = rows(loss, seed, shape, density, scale)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, len(y)).astype(float) if weighted else None
    if weights is not None:
        weights[:2] = 1.0
    largest = made(X, y, weights, loss, 1.0)
    largest.begin(intercept)
    l1 = share * max(largest.largest_gradient(), 1e-3)
    core = made(X, y, weights, loss, l1)
    value, gap = core.begin(intercept), core.gap()
    best = made(X, y, weights, loss, l1)
    solved(best, intercept, 1e-10)
    s = np.ones(len(y)) if weights is None else weights
    for _ in range(6):
        before, w, b = value, core.weights(), core.intercept()
        assert value == pytest.approx(
            objective(X, y, w, b, loss=loss, l1=l1, sample_weight=s), rel=1e-10
        )
        # the minimum is between the value minus the gap, and any value
        assert value - gap <= best.value() + 1e-11 * max(value, 1.0)
        of_oracle = duality_gap(X, y, w, b, loss=loss, l1=l1, sample_weight=s, intercept=intercept)
        assert gap <= of_oracle + 1e-10 * max(value, 1.0)  # the best dual point so far
        assert core.nonzeros() == np.count_nonzero(w)
        gap = core.improve(0.0)
        value = core.value()
        assert value <= before + 1e-14 * abs(before)  # P-13
    assert best.gap() <= 1e-6 * max(best.value(), 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_random_coordinates_find_the_same_weights(loss: str, intercept: bool) -> None:
    X, y = rows(loss, 5, (120, 30), 0.3)
    core = made(X, y, None, loss, 0.02)
    solved(core, intercept, 1e-12)
    other = made(X, y, None, loss, 0.02)
    rng = np.random.default_rng(0)
    for _ in range(4000):
        other.steps(rng.integers(-1 if intercept else 0, 30, 40))
    assert core.value() == pytest.approx(other.objective(), rel=1e-9)
    np.testing.assert_allclose(core.weights(), other.weights(), atol=1e-4)
    np.testing.assert_array_equal(core.weights() != 0, np.abs(other.weights()) > 1e-6)


def test_liblinear_finds_the_same_weights() -> None:
    X, y = rows("logistic", 8, (300, 80), 0.2)
    l1 = 0.01
    other = LogisticRegression(
        l1_ratio=1, C=1 / (l1 * 300), solver="liblinear", fit_intercept=False, tol=1e-7,
        max_iter=10000, random_state=0,
    ).fit(X, y)  # fmt: skip
    e = CoordinateDescentClassifier(l1=l1, fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(e.coef_, other.coef_, atol=1e-5)


@pytest.mark.parametrize(("rows_", "columns"), [(400, 20), (3000, 12)])
def test_a_dense_hessian_finds_the_same_weights(rows_: int, columns: int) -> None:
    """Long columns: the models of a Newton step are solved with a dense matrix."""
    X, y = rows("logistic", 9, (rows_, columns), 0.9)
    X = np.hstack(
        [X, X[:, :4] + 1e-3 * np.random.default_rng(0).normal(size=(rows_, 4)), X * 0 + 1]
    )
    for intercept in (False, True):
        core = made(X, y, None, "logistic", 1e-3)
        start = solved(core, intercept, 1e-11)
        assert core.gap() <= 1e-11 * start
        assert core.violation(intercept) <= 1e-5


def test_rows_far_on_the_wrong_side() -> None:
    """Huge values: the Newton model is almost flat there, and the objective must still fall."""
    rng = np.random.default_rng(3)
    X = sp.random(300, 200, 0.1, random_state=3).toarray()
    X[rng.integers(0, 300, 20), rng.integers(0, 200, 20)] = 40000.0
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    for intercept in (False, True):
        core = made(X, y, None, "logistic", 1e-4)
        start = solved(core, intercept, 1e-4)
        assert core.gap() <= 1e-4 * start


@pytest.mark.parametrize("value", [np.float32, np.float64])
def test_a_restored_state_continues_with_the_same_bits(value: Any) -> None:
    X, y = rows("logistic", 4, (80, 400), 0.2)
    whole, first = (made(X, y, None, "logistic", 0.005, value) for _ in range(2))
    whole.begin(True)
    first.begin(True)
    for _ in range(2):
        assert whole.improve(1e-9) == first.improve(1e-9)
    second = made(X, y, None, "logistic", 0.005, value)
    second.restore_newton(first.newton_state(), True)
    assert (second.gap(), second.value()) == (whole.gap(), whole.value())
    for _ in range(3):
        assert whole.improve(1e-9) == second.improve(1e-9)
    assert whole.weights().tobytes() == second.weights().tobytes()
    assert whole.newton_state() == second.newton_state()
    other = made(X[:70], y[:70], None, "logistic", 0.005, value)
    with pytest.raises(ValueError, match="of other rows"):
        other.restore_newton(first.newton_state(), True)


def test_fits_repeat_for_any_number_of_threads() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(200, 50)), rng.integers(0, 5, 200)
    fits = [CoordinateDescentClassifier(l1=0.01, n_jobs=n).fit(X, y) for n in (None, 1, 2, -1)]
    for other in fits[1:]:
        assert other.coef_.tobytes() == fits[0].coef_.tobytes()
        assert other.duality_gap_.tobytes() == fits[0].duality_gap_.tobytes()


def test_the_gap_is_reported() -> None:
    X, y = rows("logistic", 1, (150, 40), 0.4)
    e = CoordinateDescentClassifier(l1=0.01).fit(X, y)
    gap = duality_gap(X, y, e.coef_[0], e.intercept_[0], loss="logistic", l1=0.01, intercept=True)
    assert e.duality_gap_[0] <= gap + 1e-12
    assert e.duality_gap_[0] <= 1e-4 * np.log(2)
    assert e.history_[-1].duality_gap == e.duality_gap_[0]
    assert e.model_.certificates[0].value == e.duality_gap_[0]
    assert str(e.model_.certificates[0]).startswith("optimum: the objective 0.")
    many = CoordinateDescentClassifier(l1=0.01).fit(X, np.arange(150) % 3)
    assert [c.name for c in many.model_.certificates] == [f"optimum, class {k}" for k in range(3)]
    with pytest.warns(ConvergenceWarning, match="after 1 scans the duality gap is .*more passes"):
        CoordinateDescentClassifier(l1=1e-4, passes=1, tol=1e-12).fit(X, y)
    e.set_params(step="coordinate").fit(X, y)
    assert not hasattr(e, "duality_gap_")
    assert e.model_.certificates == ()


def test_the_gap_is_in_the_units_of_the_targets() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 20))
    y = 1000 + 50 * (X[:, 0] + rng.normal(size=100))
    e = CoordinateDescentRegressor().fit(X, y)
    assert e.duality_gap_[0] <= 1e-4 * 0.5 * np.var(y) * 1.01
    e = CoordinateDescentRegressor(l1=1.0).fit(X, y)
    gap = duality_gap(X, y, e.coef_[0], e.intercept_[0], loss="squared", l1=1.0, intercept=True)
    assert e.duality_gap_[0] <= gap + 1e-9


def test_without_penalty_coordinates_are_random() -> None:
    X, y = rows("squared", 1, (60, 5), 1.0)
    e = CoordinateDescentRegressor(l1=0.0, tol=1e-6, random_state=0).fit(X, y)
    assert not hasattr(e, "duality_gap_")
    with pytest.raises(ValueError, match="needs an l1 penalty"):
        made(X, y, None, "squared", 0.0).begin(True)
