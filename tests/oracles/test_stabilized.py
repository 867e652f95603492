"""The oracle of stabilized truncated SGD equals the checked reference code and the theory.

P-14, P-15, P-16 and P-17. The core is not used here.
"""

from __future__ import annotations

import itertools
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from oracles.operators import soft
from oracles.result import Matrix, Vector
from oracles.stabilized import (
    StabilizedResult,
    burst_size,
    quantile_of,
    rejection_rate,
    stabilized,
)
from oracles.truncated_gradient import truncated_gradient
from support.reference import load_reference

LOSSES = ("hinge", "logistic")
shares = st.floats(0, 1)
rates = st.floats(-7, 7).map(lambda gamma: gamma if abs(gamma) > 1e-6 else 0.0)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_reference()


def problem(seed: int, n: int = 30, d: int = 12, binary: bool = False) -> tuple[Matrix, Vector]:
    """Draw rows with frequent and rare columns, and an empty one; labels of a sparse model."""
    rng = np.random.default_rng(seed)
    frequency = np.linspace(0.05, 0.7, d)
    values = np.ones((n, d)) if binary else rng.normal(size=(n, d))
    X = values * (rng.random((n, d)) < frequency)
    X[:, 1] = 0
    y = np.where(X[:, -3:].sum(axis=1) + 0.3 * rng.normal(size=n) > X.mean(), 1.0, -1.0)
    return X, y


