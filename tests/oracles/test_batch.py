"""The oracles of coordinate descent and hard thresholding, which need all rows.

They equal the checked reference code, and have the properties of the theory (P-11, P-13). The core
is not used here.
"""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from oracles import losses
from oracles.coordinate_descent import CURVATURE, INTERCEPT, coordinate_descent, objective
from oracles.hard_threshold import H, hard_threshold, spectral_radius
from oracles.losses import MARGIN
from oracles.result import Matrix, Vector
from support.reference import columns_of, load_reference

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_reference()


def problem(seed: int, loss: str, n: int = 30, d: int = 7) -> tuple[Matrix, Vector]:
    """Draw sparse rows of entries in [-1, 1], with an empty column, and labels for the loss."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d)) * (rng.random((n, d)) < 0.5)
    X[:, d // 2] = 0
    y = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) + 0.2
    return X, np.where(y > 0, 1.0, -1.0) if loss in MARGIN else y


def scans(d: int, number: int, seed: int, fit_intercept: bool = False) -> list[int]:
    """Draw d coordinates per scan; with an intercept, each scan begins with a step of the bias."""
    rng = np.random.default_rng(seed)
    drawn: list[int] = []
    for _ in range(number):
        drawn += [INTERCEPT] * fit_intercept
        drawn += [int(j) for j in rng.integers(d, size=d)]
    return drawn


# Coordinate descent


@pytest.mark.parametrize("loss", ["logistic", "squared", "square"])
@pytest.mark.parametrize("step", ["coordinate", "global"])
@pytest.mark.parametrize("l1", [0.0, 0.01, 0.1, 5.0])
def test_coordinate_descent_equals_the_reference(
    reference: ModuleType, loss: str, step: str, l1: float
) -> None:
    """The reference uses NumPy's old generator; numba's generator draws other numbers."""
    X, y = problem(1, loss)
    n, d = X.shape
    generator = np.random.RandomState(7)
    draws = [generator.randint(0, d) for _ in range(20 * d)]
    run = coordinate_descent(X, y, draws, loss=loss, l1=l1, step=step)
    scd = getattr(reference.scd, "py_func", reference.scd)
    settings = (l1, reference.LOSS[loss], CURVATURE[loss], step == "coordinate")
    state = np.random.get_state()  # noqa: NPY002
    try:
        w, _ = scd(
            *columns_of(X), y, n, d, 20 * d, *settings, 9.0, np.ones(0), np.ones((0, d)), seed=7
        )
    finally:
        np.random.set_state(state)  # noqa: NPY002
    np.testing.assert_allclose(run.weights, w, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(run.weights != 0, w != 0)
    assert np.any(w) == (l1 < 1)


@pytest.mark.parametrize("loss", CURVATURE)
@given(
    seed=seeds,
    step=st.sampled_from(["coordinate", "global"]),
    l1=st.floats(0, 0.3),
    weighted=st.booleans(),
    epsilon=st.floats(0.01, 1),
)
def test_every_step_decreases_the_objective(
    loss: str, seed: int, step: str, l1: float, weighted: bool, epsilon: float
) -> None:
    """P-13: it falls by at least (beta_j/2) times the squared change of the weight."""
    X, y = problem(seed, loss, n=12, d=5)
    s = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], 12) if weighted else None
    if s is not None:
        s[0] = 1.0
    options: dict[str, Any] = dict(loss=loss, l1=l1, sample_weight=s, epsilon=epsilon)
    draws = scans(5, 3, seed, fit_intercept=True)
    run = coordinate_descent(X, y, draws, step=step, **options)
    values = [objective(X, y, np.zeros(5), 0.0, **options), *run.objectives]
    slack = 1e-12 * (1 + values[0])
    assert all(after <= before + slack for before, after in itertools.pairwise(values))
    assert values[-1] == objective(X, y, run.weights, run.intercept, **options)


@pytest.mark.parametrize("loss", CURVATURE)
@pytest.mark.parametrize("step", ["coordinate", "global"])
@pytest.mark.parametrize("l1", [0.02, 0.1])
def test_the_limit_is_an_optimum(loss: str, step: str, l1: float) -> None:
    """P-13: |g_j| <= l1 if w_j = 0, g_j = -l1 sgn(w_j) otherwise, and the slope in b is 0."""
    X, y = problem(2, loss, n=40, d=5)
    X = np.sign(X)
    y[::4] *= -1  # not separable
    s = np.random.default_rng(2).random(40)
    draws = scans(5, 500, 2, fit_intercept=True)
    options: dict[str, Any] = dict(loss=loss, l1=l1, sample_weight=s, epsilon=1.0)
    run = coordinate_descent(X, y, draws, step=step, **options)
    z = X @ run.weights + run.intercept
    pairs = zip(z, y, strict=True)
    slopes = s / s.sum() * [losses.derivative(loss, p, label, 1.0) for p, label in pairs]
    g, w = X.T @ slopes, run.weights
    assert 0 < np.count_nonzero(w) < 5
    assert np.all(np.abs(g[w == 0]) <= l1 + 1e-6)
    np.testing.assert_allclose(g[w != 0], -l1 * np.sign(w[w != 0]), atol=1e-6)
    assert slopes.sum() == pytest.approx(0, abs=1e-6)


def test_squared_loss_equals_the_lasso() -> None:
    X, y = problem(3, "squared", n=20, d=5)
    draws = scans(5, 500, 3, fit_intercept=True)
    for l1 in (0.01, 0.05):
        lasso = Lasso(alpha=l1, tol=1e-14).fit(X, y)
        run = coordinate_descent(X, y, draws, loss="squared", l1=l1)
        np.testing.assert_allclose(run.weights, lasso.coef_, atol=1e-7)
        assert run.intercept == pytest.approx(lasso.intercept_, abs=1e-7)


def test_coordinate_descent_by_hand() -> None:
    """Half-square loss; column 1 is empty, and the second row's weight is three times the first."""
    X, y, s = np.array([[2.0, 0.0], [1.0, 0.0]]), np.array([3.0, 1.0]), np.array([1.0, 3.0])
    # w_0: g = -(6 + 3)/4, mean square (4 + 3)/4: soft(9/7, l1 4/7) by coordinate.
    options: dict[str, Any] = dict(loss="squared", sample_weight=s)
    run = coordinate_descent(X, y, [1, 0], l1=0.5, **options)
    np.testing.assert_allclose(run.weights, [1.0, 0.0], rtol=1e-15)
    assert run.objectives == [pytest.approx(12 / 8), pytest.approx(1 / 8 + 0.5)]
    run = coordinate_descent(X, y, [0], l1=0.5, step="global", **options)
    np.testing.assert_array_equal(run.weights, [1.75, 0.0])  # soft(9/4, 1/2)
    for loss in ("squared", "square"):
        run = coordinate_descent(X, y, [INTERCEPT], loss=loss, l1=0.5, sample_weight=s)
        assert run.intercept == 1.5  # the weighted mean of y; no l1
    with pytest.raises(ValueError, match="hinge"):
        coordinate_descent(X, y, [0], loss="hinge")
    with pytest.raises(ValueError, match="clipped_square"):
        coordinate_descent(X, y, [0], loss="clipped_square")
    with pytest.raises(ValueError, match="step"):
        coordinate_descent(X, y, [0], loss="squared", step="none")


