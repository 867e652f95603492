"""Exponents, spectra and safe steps against dense linear algebra and the reference (P-11)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import thresher
from oracles import losses
from support.reference import load_reference
from support.slices import sliced
from support.sparse_rows import sparse_rows
from thresher import DataError, ParameterError
from thresher.health import (
    exponents,
    potential,
    safe_step,
    spectral_radius,
)

# ---- exponents -----------------------------------------------------------------------------------


def test_exponents_of_everything_that_has_weights() -> None:
    X = np.random.default_rng(0).normal(size=(200, 5))
    clf = thresher.TruncatedGradientClassifier(random_state=0).fit(X, X[:, 0] > 0)
    spread = exponents(clf)
    assert spread == exponents(clf.model_) == exponents(clf.coef_)
    assert spread == exponents(sp.csr_matrix(clf.coef_))
    assert sum(spread.counts.values()) == clf.model_.nnz


def test_exponents_by_brute_force() -> None:
    w = np.array([3.0, -8.0, 0.0, 2.0**-19, 2.0**-20, 2.0**-48, 2.0**-49, 5e-324, 0.5])
    spread = exponents(w)
    e = [math.floor(math.log2(abs(v))) for v in w if v and abs(v) > 1e-300] + [-1074]
    assert spread.mean == pytest.approx(np.mean(e))
    assert spread.std == pytest.approx(np.std(e))
    assert (spread.largest, spread.smallest) == (3, -1074)
    assert spread.within == 6 / 8  # to 2^-48
    assert spread.within_single == 4 / 8  # to 2^-19
    assert spread.counts == dict(sorted((v, e.count(v)) for v in set(e)))
    assert list(spread.counts) == sorted(spread.counts)
    assert "added to the largest, single precision loses 50%, double 25%" in str(spread)


def test_exponents_equal_the_reference() -> None:
    w = np.random.default_rng(3).normal(size=500) ** 21
    theirs, ours = load_reference().exponent_stats(w), exponents(w)
    assert (ours.within, ours.mean, ours.std, ours.largest) == (
        theirs["within"], theirs["mean"], theirs["std"], theirs["emax"],
    )  # fmt: skip


def test_exponents_without_weights_and_of_bad_input() -> None:
    nothing = exponents(np.zeros(4))
    assert str(nothing) == "no nonzero weights"
    assert nothing.within is None
    assert nothing.largest is None
    assert nothing.counts == {}
    assert "loses none" in str(exponents([1.0, 1.5]))
    with pytest.raises(DataError, match="not finite"):
        exponents([1.0, math.inf])
    with pytest.raises(ParameterError, match="fitted estimator"):
        exponents(thresher.TruncatedGradientClassifier())


# ---- spectra -------------------------------------------------------------------------------------


def _dense_radius(X: Any, eta: float, support: np.ndarray) -> float:
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    D = np.diag(np.isin(np.arange(X.shape[1]), support).astype(float))
    M = np.eye(X.shape[1]) - eta * X.T @ X
    return float(np.abs(np.linalg.eigvals(D @ M)).max())


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (25, 25), (1, 7), (7, 1)])
@pytest.mark.parametrize("eta", [0.001, 0.05, 0.5])
def test_radius_equals_dense_eigenvalues(shape: tuple[int, int], eta: float) -> None:
    """P-11, R-10.4: any shape, any support, sparse or dense, mask or indices."""
    rng = np.random.default_rng(shape[0])
    X = rng.normal(size=shape) * (rng.random(shape) < 0.7)
    for size in {1, shape[1] // 2 + 1, shape[1]}:
        support = rng.permutation(shape[1])[:size]
        expected = _dense_radius(X, eta, support)
        mask = np.isin(np.arange(shape[1]), support)
        for given, J in ((X, support), (sp.csr_matrix(X), mask), (sp.csc_matrix(X), support)):
            found = spectral_radius(given, eta, J)
            assert found.radius == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert found.converged
            assert found.interval == (found.radius, found.radius)
            assert found.diverges == (eta * found.largest_singular**2 > 2)


@pytest.mark.parametrize(
    ("rows", "columns", "density"),
    sliced([(900, 450, 0.05), (600, 500, 0.3), (450, 900, 0.05)], 0, 2),
)
def test_lanczos_equals_dense(rows: int, columns: int, density: float) -> None:
    """There are more than 400 rows and columns; the smallest singular values are equal, too."""
    X = sparse_rows(rows, columns, density)
    s = np.linalg.svd(X.toarray(), compute_uv=False)
    smallest = s[-1] if rows >= columns else 0.0
    for eta in (0.3 / s[0] ** 2, 1.0 / s[0] ** 2, 3.0 / s[0] ** 2):
        found = spectral_radius(X, eta)
        expected = max(abs(1 - eta * s[0] ** 2), abs(1 - eta * smallest**2))
        assert found.converged
        assert found.radius == pytest.approx(expected, abs=1e-6)
        assert found.largest_singular == pytest.approx(s[0], rel=1e-8)
        assert found.smallest_singular**2 == pytest.approx(smallest**2, abs=1e-6 * s[0] ** 2)
        assert found == spectral_radius(X, eta)  # deterministic
    support = np.arange(columns - 20)
    part = np.linalg.svd(X[:, support].toarray(), compute_uv=False)
    found = spectral_radius(X, 1.0 / part[0] ** 2, support)
    assert found.largest_singular == pytest.approx(part[0], rel=1e-8)


def test_lanczos_without_convergence_gives_bounds() -> None:
    X = sparse_rows(900, 450, 0.05)
    s = np.linalg.svd(X.toarray(), compute_uv=False)
    eta = 1.0 / s[0] ** 2
    expected = _dense_radius(X, eta, np.arange(450))
    found = spectral_radius(X, eta, max_iter=1, tol=1e-14)
    assert not found.converged
    low, high = found.interval
    assert low <= expected <= high == found.radius
    assert low < high
    assert not found.diverges
    assert found.largest_singular >= s[0] * (1 - 1e-9)
    assert found.smallest_singular >= s[-1] * (1 - 1e-9)
    assert "between" in str(found)


def test_many_columns_few_rows_use_the_gram_matrix() -> None:
    X = sparse_rows(150, 10_000, 0.001)
    s = np.linalg.svd(X.toarray(), compute_uv=False)
    found = spectral_radius(X, 0.1)
    assert found.largest_singular == pytest.approx(s[0], rel=1e-9)
    assert found.smallest_singular == 0.0
    tall = spectral_radius(X.T, 0.1)
    assert tall.smallest_singular == pytest.approx(s[-1], abs=1e-6)


def test_radius_edge_cases() -> None:
    assert spectral_radius(np.eye(3), 0.5, []).radius == 0.0
    assert spectral_radius(np.eye(3), 0.5, np.zeros(3, dtype=bool)).radius == 0.0
    assert spectral_radius(np.zeros((3, 2)), 0.5).radius == 1.0
    assert spectral_radius(np.zeros((0, 2)), 0.5).radius == 1.0
    exactly = spectral_radius(np.ones((1, 2)), 1.0)  # a null space is not divergence
    assert exactly.radius == pytest.approx(1.0)
    assert not exactly.diverges
    twice = sp.csr_matrix(([1.0, 2.0], ([0, 0], [0, 0])), shape=(1, 1))
    assert spectral_radius(twice, 1.0).largest_singular == pytest.approx(3.0)
    huge = spectral_radius([[1e200]], 1.0)
    assert huge.diverges
    assert huge.radius == math.inf
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ParameterError, match="eta must be"):
            spectral_radius(np.eye(2), bad)
    for support in ([5], [True, False, True]):
        with pytest.raises(ParameterError, match="support must be"):
            spectral_radius(np.eye(2), 0.1, support)
    with pytest.raises(DataError, match="row 1, column 0: nan"):
        spectral_radius([[1.0, 2.0], [math.nan, 0.0]], 0.1)


def test_radius_equals_the_reference() -> None:
    X, J = sparse_rows(60, 40, 0.2), np.arange(0, 40, 3)
    theirs = load_reference().spectral_radius(X, J, 0.02)
    assert spectral_radius(X, 0.02, J).radius == pytest.approx(theirs, rel=1e-9)


# ---- safe steps ----------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", losses.CURVATURE)
def test_safe_batch_step_never_raises_the_loss(loss: str, weighted: bool, intercept: bool) -> None:
    """R-10.6: the loss is the sum over rows; the step is 1 / (curvature * largest eigenvalue)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    X[:, 5] += 1.0
    y = rng.random(40) if loss == "clipped_square" else rng.choice([-1.0, 1.0], 40)
    weight = rng.random(40) * 3 if weighted else np.ones(40)
    step = safe_step(sp.csr_matrix(X), loss, weight if weighted else None, intercept)
    Z = np.array([x * losses.row_scale(loss, x) for x in X])
    row = np.linalg.norm(Z, axis=1)
    assert step.largest_row == pytest.approx(row.max())
    Z = np.column_stack([Z, np.ones(40)]) if intercept else Z
    curvature = losses.CURVATURE[loss]
    top = np.linalg.eigvalsh(Z.T @ (weight[:, None] * Z))[-1]
    assert step.batch == pytest.approx(1 / (curvature * top))
    assert step.online == pytest.approx(1 / (curvature * (weight * (Z**2).sum(axis=1)).max()))

    def total(w: np.ndarray) -> float:
        return float(
            sum(a * losses.value(loss, p, t) for a, p, t in zip(weight, Z @ w, y, strict=True))
        )

    w = rng.normal(size=Z.shape[1])
    for _ in range(50):
        slopes = [losses.derivative(loss, p, t) for p, t in zip(Z @ w, y, strict=True)]
        after = w - step.batch * Z.T @ (weight * np.array(slopes))
        assert total(after) <= total(w) + 1e-9
        w = after