def permutations(n: int, M: int, seed: int) -> list[Vector]:
    """Draw the permutations of the paths like the reference code."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(n) for _ in range(M)]


# Agreement with the reference code

PARAMETERS: list[dict[str, Any]] = [
    {},
    {"beta0": 0.9, "gamma": 0.0, "pi0": 0.9, "M": 3},
    {"beta0": 0.5, "gamma": 3.0, "pi0": 0.6, "M": 5, "K": 3, "n_K": 4},
    {"beta0": 0.7, "gamma": -5.0, "pi0": 0.8, "delta_K": 20},
    {"beta0": 0.3, "gamma": -7.0, "pi0": 0.7, "delta_K": 3, "alpha": 1 / math.e},
    {"beta0": 0.6, "pi0": 0.9, "alpha": 0.5, "eta": 0.3, "K": 4, "passes": 9},
    {"beta0": 1.0, "pi0": 1.0, "M": 2},
    {"beta0": 0.0, "pi0": 0.0, "M": 1, "K": 7, "n_K": 1},
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("count", ["x", "gradient"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("number", range(len(PARAMETERS)))
def test_stabilized_equals_the_reference(
    reference: ModuleType, loss: str, count: str, binary: bool, number: int
) -> None:
    """Weights, stable set, gravity, rates and burst sizes are identical at every stage."""
    chosen: dict[str, Any] = {"M": 4, "passes": 6, "K": 5, "n_K": 5} | PARAMETERS[number]
    M, n_K = chosen.pop("M"), chosen.pop("n_K")
    X, y = problem(number, binary=binary)
    run = stabilized(X, y, permutations(len(X), M, 3), loss=loss, count=count, n_K=n_K, **chosen)
    trace: list[Any] = []
    weights, active = reference.stsgd(
        sp.csr_matrix(X),
        y,
        seed=3,
        loss=reference.LOSS[loss],
        M=M,
        nK=n_K,
        count_grad=count == "gradient",
        trace=trace,
        **chosen,
    )
    np.testing.assert_array_equal(run.active, active)
    np.testing.assert_array_equal(run.weights, weights)
    assert run.trace == trace


# The parts (P-14, P-15)


@given(d=shares, other=shares, beta0=shares, gamma=rates)
def test_rejection_rate(d: float, other: float, beta0: float, gamma: float) -> None:
    """P-14: it increases from 0 at d = 0 to beta0 at d = 1; it is above the line if gamma < 0."""
    assert rejection_rate(1.0, beta0, gamma) == pytest.approx(beta0, abs=1e-15)
    assert rejection_rate(0.0, beta0, gamma) == pytest.approx(0, abs=1e-15)
    low, high = sorted((d, other))
    here, there = rejection_rate(low, beta0, gamma), rejection_rate(high, beta0, gamma)
    assert here <= there + 1e-15
    line = beta0 * low
    assert here <= line + 1e-15 if gamma >= 0 else here >= line - 1e-15
    assert rejection_rate(low, beta0, 0.0) == pytest.approx(line, abs=1e-15)
    for near in (-1e-7, 1e-7):
        assert rejection_rate(low, beta0, near) == pytest.approx(line, abs=1e-7)


def test_rejection_rate_and_burst_size_by_value(reference: ModuleType) -> None:
    """The values equal R-13.9, R-13.13 and the reference code."""
    for gamma, beta in ((-5.0, 0.489), (0.0, 0.35), (3.0, 0.139), (5.0, 0.055)):
        assert rejection_rate(0.5, 0.7, gamma) == pytest.approx(beta, abs=6e-4)
    assert [burst_size(5, 1 / math.e, d) for d in (1.0, 0.5, 0.1, 0.01)] == [5, 9, 17, 29]
    assert burst_size(5, 1.0, 1.0) == burst_size(5, 3.0, 1.0) == 1
    assert burst_size(5, 0.5, 0.0) == burst_size(5, 0.5, 1e-12)
    for d, gamma in itertools.product(np.linspace(0, 1, 11), (-7, -1, 0, 1, 5)):
        assert rejection_rate(d, 0.7, gamma) == reference.phi(d, 0.7, gamma)
        if d > 0:
            assert burst_size(5, 0.4, d) == reference.burst_size(5, 0.4, d)


@given(numbers=st.lists(st.integers(0, 9).map(float), max_size=30), beta=shares, other=shares)
def test_quantile(numbers: list[float], beta: float, other: float) -> None:
    """P-15: a share beta of the numbers does not exceed it, and it is the least such value."""
    r = np.array(numbers)
    g = quantile_of(r, beta)
    assert quantile_of(r, 0.0) == 0
    low, high = sorted((beta, other))
    assert quantile_of(r, low) <= quantile_of(r, high)
    if numbers and beta > 0:
        assert np.mean(r <= g) >= beta - 1e-12
        assert g in r
        assert g == r.min() or np.mean(r < g) < beta
    else:
        assert g == 0


def test_quantile_equals_the_reference(reference: ModuleType) -> None:
    r = np.random.default_rng(0).random(50)
    for beta in (0.0, 0.01, 0.02, 0.3, 0.54, 0.7, 1.0):
        assert quantile_of(r, beta) == reference.gravity_quantile(r, beta)


# The whole (P-16, P-17)


def brute_force(run: StabilizedResult, pi0: float, delta_K: int, width: int) -> None:
    """Compute every selection probability of R-13.12 again, from the bursts."""
    since = np.ones(width)  # first stage of the next evaluation
    omega = np.full(width, True)
    for stage, Pi in enumerate(run.probabilities, start=1):
        for j in range(width):
            mine = [u for u in run.bursts if since[j] <= u.stage <= stage and u.k[j] > 0]
            if omega[j] and sum(u.k[j] for u in mine) > delta_K:
                share = sum(u.weights[j] != 0 for u in mine) / len(mine)
                assert Pi[j] == share
                since[j] = stage + 1
                omega[j] = share >= pi0
                assert omega[j] or run.purged[j] == stage
            else:
                assert np.isnan(Pi[j])
        assert run.trace[stage].omega == np.count_nonzero(omega)
    np.testing.assert_array_equal(run.active, omega)
    np.testing.assert_array_equal(run.active, run.purged == -1)


@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    count=st.sampled_from(["x", "gradient"]),
    gravity_rule=st.sampled_from(["update-quantile", "weight-quantile"]),
    pi0=st.sampled_from([0.0, 0.5, 0.9]),
    beta0=st.sampled_from([0.2, 0.7]),
    delta_K=st.sampled_from([0, 4, 15]),
    alpha=st.sampled_from([None, 0.3]),
)
def test_stabilized_invariants(
    seed: int,
    loss: str,
    count: str,
    gravity_rule: str,
    pi0: float,
    beta0: float,
    delta_K: int,
    alpha: float | None,
) -> None:
    """P-16, P-17, and the gravity of every stage, computed again from its bursts."""
    X, y = problem(seed, n=20, d=8)
    run = stabilized(
        X,
        y,
        permutations(20, 3, seed),
        loss=loss,
        beta0=beta0,
        pi0=pi0,
        K=3,
        n_K=2,
        passes=4,
        delta_K=delta_K,
        alpha=alpha,
        count=count,
        gravity_rule=gravity_rule,
    )
    brute_force(run, pi0, delta_K, 8)
    np.testing.assert_array_equal(run.weights, run.paths.mean(axis=0))
    assert not np.any(run.paths[:, ~run.active])  # the support is a subset of Omega
    np.testing.assert_array_equal(run.updates, sum(u.k for u in run.bursts))
    last = np.ones(8)
    for Pi in run.probabilities:
        last = np.where(np.isnan(Pi), last, Pi)
    np.testing.assert_array_equal(run.probability, last)
    sizes = [stage.omega for stage in run.trace]
    assert sizes == sorted(sizes, reverse=True)  # nested
    assert run.active[1]  # the empty column is never evaluated
    assert run.updates[1] == 0
    rows = [stage.rows for stage in run.trace]
    assert rows[-2] < 4 * 20 <= rows[-1]

    for u in run.bursts:
        gone = (run.purged >= 0) & (run.purged < u.stage)
        assert not np.any(u.weights[gone])  # purged columns stay purged
        assert not np.any(u.k[gone])
        if u.stage == 0:
            assert u.gravity == 0
        elif gravity_rule == "update-quantile":
            of_stage = [v for v in run.bursts if v.stage == u.stage - 1]
            ratios = np.concatenate([np.abs(v.change[v.k > 0]) / v.k[v.k > 0] for v in of_stage])
            beta = run.trace[u.stage - 1].beta
            assert u.gravity == quantile_of(ratios, beta) == run.trace[u.stage - 1].gravity
            assert not len(ratios) or np.mean(ratios <= u.gravity) >= beta - 1e-12


@pytest.mark.parametrize("loss", [*LOSSES, "clipped_square"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_rejection_it_equals_the_mean_of_sgd(loss: str, dtype: Any) -> None:
    """P-16, with beta0 = 0 and pi0 = 0. A weight of 1/2 halves the rate, one of 2 is a copy."""
    X, y = problem(1)
    y = (y + 1) / 2 if loss == "clipped_square" else y
    orders = permutations(30, 4, 1)
    s = np.where(np.arange(30) % 3 == 0, 2.0, 0.5)
    run = stabilized(
        X, y, orders, loss=loss, beta0=0, pi0=0, passes=5, eta=0.1, sample_weight=s, dtype=dtype
    )
    assert run.trace[-1].rows == 150
    copies = np.where(s == 2.0, 2, 1)
    paths = [
        truncated_gradient(
            X, y, [np.repeat(order, copies[order])] * 5, loss=loss, eta0=0.1, dtype=dtype,
            sample_weight=np.minimum(s, 1.0),
        ).weights
        for order in orders
    ]  # fmt: skip
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    assert run.paths.dtype == run.weights.dtype == dtype
    np.testing.assert_allclose(run.paths, paths, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(run.weights, np.mean(run.paths, axis=0))
    assert np.all(run.active)


@pytest.mark.parametrize("gravity_rule", ["update-quantile", "weight-quantile"])
def test_the_order_of_the_paths_does_not_matter(gravity_rule: str) -> None:
    """R-13.16: in a stage, paths are independent of each other."""
    X, y = problem(2)
    orders = permutations(30, 4, 2)
    options: dict[str, Any] = dict(loss="logistic", pi0=0.8, passes=6, gravity_rule=gravity_rule)
    one = stabilized(X, y, orders, **options)
    two = stabilized(X, y, orders[::-1], **options)
    assert one.trace == two.trace
    assert one.trace[-1].omega < 12
    np.testing.assert_array_equal(one.paths, two.paths[::-1])
    np.testing.assert_array_equal(one.probability, two.probability)
    np.testing.assert_array_equal(one.purged, two.purged)


def test_on_dense_rows_a_burst_equals_truncated_gradient() -> None:
    """P-16: k_j = K for every j, so B1 is B0 (R-13.1): all weights shrink by g0 K."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 5))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    run = stabilized(X, y, [np.arange(20)], loss="logistic", pi0=0.0, passes=6, K=5, n_K=2)
    w = np.zeros(5)
    for number, u in enumerate(run.bursts):
        assert np.all(u.k == 5)
        for i in range(5):
            x, label = X[(5 * number + i) % 20], y[(5 * number + i) % 20]
            w += 0.1 * label / (1 + math.exp(label * float(w @ x))) * x
        w = soft(w, run.trace[u.stage - 1].gravity * 5 if u.stage else 0.0)
        np.testing.assert_allclose(u.weights, w, rtol=1e-10, atol=1e-13)
    assert np.count_nonzero(w) < 5