@pytest.mark.parametrize("loss", CURVATURE)
def test_curvature_bounds_the_second_derivative(loss: str) -> None:
    """The bound is reached at p = 0, up to the error of the difference quotient."""
    grid, h = np.linspace(-3, 3, 601), 1e-4
    for y in (-1.0, 1.0):
        slopes = [losses.derivative(loss, p, y) for p in grid]
        assert np.max(np.diff(slopes)) <= CURVATURE[loss] * (grid[1] - grid[0]) * (1 + 1e-9)
    y, p = (1.0, 0.0) if loss != "huber" else (0.0, 0.0)
    change = losses.derivative(loss, p + h, y) - losses.derivative(loss, p - h, y)
    assert change / (2 * h) == pytest.approx(CURVATURE[loss], rel=1e-6)


def test_weights_equal_repeated_rows() -> None:
    s = np.array([1, 2, 0, 3] * 5)
    X, y = problem(4, "logistic", n=20, d=5)
    draws = scans(5, 5, 4, fit_intercept=True)
    one = coordinate_descent(X, y, draws, loss="logistic", l1=0.02, sample_weight=s)
    rows = np.repeat(np.arange(20), s)
    two = coordinate_descent(X[rows], y[rows], draws, loss="logistic", l1=0.02)
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-12)
    np.testing.assert_allclose(one.objectives, two.objectives, rtol=1e-12)
    options: dict[str, Any] = dict(n_nonzero=2, step=0.05, iterations=9, fit_intercept=True)
    three = hard_threshold(X, y, sample_weight=s, **options)
    four = hard_threshold(X[rows], y[rows], **options)
    np.testing.assert_allclose(three.weights, four.weights, rtol=1e-12)
    np.testing.assert_allclose(three.psi, four.psi, rtol=1e-12)
    assert three.intercept == pytest.approx(four.intercept, rel=1e-12)


# Hard thresholding


