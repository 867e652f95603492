"""The oracles against themselves and against the mathematics (P-01, P-02, P-05, P-07, P-08, P-18).

Nothing native is run here. If these tests pass, a difference between the core and an oracle is a
fault of the core.
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
from oracles.operators import T0, T1, soft
from oracles.rates import rate
from oracles.result import Matrix, Result, Vector
from oracles.truncated_gradient import truncated_gradient

INF = math.inf
BOUNDED = sorted(losses.CONSTANTS)
SMOOTH = ("logistic", "squared_hinge", "squared", "square", "clipped_square", "huber", "poisson")
MARGIN = ("logistic", "hinge", "squared_hinge")

reals = st.floats(-4, 4, allow_nan=False)
fractions = st.floats(0, 1, allow_nan=False)


def label(name: str, v: float) -> float:
    """Turn any v in [-4, 4] into a label that the loss allows."""
    if name in MARGIN:
        return 1.0 if v > 0 else -1.0
    if name == "clipped_square":
        return abs(v) / 4
    if name == "poisson":
        return float(round(abs(v)))
    return v


def problem(name: str, seed: int, n: int = 40, d: int = 8) -> tuple[Matrix, Vector]:
    """Draw sparse rows (one of them empty) and labels that the loss allows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    X[n // 2] = 0
    noise = 0.5 * rng.normal(size=n)
    y = np.clip(X @ rng.normal(size=d) + noise, -4, 4)
    return X, np.array([label(name, v) for v in y])


def orders(n: int, passes: int, seed: int) -> list[Any]:
    """Draw one permutation of the n rows for each pass."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(n) for _ in range(passes)]


def assert_same(one: Result, other: Result, tolerance: float = 0.0) -> None:
    """Require equal models and equal predictions at every step."""
    np.testing.assert_allclose(one.weights, other.weights, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.intercept, other.intercept, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.predictions, other.predictions, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.losses, other.losses, rtol=tolerance, atol=tolerance)
    assert one.steps == other.steps


# Rates


def test_rates() -> None:
    assert rate("constant", 9, 0, 0.5) == 0.5
    assert rate("inverse", 4, 0, 2.0) == 0.5
    assert rate("sqrt", 4, 0, 3.0) == 1.5
    assert rate("power", 16, 0, 1.0, power=0.25) == 0.5
    assert rate("constant", 7, 3, 1.0, decay=0.5) == 0.125
    assert rate("inverse", 2, 1, 1.0, decay=0.5) == 0.25
    with pytest.raises(ValueError, match="schedule"):
        rate("none", 1, 0, 1.0)


# Losses (P-02)


@pytest.mark.parametrize("name", losses.NAMES)
@given(p=reals, q=reals, v=reals, epsilon=fractions, tau=fractions)
@settings(max_examples=60, deadline=None)
def test_derivative_supports_the_loss(
    name: str, p: float, q: float, v: float, epsilon: float, tau: float
) -> None:
    """L(q) >= L(p) + L'(p) (q - p): convexity, and a sub-gradient at every kink."""
    y = label(name, v)
    at_p = losses.value(name, p, y, epsilon, tau)
    at_q = losses.value(name, q, y, epsilon, tau)
    slope = losses.derivative(name, p, y, epsilon, tau)
    assert at_q >= at_p + slope * (q - p) - 1e-12 * (1 + abs(at_p) + abs(slope))


@pytest.mark.parametrize("name", losses.NAMES)
@given(p=reals, v=reals)
@settings(max_examples=60, deadline=None)
def test_derivative_is_numeric(name: str, p: float, v: float) -> None:
    """Within the central difference's error; across a kink, between the one-sided slopes."""
    y, h = label(name, v), 1e-5
    low, mid, high = (losses.value(name, p + e, y, 0.3, 0.7) for e in (-h, 0.0, h))
    slope = losses.derivative(name, p, y, 0.3, 0.7)
    if name in SMOOTH:
        assert slope == pytest.approx((high - low) / (2 * h), rel=1e-5, abs=3e-5)
    else:
        assert (mid - low) / h - 1e-6 <= slope <= (high - mid) / h + 1e-6


@pytest.mark.parametrize("name", BOUNDED)
@given(p=st.floats(-50, 50), v=reals, C=st.floats(0.1, 3), epsilon=fractions, tau=fractions)
@settings(max_examples=60, deadline=None)
def test_constants_bound_the_gradient(
    name: str, p: float, v: float, C: float, epsilon: float, tau: float
) -> None:
    """||L' x||^2 <= A L + B with ||x|| = C (for clipped_square ||x|| c_x = C)."""
    A, B = losses.CONSTANTS[name](C)
    y = label(name, v)
    left = (losses.derivative(name, p, y, epsilon, tau) * C) ** 2
    right = A * losses.value(name, p, y, epsilon, tau) + B
    assert left <= right + 1e-9 * (1 + right)


def test_kinks_and_extremes() -> None:
    assert losses.derivative("absolute", 1.0, 1.0) == -1
    assert losses.derivative("hinge", 1.0, 1.0) == -1
    assert losses.derivative("hinge", -1.0, -1.0) == 1
    assert losses.derivative("epsilon_insensitive", 1.5, 1.0, epsilon=0.5) == 0
    assert losses.derivative("quantile", 1.0, 1.0, quantile=0.25) == 0.75
    assert losses.value("logistic", 1e4, -1.0) == 1e4
    assert losses.value("logistic", 1e4, 1.0) == 0
    assert losses.derivative("logistic", 1e4, -1.0) == 1
    assert losses.derivative("logistic", -1e4, -1.0) == 0
    assert losses.derivative("logistic", 0.0, 1.0) == -0.5
    assert losses.derivative("poisson", 1e4, 0.0) == math.exp(30)
    assert losses.value("clipped_square", 2.0, 0.5) == 0.25 + 1.0
    assert losses.value("clipped_square", -2.0, 0.5) == 0.25 + 2.0
    assert losses.row_scale("clipped_square", np.array([3.0, 0, 0, 1, 1, 1])) == 0.5
    assert losses.row_scale("clipped_square", np.zeros(2)) == 1
    assert losses.row_scale("square", np.ones(4)) == 1
    for function in (losses.value, losses.derivative):
        with pytest.raises(ValueError, match="loss"):
            function("none", 0.0, 0.0)


# Operators (P-01)

vectors = st.lists(reals, min_size=1, max_size=6).map(np.array)
amounts = st.floats(0, 3, allow_nan=False)
ceilings = st.one_of(st.just(INF), amounts)


def test_operators_by_hand() -> None:
    v = np.array([-3.0, -2.0, -0.5, 0.0, 0.5, 2.0, 3.0])
    np.testing.assert_array_equal(T0(v, 2.0), [-3, -2, 0, 0, 0, 2, 3])
    np.testing.assert_array_equal(T1(v, 1.0, 2.0), [-3, -1, 0, 0, 0, 1, 3])
    np.testing.assert_array_equal(soft(v, 1.0), [-2, -1, 0, 0, 0, 1, 2])
    for result in (T0(v.astype("f4"), 2.0), T1(v.astype("f4"), 1.0, INF), soft(v.astype("f4"), 1)):
        assert result.dtype == np.float32


@given(v=vectors, a=amounts, theta=ceilings, n=st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_operator_properties(v: Vector, a: float, theta: float, n: int) -> None:
    shrunk = T1(v, a, theta)
    np.testing.assert_array_equal(T1(-v, a, theta), -shrunk)
    assert np.all(np.abs(shrunk) <= np.abs(v))
    assert np.all(shrunk * v >= 0)
    np.testing.assert_array_equal(T1(v, a, INF), soft(v, a))
    repeated = v
    for _ in range(n):
        repeated = T1(repeated, a, theta)
    np.testing.assert_allclose(repeated, T1(v, n * a, theta), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(T0(T0(v, theta), theta), T0(v, theta))


@given(v=vectors, a=amounts, theta=amounts)
@settings(max_examples=100, deadline=None)
def test_large_shrink_is_rounding(v: Vector, a: float, theta: float) -> None:
    """R-2.5: a >= theta gives T1 = T0 except at |v| = theta."""
    a = max(a, theta)
    inside = np.abs(v) != theta
    np.testing.assert_array_equal(T1(v, a, theta)[inside], T0(v, theta)[inside])


@given(pair=st.lists(st.tuples(reals, reals), min_size=1, max_size=6), a=amounts)
@settings(max_examples=100, deadline=None)
def test_soft_is_lipschitz(pair: list[tuple[float, float]], a: float) -> None:
    u, v = np.array(pair).T
    assert np.all(np.abs(T1(u, a, INF) - T1(v, a, INF)) <= np.abs(u - v) + 1e-14)


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
        ("truncate", 1.0): (0.1875, 0.875),  # (3/8, 14/8) / 2: 7/4 lies above theta
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
def test_without_gravity_it_is_sgd(name: str) -> None:
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
def test_bias_is_a_constant_column(name: str) -> None:
    """Without shrinkage b is the weight of a column of ones (clipped_square would scale it)."""
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
def test_sample_weight_scales_the_loss(name: str) -> None:
    """Weight s everywhere is rate s*eta with gravity/s and l2/s; or, averaged, lambda/s."""
    X, y = problem(name, 3)
    order = orders(len(X), 2, 3)
    s = np.full(len(X), 2.0)
    one = truncated_gradient(
        X, y, order, loss=name, eta0=0.05, gravity=0.2, l2=0.1, period=3, sample_weight=s
    )
    two = truncated_gradient(X, y, order, loss=name, eta0=0.1, gravity=0.1, l2=0.05, period=3)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-12)
    np.testing.assert_allclose(one.losses, 2 * np.array(two.losses), atol=1e-12)
    three = averaged(X, y, order, loss=name, alpha=10.0, center=True, sample_weight=s)
    four = averaged(X, y, order, loss=name, alpha=5.0, center=True)
    np.testing.assert_allclose(three.weights, four.weights, atol=1e-12)
    zero = ftrl(X, y, order, loss=name, sample_weight=0 * s)
    assert not np.any(zero.weights)


@pytest.mark.parametrize("learn", [truncated_gradient, forward_backward, ftrl, averaged])
def test_float32(learn: Any) -> None:
    """The state stays in float32 and follows float64."""
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
def test_average_is_the_mean_of_the_prefixes(period: int) -> None:
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
def test_strong_gravity_is_rounding(name: str, period: int) -> None:
    """R-2.5, A-08: eta K g >= theta coincides with rounding on a whole run."""
    X, y = problem(name, 6)
    order = orders(len(X), 3, 6)
    options: dict[str, Any] = dict(loss=name, eta0=0.05, period=period, ceiling=0.06, l2=0.1)
    truncated = truncated_gradient(X, y, order, gravity=0.06 / (0.05 * period) + 1, **options)
    rounded = truncated_gradient(X, y, order, shrink="round", **options)
    assert_same(truncated, rounded)


def test_one_parameter_special_case() -> None:
    """R-6.2, theta = g: rounding if eta K >= 1; else weights above g are never shrunk."""
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
@settings(max_examples=60, deadline=None)
def test_idle_steps(k: int, n: int) -> None:
    """n empty rows: R-5.3 for the sub-gradient and R-2.4 for truncation, exactly."""
    start, a = k / 16, 1 / 8
    X, y = np.array([[1.0], [0.0]]), np.array([start, 0.0])
    rows = [0] + [1] * n
    # Step 1 moves w from 0 to the label; the sub-gradient does not act on it, sgn(0) = 0.
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
    """Rows of one direction, and a label chosen against each prediction."""
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
    """R-7.5, P-07: with eta T fixed, the gap falls in proportion to eta (the gradient's noise)."""
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
    """One row: the steps are proximal gradient steps, whose limit is the lasso at any small eta."""
    X, y, g = np.array([[0.5, -2.0, 1.0]]), np.array([3.0]), 0.4
    run = truncated_gradient(X, y, [[0] * 2000], loss="square", eta0=0.05, gravity=g)
    # All weight goes to the largest entry: 2 (p - y) x = g at p = -2 w, so p = y - g/4.
    np.testing.assert_allclose(run.weights, [0.0, -(3.0 - g / 4) / 2, 0.0], atol=1e-12)
    assert np.count_nonzero(run.weights) == 1


# Forward-backward splitting (P-08)


@pytest.mark.parametrize("name", losses.NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forward_backward_is_truncated_gradient(name: str, dtype: Any) -> None:
    X, y = problem(name, 11)
    order = orders(len(X), 2, 11)
    s = np.random.default_rng(11).random(len(X))
    options: dict[str, Any] = dict(
        loss=name, eta0=0.1, schedule="sqrt", decay=0.8, fit_intercept=True, l2=0.3, dtype=dtype
    )
    one = forward_backward(X, y, order, l1=0.2, sample_weight=s, **options)
    two = truncated_gradient(X, y, order, gravity=0.2, sample_weight=s, **options)
    assert_same(one, two)


@given(v=reals, l1=amounts, l2=amounts, other=reals)
@settings(max_examples=60, deadline=None)
def test_backward_step_is_a_minimum(v: float, l1: float, l2: float, other: float) -> None:
    """One forward step to v, then no point has a smaller proximal objective."""
    run = forward_backward(np.ones((1, 1)), np.array([v]), [[0]], loss="squared", l1=l1, l2=l2)

    def objective(u: float) -> float:
        return 0.5 * (u - v) ** 2 + l1 * abs(u) + 0.5 * l2 * u * u

    assert objective(run.weights[0]) <= objective(other) + 1e-12


# FTRL


def test_ftrl_by_hand() -> None:
    """Squared loss, alpha = beta = 1, l1 = 1, l2 = 2, one column of ones."""
    run = ftrl(np.ones((1, 1)), np.array([3.0]), [[0]], loss="squared", alpha=1, l1=1, l2=2)
    # p = 0, g = -3, z = -3, n = 9; w = (3 - 1) / ((1 + 3) / 1 + 2).
    assert run.predictions == [0]
    assert run.losses == [4.5]
    assert run.weights[0] == pytest.approx(2 / 6, rel=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ftrl_returns_to_exact_zero(dtype: Any) -> None:
    X = np.ones((2, 1))
    y = np.array([2.0, -2.0])
    options: dict[str, Any] = dict(loss="absolute", alpha=0.1, l1=1.5, dtype=dtype)
    weights = [
        ftrl(X, y, [([0] * 4 + [1] * 4)[:t]], **options).weights[0] for t in range(9)
    ]  # fmt: skip
    assert weights[1] == 0
    assert weights[4] > 0
    assert 0 in weights[5:]


@pytest.mark.parametrize("name", losses.NAMES)
def test_ftrl_follows_the_regularised_leader(name: str) -> None:
    """The weights minimise G.w + sum_s sigma_s/2 (w-w_s)^2 + l1|w| + (beta/alpha + l2)/2 w^2."""
    X, y = problem(name, 12, n=30, d=6)
    alpha, beta, l1, l2 = 0.1, 1.0, 0.8, 0.5
    options: dict[str, Any] = dict(loss=name, alpha=alpha, beta=beta, l1=l1, l2=l2)
    rows = np.arange(30)
    runs = [ftrl(X, y, [rows[:t]], **options) for t in range(31)]
    final = runs[-1].weights
    slope = (beta / alpha + l2) * final
    n = np.zeros(6)
    for t in range(30):
        scaled = losses.row_scale(name, X[t]) * X[t]
        old = runs[t].weights
        g = losses.derivative(name, float(old @ scaled), y[t]) * scaled
        sigma = (np.sqrt(n + g**2) - np.sqrt(n)) / alpha
        slope += g + sigma * (final - old)
        n += g**2
    zero = final == 0
    assert np.all(np.abs(slope[zero]) <= l1 + 1e-10)
    np.testing.assert_allclose(slope[~zero], -l1 * np.sign(final[~zero]), atol=1e-10)


# Averaged SGD (R-14.*, P-18)

AVERAGED = [name for name in losses.NAMES if name not in ("clipped_square", "poisson")]


def algorithm_3(
    X: Matrix, y: Vector, rows: Vector, name: str, lam: float
) -> tuple[Vector, float, Vector, float]:
    """CASGD with implicit centring (R-14.6); returns wbar, bbar', w_T and b'_T (R-14.7)."""
    xbar = X.mean(axis=0)
    theta = 1 + xbar @ xbar
    v, u = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    a = c = h = z = r = s = 0.0
    for t, row in enumerate(rows, start=1):
        x = X[row]
        q = xbar @ x
        p = 0.0 if t == 1 else -(v @ x + r - a * q) / (lam * (t - 1))
        g = losses.derivative(name, float(p), y[row])
        v = v + g * x
        u = u + h * g * x
        a += g
        c += a / t
        h += 1 / t
        z += g * q
        r = a * theta - z
        s += r / t
    T = len(rows)
    return (
        -(h * v - u - c * xbar) / (lam * T),
        -s / (lam * T),
        -(v - a * xbar) / (lam * T),
        (-r / (lam * T)),
    )


@pytest.mark.parametrize("name", AVERAGED)
@pytest.mark.parametrize("lam", [1.0, 20.0])
def test_explicit_centring_is_implicit(name: str, lam: float) -> None:
    if name in ("square", "squared", "squared_hinge"):
        lam *= 10  # a small lambda explodes with an unbounded derivative
    X, y = problem(name, 13)
    X = X + np.linspace(-1, 1, X.shape[1])
    rows = np.random.default_rng(13).integers(len(X), size=300)
    run = averaged(X, y, [rows], loss=name, alpha=lam, center=True)
    wbar, bbar, w, b = algorithm_3(X, y, rows, name, lam)
    assert run.average_weights is not None
    np.testing.assert_allclose(run.average_weights, wbar, rtol=1e-10, atol=1e-11)
    assert run.average_intercept == pytest.approx(bbar, rel=1e-10, abs=1e-11)
    np.testing.assert_allclose(run.weights, w, rtol=1e-10, atol=1e-11)
    assert run.intercept == pytest.approx(b, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("name", [*AVERAGED, "clipped_square", "poisson"])
def test_closed_form_is_the_recursion(name: str) -> None:
    """R-14.3: w_t = -v_t/(lambda t), b_t = -a_t/(lambda t), and the averages of both."""
    X, y = problem(name, 14)
    order = orders(len(X), 3, 14)
    lam = 20.0
    run = averaged(X, y, order, loss=name, alpha=lam)
    v, a = np.zeros(X.shape[1]), 0.0
    w_all, b_all = [], []
    for t, row in enumerate(np.concatenate(order), start=1):
        scaled = losses.row_scale(name, X[row]) * X[row]
        p = -(v @ scaled + a) / (lam * (t - 1)) if t > 1 else 0.0
        g = losses.derivative(name, float(p), y[row])
        v, a = v + g * scaled, a + g
        w_all.append(-v / (lam * t))
        b_all.append(-a / (lam * t))
        assert run.predictions[t - 1] == pytest.approx(p, rel=1e-10, abs=1e-12)
    assert run.average_weights is not None
    np.testing.assert_allclose(run.weights, w_all[-1], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(run.average_weights, np.mean(w_all, axis=0), rtol=1e-10, atol=1e-13)
    assert run.intercept == pytest.approx(b_all[-1], rel=1e-10, abs=1e-13)
    assert run.average_intercept == pytest.approx(np.mean(b_all), rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("name", ["absolute", "hinge", "logistic"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_centred_runs_ignore_a_translation(name: str, fit_intercept: bool) -> None:
    """R-14.8: a constant vector added to all rows changes CASGD's bias only, and ASGD."""
    X, y = problem(name, 15)
    shift = np.linspace(-2, 3, X.shape[1])
    order = orders(len(X), 5, 15)
    options: dict[str, Any] = dict(loss=name, alpha=1.0, fit_intercept=fit_intercept)
    here = averaged(X, y, order, center=True, **options)
    there = averaged(X + shift, y, order, center=True, **options)
    for one, two in (
        (here.weights, there.weights),
        (here.average_weights, there.average_weights),
        (here.predictions, there.predictions),
    ):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)  # type: ignore[arg-type]
    moved = here.intercept - float(here.weights @ shift)
    assert there.intercept == pytest.approx(moved, abs=1e-10)
    plain = averaged(X, y, order, **options)
    plain_there = averaged(X + shift, y, order, **options)
    assert np.max(np.abs(plain.weights - plain_there.weights)) > 1e-3
    assert here.average_weights is not None
    if not fit_intercept:
        assert plain.intercept == 0
        xbar = X.mean(axis=0)
        assert here.intercept == pytest.approx(-float(here.weights @ xbar), abs=1e-12)
        assert here.average_intercept == pytest.approx(
            -float(here.average_weights @ xbar), abs=1e-12
        )


def test_centring_needs_an_unscaled_loss() -> None:
    X, y = problem("clipped_square", 16)
    with pytest.raises(ValueError, match="center"):
        averaged(X, y, [[0]], loss="clipped_square", alpha=1.0, center=True)