@pytest.mark.parametrize("gravity_rule", ["update-quantile", "weight-quantile"])
def test_untouched_features_never_shrink(gravity_rule: str) -> None:
    """P-16: a column of only one row keeps its weight until the path reaches that row again."""
    X, y = problem(4, n=40)
    X[:, 0] = 0
    X[7, 0] = 3.0
    order = np.concatenate([[7], np.delete(np.arange(40), 7)])
    options: dict[str, Any] = dict(loss="logistic", pi0=0.0, K=2, n_K=2, gravity_rule=gravity_rule)
    run = stabilized(X, y, [order], passes=1, **options)
    assert max(u.gravity for u in run.bursts) > 0
    assert all(u.weights[0] == run.bursts[0].weights[0] != 0 for u in run.bursts)
    assert run.updates[0] == 1
    assert run.probability[0] == 1


def test_weight_quantile() -> None:
    """A-17: g is the beta-quantile of the nonzero |v_j| of the path, not multiplied by k_j."""
    X, y = problem(5)
    run = stabilized(
        X, y, permutations(30, 2, 5), loss="logistic", passes=6, gravity_rule="weight-quantile"
    )
    old = {0: np.zeros(12), 1: np.zeros(12)}
    for u in run.bursts:
        start = np.where((run.purged >= 0) & (run.purged < u.stage), 0, old[u.path])
        v = start + u.change
        beta = run.trace[u.stage - 1].beta if u.stage else 0.0
        g = quantile_of(np.abs(v[v != 0]), beta)
        assert u.gravity == pytest.approx(g, rel=1e-12)
        np.testing.assert_allclose(u.weights, np.where(u.k > 0, soft(v, g), v), atol=1e-14)
        old[u.path] = u.weights
    assert np.any(run.purged >= 0)
    assert all(stage.gravity == 0 for stage in run.trace)


def test_counting_by_hand() -> None:
    """R-13.4: with hinge, a row beyond the margin counts with "x", not with "gradient" (A-36)."""
    X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0])
    options: dict[str, Any] = dict(loss="hinge", eta=0.5, beta0=0.0, pi0=0.0, K=3, n_K=1, passes=1)
    # Rows 0, 0, 1: w_0 = 1, with a margin of 2, beyond 1; then w_1 = 1/2.
    for count, k in (("x", [2, 1]), ("gradient", [1, 1])):
        run = stabilized(X, y, [[0, 0, 1]], count=count, **options)
        np.testing.assert_array_equal(run.weights, [1.0, 0.5])
        np.testing.assert_array_equal(run.bursts[0].k, k)
        assert run.trace == [(0, 3, 0.0, 0.0, 1.0, 2, 2, 3)]
    for name in ("count", "gravity_rule"):
        with pytest.raises(ValueError, match=name):
            stabilized(X, y, [[0, 1]], **options, **{name: "none"})
