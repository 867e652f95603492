"""The oracle of truncated gradient has the properties of the theory (P-05, P-07).

The core is not used here. If these tests pass, a difference between the core and an oracle is an
error of the core.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from oracles import losses
from oracles.averaged import averaged
from oracles.forward_backward import forward_backward
from oracles.ftrl import ftrl
from oracles.operators import T1, soft
from oracles.result import Matrix, Result, Vector
from oracles.truncated_gradient import truncated_gradient
from support.oracle_cases import (
    BOUNDED,
    INF,
    MARGIN,
    assert_same,
    orders,
    problem,
)

# Truncated gradient, rounding, sub-gradient


def test_three_steps_by_hand() -> None:
    """Squared loss, eta = 1/2, K = 2, gravity = 1/8 (a = 1/8), l2 = 1 (D = 2)."""
    X = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([1.0, 3.0, 0.0])
    common: dict[str, Any] = dict(loss="squared", eta0=0.5, period=2, gravity=0.125, l2=1.0)
    common.update(fit_intercept=True, average=True)
    # Step 1: p = 0, g = -1, w = (1/2, 1), b = 1/2.
    # Step 2: p = 3/2, g = -3/2, u = (0, 3/4), b = 5/4; an event, w + u = (1/2, 7/4).
    # Step 3: p = w_0 + 5/4 = g, u = (-g/2, 0), b = 5/4 - g/2.
    expected = {
        ("truncate", INF): (0.1875, 0.8125),  # (3/8, 13/8) / 2
        ("truncate", 1.0): (0.1875, 0.875),  # (3/8, 14/8) / 2: 7/4 is above theta
        ("round", 1.0): (0.0, 0.875),  # (0, 7/4) / 2
        ("subgradient", INF): (0.1875, 1.1875),  # (3/8, 7/8) / 2 + u
    }
    for (shrink, theta), (first, second) in expected.items():
        run = truncated_gradient(X, y, [[0, 1, 2]], shrink=shrink, ceiling=theta, **common)
        g = first + 1.25
        assert run.predictions == [0, 1.5, g]
        assert run.losses == [0.5, 1.125, 0.5 * g * g]
        np.testing.assert_array_equal(run.weights, [first - g / 2, second])
        assert run.intercept == 1.25 - g / 2
        assert run.average_weights is not None
        np.testing.assert_allclose(
            run.average_weights, [(0.5 + 2 * first - g / 2) / 3, (1 + 2 * second) / 3], rtol=1e-15
        )
        assert run.average_intercept == pytest.approx((0.5 + 1.25 + 1.25 - g / 2) / 3, rel=1e-15)
        assert run.steps == 3


def test_clipped_square_by_hand() -> None:
    """c_x = 1/2 scales the prediction and the weight gradient, not the bias."""
    X = np.array([[1.0, 1.0, 1.0, 1.0, 0.0]])
    run = truncated_gradient(
        X, np.array([1.0]), [[0, 0]], loss="clipped_square", eta0=0.125, fit_intercept=True
    )
    # Step 1: p = 0, g = -2, w_j = 1/8, b = 1/4. Step 2: p = 1/2 * 4/8 + 1/4 = 1/2, g = -1.
    assert run.predictions == [0, 0.5]
    np.testing.assert_array_equal(run.weights, [0.1875] * 4 + [0])
    assert run.intercept == 0.375


@pytest.mark.parametrize("name", losses.NAMES)
def test_without_gravity_it_equals_sgd(name: str) -> None:
    """R-6.2, with the rate decaying over steps and passes."""
    X, y = problem(name, 1)
    order = orders(len(X), 2, 1)
    settings_: dict[str, Any] = dict(loss=name, eta0=0.1, schedule="sqrt", decay=0.5)
    run = truncated_gradient(X, y, order, period=3, **settings_)
    w = np.zeros(X.shape[1])
    for i, row in enumerate(np.concatenate(order), start=1):
        eta = 0.1 / math.sqrt(i) * (0.5 if i > len(X) else 1.0)
        x = X[row] * losses.row_scale(name, X[row])
        w -= eta * losses.derivative(name, float(w @ x), y[row]) * x
    np.testing.assert_allclose(run.weights, w, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in losses.NAMES if name != "clipped_square"])
def test_bias_equals_the_weight_of_a_constant_column(name: str) -> None:
    """This holds without shrinkage, and not for clipped_square, which scales the column."""
    X, y = problem(name, 2)
    wide = np.column_stack([X, np.ones(len(X))])
    order = orders(len(X), 2, 2)
    rules: list[tuple[Any, dict[str, float]]] = [
        (truncated_gradient, {"eta0": 0.05}),
        (forward_backward, {"eta0": 0.05}),
        (ftrl, {"alpha": 0.1}),
        (averaged, {"alpha": 5.0}),
    ]
    for learn, options in rules:
        with_bias: Result = learn(X, y, order, loss=name, fit_intercept=True, **options)
        without: Result = learn(wide, y, order, loss=name, fit_intercept=False, **options)
        np.testing.assert_allclose(with_bias.weights, without.weights[:-1], atol=1e-11)
        assert with_bias.intercept == pytest.approx(without.weights[-1], abs=1e-11)
        np.testing.assert_allclose(with_bias.predictions, without.predictions, atol=1e-11)
        assert without.intercept == 0


@pytest.mark.parametrize("name", ["hinge", "logistic", "square"])
def test_a_weight_up_to_one_scales_the_loss(name: str) -> None:
    """If all rows have weight s, it equals rate s*eta with gravity/s, l2/s, or lambda/s."""
    X, y = problem(name, 3)
    order = orders(len(X), 2, 3)
    s = np.full(len(X), 0.5)
    one = truncated_gradient(
        X, y, order, loss=name, eta0=0.1, gravity=0.1, l2=0.05, period=3, sample_weight=s
    )
    two = truncated_gradient(X, y, order, loss=name, eta0=0.05, gravity=0.2, l2=0.1, period=3)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-12)
    np.testing.assert_allclose(one.losses, 0.5 * np.array(two.losses), atol=1e-12)
    three = averaged(X, y, order, loss=name, alpha=5.0, center=True, sample_weight=s)
    four = averaged(X, y, order, loss=name, alpha=10.0, center=True)
    np.testing.assert_allclose(three.weights, four.weights, atol=1e-12)
    zero = ftrl(X, y, order, loss=name, sample_weight=0 * s)
    assert not np.any(zero.weights)


@pytest.mark.parametrize("learn", [truncated_gradient, forward_backward, ftrl, averaged])
def test_float32(learn: Any) -> None:
    """The state is in float32, and close to that in float64."""
    X, y = problem("logistic", 4)
    order = orders(len(X), 2, 4)
    options: dict[str, Any] = {"loss": "logistic", "fit_intercept": True}
    if learn is averaged:
        options.update(alpha=1.0, center=True)
    if learn is truncated_gradient:
        options.update(gravity=0.01, ceiling=0.5, l2=0.1, average=True)
    if learn in (forward_backward, ftrl):
        options.update(l1=0.01, l2=0.1)
    single = learn(X, y, order, dtype=np.float32, **options)
    double = learn(X, y, order, dtype=np.float64, **options)
    assert single.weights.dtype == np.float32
    assert double.weights.dtype == np.float64
    assert isinstance(single.intercept, float)
    assert all(type(p) is float for p in single.predictions)
    if single.average_weights is not None:
        assert single.average_weights.dtype == np.float32
    np.testing.assert_allclose(single.weights, double.weights, atol=1e-5)
    np.testing.assert_allclose(single.predictions, double.predictions, atol=1e-5)


@pytest.mark.parametrize("period", [1, 4])
def test_average_equals_the_mean_of_the_iterates(period: int) -> None:
    X, y = problem("hinge", 5, n=20)
    order = orders(20, 1, 5)[0]
    options: dict[str, Any] = dict(loss="hinge", gravity=0.05, period=period, fit_intercept=True)
    prefixes = [truncated_gradient(X, y, [order[:t]], **options) for t in range(1, 21)]
    run = truncated_gradient(X, y, [order], average=True, **options)
    assert run.average_weights is not None
    np.testing.assert_allclose(
        run.average_weights, np.mean([r.weights for r in prefixes], axis=0), atol=1e-14
    )
    assert run.average_intercept == pytest.approx(np.mean([r.intercept for r in prefixes]))
    assert prefixes[-1].average_weights is None


@pytest.mark.parametrize("period", [1, 3, 10])
@pytest.mark.parametrize("name", ["hinge", "logistic", "square"])
def test_strong_gravity_equals_rounding(name: str, period: int) -> None:
    """R-2.5, A-08: with eta K g >= theta, a whole run equals rounding."""
    X, y = problem(name, 6)
    order = orders(len(X), 3, 6)
    options: dict[str, Any] = dict(loss=name, eta0=0.05, period=period, ceiling=0.06, l2=0.1)
    truncated = truncated_gradient(X, y, order, gravity=0.06 / (0.05 * period) + 1, **options)
    rounded = truncated_gradient(X, y, order, shrink="round", **options)
    assert_same(truncated, rounded)


def test_one_parameter_special_case() -> None:
    """R-6.2, theta = g: if eta K >= 1 it equals rounding; else weights above g never shrink."""
    X, y = problem("square", 7)
    order = orders(len(X), 3, 7)
    g = 0.08
    options: dict[str, Any] = dict(loss="square", eta0=0.02, ceiling=g)
    strong = truncated_gradient(X, y, order, gravity=g, period=60, **options)
    assert_same(strong, truncated_gradient(X, y, order, shrink="round", period=60, **options))

    weak: dict[str, Any] = dict(gravity=g, period=20, **options)
    rows = np.concatenate(order)[:20]
    after = truncated_gradient(X, y, [rows], **weak).weights
    plain = truncated_gradient(X, y, [rows], loss="square", eta0=0.02).weights
    large = np.abs(plain) > g
    assert 0 < np.count_nonzero(large) < len(plain)
    np.testing.assert_array_equal(after[large], plain[large])
    np.testing.assert_array_equal(after[~large], soft(plain[~large], 0.02 * 20 * g))


@given(k=st.integers(-40, 40), n=st.integers(0, 30))
@settings(max_examples=3 * settings.default.max_examples)
def test_idle_steps(k: int, n: int) -> None:
    """After n empty rows, R-5.3 (sub-gradient) and R-2.4 (truncation) hold exactly."""
    start, a = k / 16, 1 / 8
    X, y = np.array([[1.0], [0.0]]), np.array([start, 0.0])
    rows = [0] + [1] * n
    # Step 1 changes w from 0 to the label; the sub-gradient does not shrink it, sgn(0) = 0.
    options: dict[str, Any] = dict(loss="squared", eta0=1.0, gravity=a)
    w = truncated_gradient(X, y, [rows], shrink="subgradient", **options).weights[0]
    m = math.floor(abs(start) / a)
    r = abs(start) - m * a
    sign = (start > 0) - (start < 0)
    if n <= m:
        expected = sign * (abs(start) - n * a)
    elif r == 0:
        expected = 0.0
    else:
        expected = sign * (r if (n - m) % 2 == 0 else r - a)
    assert w == expected
    for theta in (INF, 1.5):
        w = truncated_gradient(X, y, [rows], ceiling=theta, **options).weights[0]
        assert w == T1(np.array([start]), (n + 1) * a, theta)[0]


# Theory of truncated gradient (P-05)


def row_constant(name: str, X: Matrix) -> float:
    return max(float(np.linalg.norm(x)) * losses.row_scale(name, x) for x in X)


def check_regret(
    name: str, X: Matrix, y: Vector, eta: float, gravity: float, period: int, theta: float
) -> None:
    """Check Lemma 1.1 at each step and Theorem 1.1 on each prefix, for several wbar."""
    options: dict[str, Any] = dict(
        loss=name, eta0=eta, gravity=gravity, period=period, ceiling=theta
    )
    T, d = X.shape
    A, B = losses.CONSTANTS[name](row_constant(name, X))
    rows = np.arange(T)
    w = [truncated_gradient(X, y, [rows[:t]], **options).weights for t in range(T + 1)]
    rng = np.random.default_rng(0)
    candidates: list[Vector] = [
        np.zeros(d),
        w[-1],
        rng.normal(size=(d,)),
        0.1 * rng.normal(size=(d,)),
        9 * w[-1],
    ]
    for wbar in candidates:
        left_sum = 0.0
        right_sum = float(wbar @ wbar) / (2 * eta)
        for i in range(1, T + 1):
            x, old, new = X[i - 1], w[i - 1], w[i]
            scaled = losses.row_scale(name, x) * x
            g = period * gravity if i % period == 0 else 0.0
            small = np.abs(new) <= theta
            loss_old = losses.value(name, float(old @ scaled), y[i - 1])
            loss_bar = losses.value(name, float(wbar @ scaled), y[i - 1])
            left = (1 - 0.5 * A * eta) * loss_old + g * np.abs(new[small]).sum()
            right = loss_bar + g * np.abs(wbar[small]).sum() + eta * B / 2
            before = float((wbar - old) @ (wbar - old))
            after = float((wbar - new) @ (wbar - new))
            slack = 1e-9 * (1 + abs(left) + abs(right) + (before + after) / eta)
            assert left <= right + (before - after) / (2 * eta) + slack
            left_sum += left
            right_sum += right
            assert left_sum <= right_sum + 1e-9 * (1 + abs(left_sum) + abs(right_sum))


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize(
    ("gravity", "period", "theta"),
    [(0.0, 1, INF), (0.1, 1, INF), (0.05, 3, INF), (0.3, 1, 0.1), (0.2, 5, 0.3), (5.0, 2, 0.2)],
)
def test_regret_on_random_streams(name: str, gravity: float, period: int, theta: float) -> None:
    X, y = problem(name, 8, n=25, d=5)
    check_regret(name, X, y, 0.05, gravity, period, theta)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize(("period", "theta"), [(1, INF), (1, 0.2), (4, 0.2)])
def test_regret_on_adversarial_streams(name: str, period: int, theta: float) -> None:
    """All rows have one direction; the adversary chooses the label with the largest loss."""
    rng = np.random.default_rng(9)
    X = np.where(rng.random((25, 4)) < 0.5, 1.0, 0.0)
    X[:, 0] = 1.0
    y = np.zeros(25)
    eta, gravity = 0.05, 0.2
    for t in range(25):
        rows = np.arange(t)
        run = truncated_gradient(
            X, y, [rows], loss=name, eta0=eta, gravity=gravity, period=period, ceiling=theta
        )
        p = losses.row_scale(name, X[t]) * float(run.weights @ X[t])
        if name == "clipped_square":
            y[t] = 0.0 if p > 0.5 else 1.0
        elif name in MARGIN:
            y[t] = -1.0 if p > 0 else 1.0
        else:
            y[t] = -2.0 if p > 0 else 2.0
    check_regret(name, X, y, eta, gravity, period, theta)


def test_objective_approaches_the_lasso() -> None:
    """R-7.5, P-07: with eta T fixed, the gap is proportional to eta (noise of the gradient)."""
    rng = np.random.default_rng(10)
    n, d, g = 50, 10, 0.3
    X = rng.normal(size=(n, d))
    y = X[:, :3] @ np.array([1.0, -2.0, 0.5]) + 0.3 * rng.normal(size=n)

    def objective(w: Vector) -> float:
        return float(np.mean((X @ w - y) ** 2) + g * np.abs(w).sum())

    lasso = Lasso(alpha=g / 2, fit_intercept=False, tol=1e-12).fit(X, y).coef_
    for eta, passes in ((0.02, 10), (0.002, 100), (0.0005, 400)):
        run = truncated_gradient(
            X, y, orders(n, passes, 10), loss="square", eta0=eta, gravity=g, average=True
        )
        assert -1e-9 <= objective(run.weights) - objective(lasso) <= 5 * eta
        assert run.average_weights is not None
        assert -1e-9 <= objective(run.average_weights) - objective(lasso) <= 0.1
    np.testing.assert_allclose(run.weights, lasso, atol=5e-3)


def test_without_noise_the_lasso_is_reached() -> None:
    """With one row the steps are proximal gradient steps; they converge to the lasso."""
    X, y, g = np.array([[0.5, -2.0, 1.0]]), np.array([3.0]), 0.4
    run = truncated_gradient(X, y, [[0] * 2000], loss="square", eta0=0.05, gravity=g)
    # Only the weight of the largest entry is nonzero: 2 (p - y) x = g, p = -2 w, so p = y - g/4.
    np.testing.assert_allclose(run.weights, [0.0, -(3.0 - g / 4) / 2, 0.0], atol=1e-12)
    assert np.count_nonzero(run.weights) == 1