def test_safe_step_of_large_data_is_that_of_the_lanczos_iteration() -> None:
    X = sparse_rows(900, 450, 0.05)
    largest = np.linalg.norm(X.toarray(), 2)
    assert safe_step(X).batch == pytest.approx(1 / largest**2)


@pytest.mark.parametrize(
    "loss", ["hinge", "absolute", "quantile", "epsilon_insensitive", "poisson"]
)
def test_no_safe_step_without_curvature(loss: str) -> None:
    step = safe_step([[3.0, 4.0], [1.0, 0.0]], loss)
    assert step.batch is None
    assert step.online is None
    assert step.largest_row == 5.0
    assert "not available, because" in str(step)
    assert loss in step.reason


def test_safe_step_edge_cases() -> None:
    assert safe_step(np.zeros((2, 2))).batch == math.inf
    with pytest.raises(ParameterError, match="loss must be one of logistic"):
        safe_step(np.eye(2), "cubic")
    for weight in ([1.0], [1.0, -1.0], [1.0, math.nan]):
        with pytest.raises(ParameterError, match="sample_weight"):
            safe_step(np.eye(2), sample_weight=weight)


def test_potential() -> None:
    X, rng = sparse_rows(30, 10, 0.4), np.random.default_rng(0)
    y, w = rng.normal(size=30), rng.normal(size=10)
    assert potential(X, y, w) == pytest.approx(0.5 * np.sum((y - X @ w) ** 2))
    eta = safe_step(X).batch
    for _ in range(20):
        after = w + eta * X.T @ (y - X @ w)
        assert potential(X, y, after) <= potential(X, y, w)
        w = after
    with pytest.raises(ParameterError, match="do not fit"):
        potential(X, y[:-1], w)
