"""The oracles of dual averaging, the margin perceptron and mirror descent.

They equal the checked reference code, and have the properties of the theory (P-08, P-09, P-10,
P-12). The core is not used here.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import losses
from oracles.dual_averaging import dual_averaging, weights_of
from oracles.forward_backward import forward_backward
from oracles.margin_perceptron import PerceptronResult, margin_perceptron, shrinkage
from oracles.mirror_descent import link, mirror_descent
from oracles.operators import soft
from oracles.result import Matrix, Vector
from support.reference import load_reference, rows_of

MARGIN = ("hinge", "logistic")
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_reference()


def problem(seed: int, loss: str = "hinge", n: int = 40, d: int = 9) -> tuple[Matrix, Vector]:
    """Draw sparse rows, one of them empty, and labels that the loss allows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    X[n // 2] = 0
    y = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return X, y if loss in ("squared", "absolute") else np.where(y > 0, 1.0, -1.0)


def passes(n: int, number: int, seed: int) -> list[Any]:
    """Draw one permutation of the n rows per pass."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(n) for _ in range(number)]


# Dual averaging


@pytest.mark.parametrize("loss", [*MARGIN, "squared"])
@pytest.mark.parametrize(
    ("l1", "strength", "boost"), [(0.0, 1.0, 0.0), (0.05, 2.0, 0.1), (0.02, 5.0, 0.0), (9, 1, 0)]
)
def test_dual_averaging_equals_the_reference(
    reference: ModuleType, loss: str, l1: float, strength: float, boost: float
) -> None:
    """P-08: the reference keeps sparse sums and computes only the weights of a row's features."""
    X, y = problem(1, loss)
    order = passes(len(X), 3, 1)
    run = dual_averaging(X, y, order, loss=loss, l1=l1, strength=strength, boost=boost)
    rows = np.concatenate(order)
    kind = reference.LOSS[loss]
    w = reference.rda(*rows_of(X), y, X.shape[1], rows, l1, strength, boost, kind)
    np.testing.assert_allclose(run.weights, w, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(run.weights != 0, w != 0)
    assert run.steps == len(rows)
    assert np.any(w) == (l1 < 1)


@given(
    G=st.floats(-50, 50),
    t=st.integers(1, 100),
    l1=st.floats(0, 2),
    gamma=st.floats(0.1, 9),
    rho=st.floats(0, 2),
    other=st.floats(-9, 9),
)
def test_dual_averaging_weight_is_a_minimum(
    G: float, t: int, l1: float, gamma: float, rho: float, other: float
) -> None:
    """P-09: no v has a smaller gbar v + l1 |v| + (gamma/sqrt t)(v^2/2 + rho |v|)."""

    def objective(v: float) -> float:
        root = math.sqrt(t)
        return G / t * v + l1 * abs(v) + gamma / root * (0.5 * v * v + rho * abs(v))

    w = float(weights_of(np.array([G]), t, t * l1, gamma, rho)[0])
    for v in (other, 0.0, w - 1e-3, w + 1e-3):
        assert objective(w) <= objective(v) + 1e-12 * (1 + abs(objective(w)))


@pytest.mark.parametrize("loss", losses.NAMES)
def test_dual_averaging_minimises_its_linear_model(loss: str) -> None:
    """P-09 on a whole run: 0 is a sub-gradient of the objective of R-8.1 at the last weights."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.6)
    y = rng.choice([-1.0, 1.0], 30) if loss in losses.MARGIN else rng.random(30)
    l1, gamma, rho = 0.03, 3.0, 0.02
    options: dict[str, Any] = dict(loss=loss, l1=l1, strength=gamma, boost=rho)
    runs = [dual_averaging(X, y, [range(t)], **options) for t in range(31)]
    G = np.zeros(6)
    for t in range(30):
        scaled = losses.row_scale(loss, X[t]) * X[t]
        p = float(runs[t].weights @ scaled)
        assert runs[-1].predictions[t] == pytest.approx(p, rel=1e-12, abs=1e-14)
        G += losses.derivative(loss, p, y[t]) * scaled
    w = runs[-1].weights
    slope = G / 30 + gamma / math.sqrt(30) * w
    bound = l1 + gamma * rho / math.sqrt(30)
    assert np.all(np.abs(slope[w == 0]) <= bound + 1e-12)
    np.testing.assert_allclose(slope[w != 0], -bound * np.sign(w[w != 0]), atol=1e-12)
    assert not np.any(runs[0].weights)


def test_dual_averaging_by_hand() -> None:
    """The example has absolute loss, relative gamma, a bias without l1 and boost, and weight 2."""
    X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([9.0, 9.0])
    options: dict[str, Any] = dict(loss="absolute", l1=0.5, strength=0.5, boost=0.25)
    run = dual_averaging(
        X, y, [[0]], relative=True, fit_intercept=True, sample_weight=np.array([2.0, 0]), **options
    )
    # Two steps with g = -1: G = (-4, 0), m = 4, gamma = 2: w_0 = (4 - (2/2 + 2 r/4)) / (2 r); gamma
    # of b is 1/2: b = 2 / (r/2).
    r = math.sqrt(2)
    np.testing.assert_allclose(run.weights, [(3 - 0.5 * r) / (2 * r), 0.0], rtol=1e-15)
    assert run.intercept == pytest.approx(4 / r, rel=1e-15)
    assert (run.predictions, run.losses, run.steps) == ([0.0], [18.0], 1)
    # A row of weight 0 makes no step.
    two = dual_averaging(X, y, [[0, 1]], relative=True, sample_weight=np.array([2.0, 0]), **options)
    np.testing.assert_array_equal(two.weights, run.weights)
    assert two.steps == 2
    # Rows without entries: m = 0, gamma is the strength.
    empty = dual_averaging(np.zeros((1, 2)), y, [[0]], relative=True, fit_intercept=True, **options)
    assert empty.intercept == 2.0
    # Clipped square: c_x = 1/2, g = -2, G_j = -1, m = 4/4, so w_j = 1.
    scaled = dual_averaging(
        np.ones((1, 4)), np.ones(1), [[0]], loss="clipped_square", relative=True
    )
    np.testing.assert_array_equal(scaled.weights, np.ones(4))


def test_relative_dual_averaging_does_not_depend_on_the_scale_of_rows() -> None:
    """For 8 X, without l1 and boost, predictions are exactly the same, and w is divided by 8."""
    X, y = problem(3, "logistic")
    order = passes(len(X), 2, 3)
    one = dual_averaging(X, y, order, loss="logistic", relative=True)
    two = dual_averaging(8 * X, y, order, loss="logistic", relative=True)
    np.testing.assert_array_equal(one.predictions, two.predictions)
    np.testing.assert_array_equal(one.weights, 8 * two.weights)
    plain = dual_averaging(8 * X, y, order, loss="logistic")
    assert not np.allclose(one.predictions, plain.predictions)


# The margin perceptron


@pytest.mark.parametrize("max_density", [None, 0.5])
@pytest.mark.parametrize(
    ("margin", "eta", "l1"), [(0.0, 1.0, 0.0), (0.01, 0.3, 0.02), (0.5, 0.5, 0.1), (0, 0.1, 0.05)]
)
@pytest.mark.parametrize("separable", [False, True])
def test_perceptron_equals_the_reference(
    reference: ModuleType,
    margin: float,
    eta: float,
    l1: float,
    max_density: float | None,
    separable: bool,
) -> None:
    X, y = problem(4)
    if separable:
        X = np.delete(X, len(X) // 2, axis=0)  # an empty row is never on the right side
        y = np.where(X.sum(axis=1) > 0, 1.0, -1.0)
    n, d = X.shape
    order = passes(n, 10, 4)
    levels = (0.1, 0.25, 0.4, 0.99)
    run = margin_perceptron(
        X, y, order, margin=margin, eta=eta, l1=l1, max_density=max_density, levels=levels
    )
    marked = np.zeros((len(levels), d))
    limit = math.inf if max_density is None else max_density
    w, updates, used, bound, steps, reached = reference.margin_perceptron(
        *rows_of(X),
        y,
        d,
        np.concatenate(order),
        margin,
        eta,
        l1,
        limit,
        n,
        np.array(levels),
        marked,
    )
    np.testing.assert_allclose(run.weights, w, rtol=1e-12, atol=1e-14)
    assert (run.updates, run.steps) == (updates, steps)
    np.testing.assert_array_equal(run.updated, used)
    assert run.bound == pytest.approx(bound, rel=1e-10)
    assert sorted(run.snapshots) == list(levels[:reached])
    for level, at_level in zip(levels[:reached], marked, strict=False):
        np.testing.assert_allclose(run.snapshots[level][0], at_level, rtol=1e-12, atol=1e-14)


def check_perceptron(X: Matrix, run: PerceptronResult, margin: float, eta: float) -> None:
    """R-9.8: ||w||^2 + b^2 <= bound <= updates (eta^2 R^2 + 2 eta tau)."""
    R = max(float(x @ x) for x in X) + 1
    norm = float(run.weights @ run.weights) + run.intercept**2
    slack = 1e-9 * (1 + abs(run.bound))
    assert norm <= run.bound + slack
    assert run.bound <= run.updates * (eta**2 * R + 2 * eta * margin) + slack


@given(
    seed=seeds,
    margin=st.sampled_from([0.0, 0.01, 0.5, 2.0]),
    eta=st.floats(0.05, 2),
    l1=st.floats(0, 0.3),
    shrink=st.sampled_from(["touched", "all"]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_perceptron_invariants(
    seed: int,
    margin: float,
    eta: float,
    l1: float,
    shrink: str,
    fit_intercept: bool,
    weighted: bool,
) -> None:
    """P-10: the bound of the norm after every row, and the density of the last model."""
    X, y = problem(seed, n=16, d=6)
    s = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], 16) if weighted else None
    options: dict[str, Any] = dict(margin=margin, eta=eta, l1=l1, shrink=shrink)
    options.update(fit_intercept=fit_intercept, sample_weight=s)
    for t in range(17):
        run = margin_perceptron(X, y, [range(t)], **options)
        check_perceptron(X, run, margin, eta)
        assert run.updates == np.count_nonzero(run.updated)
        if s is not None:
            assert not np.any(run.updated[s == 0])
    limited = margin_perceptron(X, y, [range(16)], max_density=0.5, **options)
    if limited.stop == "density":
        last = X[limited.steps - 1]
        density = np.count_nonzero(limited.weights) / 6
        assert 0.5 <= density < 0.5 + np.count_nonzero(last) / 6


@given(v=st.lists(st.floats(-3, 3), max_size=6), l1=st.floats(0, 2))
def test_shrinkage_bounds_the_norm(v: list[float], l1: float) -> None:
    """R-9.7 with the second sum over J- (A-09): ||soft(v)||^2 <= ||v||^2 - eps."""
    wt = np.array(v)
    after = soft(wt, l1)
    assert float(after @ after) <= float(wt @ wt) - shrinkage(wt, l1) + 1e-12


@pytest.mark.parametrize("l1", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("eta", [1.0, 0.3])
def test_perceptron_mistake_bound(l1: float, margin: float, eta: float) -> None:
    """R-9.10 for a separable problem and the u that labels it; and the end of R-9.2."""
    rng = np.random.default_rng(5)
    u = rng.normal(size=8)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(200, 8)) * (rng.random((200, 8)) < 0.6)
    X = X[np.abs(X @ u) > 0.6]
    y = np.sign(X @ u)
    run = margin_perceptron(X, y, passes(len(X), 300, 5), margin=margin, eta=eta, l1=l1)
    R = max(float(x @ x) for x in X)
    geff = min(
        eta * label * float(x @ u) - l1 * float(np.abs(u[x != 0]).sum())
        for x, label in zip(X, y, strict=True)
    )
    assert geff > 0
    assert run.updates <= (eta**2 * R + 2 * eta * margin) / geff**2
    assert run.stop == "no update"
    assert run.steps < 300 * len(X)
    assert np.all(y * (X @ run.weights) > margin)


def test_perceptron_by_hand() -> None:
    X, y = np.array([[1.0, 0.0, 0.25], [0.0, 2.0, 0.0]]), np.array([1.0, -1.0])
    options: dict[str, Any] = dict(margin=1.0, eta=0.5, l1=0.25, fit_intercept=True)
    # Row 0: z = 0, wt = (1/2, 0, 1/8), b = 1/2; eps = 1/4 * 1/2 + 1/64.
    # Row 1: z = -1/2, wt_1 = -1, b = 0; eps = 1/4. "all" also takes 1/4 of w_0: |w_0| = l1 is 0.
    expected = {"touched": ([0.25, -0.75, 0.0], 0.25), "all": ([0.0, -0.75, 0.0], 0.25 + 0.0625)}
    for shrink, (weights, eps) in expected.items():
        run = margin_perceptron(X, y, [[0, 1]], shrink=shrink, levels=[0.3, 0.5], **options)
        np.testing.assert_array_equal(run.weights, weights)
        assert run.intercept == 0
        assert run.predictions == [0, 0.5]
        assert run.losses == [1, 1.5]
        assert run.least_eps == 0.140625
        first = 0.25 * (1.0625 + 1) - 0.140625
        assert run.bound == first + 0.25 * (4 + 1) + 2 * 0.5 * -0.5 - eps
        assert list(run.snapshots) == ([0.3, 0.5] if shrink == "touched" else [0.3])
        np.testing.assert_array_equal(run.snapshots[0.3][0], [0.25, 0, 0])
    # z = margin is an update, a row of weight 0 is not; a pass without an update is the last.
    still = margin_perceptron(X, y, [[0], [1], [0]], margin=0.0, sample_weight=np.array([1.0, 0]))
    assert (still.updates, still.steps, still.stop) == (1, 2, "no update")
    with pytest.raises(ValueError, match="shrink"):
        margin_perceptron(X, y, [[0]], shrink="none")


@pytest.mark.parametrize("eta", [1.0, 0.5])
def test_perceptron_weights_up_to_one_scale_the_rate(eta: float) -> None:
    X, y = problem(6)
    order = passes(len(X), 2, 6)
    one = margin_perceptron(X, y, order, eta=2 * eta, l1=0.01, sample_weight=np.full(len(X), 0.5))
    two = margin_perceptron(X, y, order, eta=eta, l1=0.01)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.bound == two.bound


# Mirror descent


@pytest.mark.parametrize("loss", [*MARGIN, "squared", "absolute"])
@pytest.mark.parametrize(("p", "l1"), [(2.0, 0.01), (4.4, 0.0), (4.4, 0.01), (1.5, 0.01), (12, 0)])
def test_mirror_descent_equals_the_reference(
    reference: ModuleType, loss: str, p: float, l1: float
) -> None:
    X, y = problem(7, loss)
    order = passes(len(X), 2, 7)
    rows, d, eta = np.concatenate(order), X.shape[1], 0.05
    for threshold, a in (("paper", l1), ("scaled", eta * l1)):
        run = mirror_descent(X, y, order, loss=loss, p=p, l1=l1, threshold=threshold, eta0=eta)
        w, theta, _ = reference.smidas(
            *rows_of(X), y, d, rows, p, eta, a, reference.LOSS[loss], 9.0, np.ones(0), np.ones(0)
        )
        np.testing.assert_allclose(run.dual, theta, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(run.weights, w, rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(run.dual != 0, theta != 0)
        assert np.any(w)


@given(
    theta=st.lists(st.floats(-1, 1), min_size=1, max_size=8).map(np.array),
    exponent=st.integers(-200, 300),
    p=st.floats(1.2, 30),
)
def test_link(theta: Vector, exponent: int, p: float) -> None:
    """P-12: ||w||_q = ||theta||_p with q = p/(p-1), without overflow, and with the same signs."""
    theta = np.where(np.abs(theta) < 1e-3, 0.0, theta)
    big = theta * 10.0**exponent
    w = link(big, p)
    assert np.all(np.isfinite(w))
    assert np.all(w * theta >= 0)
    assert np.all(w[theta == 0] == 0)
    small = w / 10.0**exponent
    np.testing.assert_allclose(small, link(theta, p), rtol=1e-9, atol=1e-300)
    q = p / (p - 1)
    left = np.sum(np.abs(small) ** q) ** (1 / q)
    right = np.sum(np.abs(theta) ** p) ** (1 / p)
    assert left == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("loss", losses.NAMES)
def test_mirror_descent_with_p_2_equals_forward_backward(loss: str) -> None:
    """P-12, R-11.2: w = theta. With the scaled threshold it equals FOBOS, with bias and rates."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.6)
    y = rng.choice([-1.0, 1.0], 30) if loss in losses.MARGIN else rng.random(30)
    options: dict[str, Any] = dict(loss=loss, l1=0.05, eta0=0.2, schedule="sqrt", decay=0.8)
    options.update(relative=True, fit_intercept=True, sample_weight=rng.random(30))
    order = passes(30, 2, 8)
    one = mirror_descent(X, y, order, p=2.0, threshold="scaled", **options)
    two = forward_backward(X, y, order, **options)
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.predictions, two.predictions, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(one.losses, two.losses, rtol=1e-12, atol=1e-14)
    assert one.intercept == pytest.approx(two.intercept, rel=1e-12)
    with pytest.raises(ValueError, match="threshold"):
        mirror_descent(X, y, order, p=2.0, threshold="none", loss=loss)


@pytest.mark.parametrize("rule", [dual_averaging, mirror_descent, margin_perceptron])
def test_float32(rule: Any) -> None:
    """The state is in float32, and close to that in float64."""
    X, y = problem(9, "logistic")
    options: dict[str, Any] = {"l1": 0.01, "fit_intercept": True}
    if rule is not margin_perceptron:
        options["loss"] = "logistic"
    if rule is mirror_descent:
        options["p"] = 3.0
    order = passes(len(X), 2, 9)
    single, double = (rule(X, y, order, dtype=dtype, **options) for dtype in (np.float32, float))
    assert single.weights.dtype == np.float32
    assert isinstance(single.intercept, float)
    np.testing.assert_allclose(single.weights, double.weights, atol=1e-5)
    np.testing.assert_allclose(single.predictions, double.predictions, atol=1e-5)