def least_squares(seed: int, n: int = 20, d: int = 8) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    return X, X[:, :3] @ np.array([2.0, -1.0, 1.0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(("n", "d"), [(20, 8), (6, 15)])
@pytest.mark.parametrize("gamma", [3.0, 10.0, 100.0])
@pytest.mark.parametrize("s", [2, 5, 8])
def test_hard_threshold_equals_the_reference(
    reference: ModuleType, n: int, d: int, gamma: float, s: int
) -> None:
    """P-11: the spectral radii of the reference equal dense eigenvalues, too."""
    X, y = least_squares(5, n, d)
    # The reference makes one more update than requested.
    w, psi, rho = reference.grades(X, y, s, gamma, 9)
    run = hard_threshold(X, y, n_nonzero=s, step=1 / gamma, iterations=10)
    np.testing.assert_allclose(run.weights, w, rtol=1e-9)
    np.testing.assert_allclose(run.psi[:-1], psi, rtol=1e-9)
    np.testing.assert_array_equal(run.weights != 0, w != 0)
    dense = [spectral_radius(X, J, 1 / gamma) for J in run.supports[:-1]]
    np.testing.assert_allclose(dense, rho, rtol=1e-9)
    assert [len(J) for J in run.supports] == [d] + [min(s, d)] * 10


@given(seed=seeds, s=st.integers(0, 9), fit_intercept=st.booleans(), weighted=st.booleans())
def test_a_safe_step_never_increases_the_loss(
    seed: int, s: int, fit_intercept: bool, weighted: bool
) -> None:
    """R-10.6: eta is 1/smax^2 of the matrix with a column of ones. The bias is always kept."""
    X, y = least_squares(seed)
    weight = np.random.default_rng(seed).random(20) if weighted else np.ones(20)
    wide = np.column_stack([X, np.ones(20)]) if fit_intercept else X
    top = np.linalg.norm(np.sqrt(weight)[:, None] * wide, 2)
    run = hard_threshold(
        X,
        y,
        n_nonzero=s,
        step=1 / top**2,
        iterations=15,
        fit_intercept=fit_intercept,
        sample_weight=weight,
    )
    assert all(b <= a * (1 + 1e-12) + 1e-12 for a, b in itertools.pairwise(run.psi))
    assert np.count_nonzero(run.weights) <= s
    assert (run.intercept != 0) == fit_intercept
    residual = y - X @ run.weights - run.intercept
    assert run.psi[-1] == pytest.approx(0.5 * float(weight @ residual**2), rel=1e-9, abs=1e-12)


def test_a_long_step_diverges() -> None:
    """R-10.5, P-11: if eta smax^2 > 2, Psi grows, as with gamma = 3 on rows of one sign."""
    rng = np.random.default_rng(6)
    X = np.abs(rng.normal(size=(40, 30))) * (rng.random((40, 30)) < 0.5)
    y = np.sign(rng.normal(size=40))
    run = hard_threshold(X, y, n_nonzero=15, step=1 / 3, iterations=8)
    assert min(spectral_radius(X, J, 1 / 3) for J in run.supports) > 1
    assert all(b > a for a, b in itertools.pairwise(run.psi))


def test_without_a_limit_the_bias_equals_a_column_of_ones() -> None:
    X, y = least_squares(7)
    wide = np.column_stack([X, np.ones(20)])
    one = hard_threshold(X, y, n_nonzero=8, step=0.02, iterations=20, fit_intercept=True)
    two = hard_threshold(wide, y, n_nonzero=9, step=0.02, iterations=20)
    np.testing.assert_allclose([*one.weights, one.intercept], two.weights, rtol=1e-10)
    np.testing.assert_allclose(one.psi, two.psi, rtol=1e-10)


@given(v=st.lists(st.integers(-3, 3), min_size=1, max_size=6), s=st.integers(0, 6))
def test_hard_operator(v: list[int], s: int) -> None:
    """R-2.6: no other s columns are nearer; among equal columns, the first are kept."""
    vector = np.array(v, dtype=float)
    kept, J = H(vector, s)
    size = min(s, len(v))
    norms = {
        pick: float(np.sum(vector[list(pick)] ** 2))
        for pick in itertools.combinations(range(len(v)), size)
    }
    best = max(norms.values())
    # itertools yields the subsets in lexicographic order, so the first best has the lowest indices.
    assert tuple(J) == next(pick for pick, norm in norms.items() if norm == best)
    np.testing.assert_array_equal(kept[J], vector[J])
    assert np.sum(kept**2) == best


@pytest.mark.parametrize("rule", [coordinate_descent, hard_threshold])
def test_float32(rule: Any) -> None:
    X, y = problem(8, "squared")
    if rule is coordinate_descent:
        draws = scans(X.shape[1], 5, 8, fit_intercept=True)
        runs = [rule(X, y, draws, loss="squared", l1=0.01, dtype=t) for t in (np.float32, float)]
    else:
        options: dict[str, Any] = dict(n_nonzero=3, step=0.02, iterations=9, fit_intercept=True)
        runs = [rule(X, y, dtype=t, **options) for t in (np.float32, float)]
    assert runs[0].weights.dtype == np.float32
    np.testing.assert_allclose(runs[0].weights, runs[1].weights, atol=1e-5)
    assert runs[0].intercept == pytest.approx(runs[1].intercept, abs=1e-5)
