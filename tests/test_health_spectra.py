"""Numerical health against dense linear algebra, brute force and the reference (P-11)."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import thresher
from oracles import losses
from test_certificates import load_reference
from thresher import DataError, ParameterError
from thresher.health import (
    check,
    dynamic_range,
    exponents,
    potential,
    safe_step,
    spectral_radius,
)
from thresher.preprocessing import UnitVarianceScaler


def _sparse(rows: int, columns: int, density: float, seed: int = 0) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    return sp.random(rows, columns, density, "csr", rng=rng, data_rvs=rng.standard_normal)


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
    assert "single precision loses 50% beside the largest, double 25%" in str(spread)


def test_exponents_equal_the_reference() -> None:
    w = np.random.default_rng(3).normal(size=500) ** 21
    theirs, ours = load_reference().exponent_stats(w), exponents(w)
    assert (ours.within, ours.mean, ours.std, ours.largest) == (
        theirs["within"], theirs["mean"], theirs["std"], theirs["emax"],
    )  # fmt: skip


def test_exponents_of_nothing_and_of_nonsense() -> None:
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
    ("rows", "columns", "density"), [(900, 450, 0.05), (600, 500, 0.3), (450, 900, 0.05)]
)
def test_lanczos_equals_dense(rows: int, columns: int, density: float) -> None:
    """Beyond 400 rows and columns, smallest singular values included."""
    X = _sparse(rows, columns, density)
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


def test_lanczos_that_gives_up_says_so() -> None:
    X = _sparse(900, 450, 0.05)
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
    X = _sparse(150, 30_000, 0.001)
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
    exactly = spectral_radius(np.ones((1, 2)), 1.0)  # a null space is no divergence
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
    X, J = _sparse(60, 40, 0.2), np.arange(0, 40, 3)
    theirs = load_reference().spectral_radius(X, J, 0.02)
    assert spectral_radius(X, 0.02, J).radius == pytest.approx(theirs, rel=1e-9)


# ---- safe steps ----------------------------------------------------------------------------------

CURVED = ("logistic", "squared", "huber", "square", "squared_hinge", "clipped_square")


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", CURVED)
def test_safe_batch_step_never_raises_the_loss(loss: str, weighted: bool, intercept: bool) -> None:
    """R-10.6: on the sum of the losses; and it is 1 / (curvature * largest eigenvalue)."""
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
    curvature = {"logistic": 0.25, "squared": 1.0, "huber": 1.0}.get(loss, 2.0)
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
    X = _sparse(900, 450, 0.05)
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
    X, rng = _sparse(30, 10, 0.4), np.random.default_rng(0)
    y, w = rng.normal(size=30), rng.normal(size=10)
    assert potential(X, y, w) == pytest.approx(0.5 * np.sum((y - X @ w) ** 2))
    eta = safe_step(X).batch
    for _ in range(20):
        after = w + eta * X.T @ (y - X @ w)
        assert potential(X, y, after) <= potential(X, y, w)
        w = after
    with pytest.raises(ParameterError, match="do not fit"):
        potential(X, y[:-1], w)


# ---- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_dynamic_range_names_the_odd_columns(make: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, size=(50, 8)) * (rng.random((50, 8)) < 0.9)
    X[:, 2], X[:, 3], X[:, 4] = X[:, 2] * -1e9, X[:, 3] * 1e-8, 0.0
    X[:, 5] = -1.0
    X[:, 6] = np.where(np.arange(50) % 2, 1.0, -1.0)  # as large everywhere, and not constant
    found = dynamic_range(make(X), names=[f"f{j}" for j in range(8)])
    assert [(c.column, c.name) for c in found.columns] == [(2, "f2"), (3, "f3")]
    assert found.columns[0].ratio > 1e6
    assert found.columns[1].ratio < 1e-6
    assert "column 2 'f2' is" in str(found)
    assert "times smaller than the median column: scale it" in str(found)
    assert found.constant == (5,)
    assert found.empty == 1
    values = np.abs(X[X != 0])
    assert (found.largest, found.smallest) == (values.max(), values.min())
    assert found.ratio == values.max() / values.min()
    columns = np.abs(X).max(axis=0)
    assert found.median == np.median(columns[columns > 0])
    assert not dynamic_range(make(X), factor=1e12).columns


def test_dynamic_range_edge_cases() -> None:
    assert str(dynamic_range(np.zeros((2, 3)))) == "no values that are not zero"
    assert dynamic_range(np.zeros((2, 3))).empty == 3
    assert dynamic_range([[1.0, 1e-40]]).subnormal == 0.5
    wild = dynamic_range([[1e308, 1e-300, 1e-320]])
    assert [c.column for c in wild.columns] == [0, 2]
    assert "column 0 is inf times larger" in str(wild)
    assert len(check([[1e308, 1e-300, 1e-320]]).warnings) == 4
    assert "50.00% of the values are too small" in str(dynamic_range([[1.0, 1e-40]]))
    frame = pd.DataFrame({"age": [40.0, 50.0], "height": [1.8, 1.7], "salary": [9e9, 8e9]})
    assert [c.name for c in dynamic_range(frame).columns] == ["salary"]
    wide = dynamic_range(np.r_[np.ones(40), np.full(15, 1e7)][None])
    assert "5 more columns" in str(wide)
    with pytest.raises(ParameterError, match="names must be 2"):
        dynamic_range([[1.0, 2.0]], names=["a"])
    with pytest.raises(ParameterError, match="factor must be > 1"):
        dynamic_range([[1.0, 2.0]], factor=1.0)
    with pytest.raises(DataError, match="row 1, column 2: inf"):
        dynamic_range(sp.csr_matrix([[1.0, 0, 0], [0, 0, math.inf]]))
    with pytest.raises(ParameterError, match="rows and columns"):
        dynamic_range([1.0, 2.0])


def test_dynamic_range_of_two_columns_blames_the_larger() -> None:
    for X, odd in (([[1.0, 5e4]], 1), ([[5e4, 1.0]], 0), ([[1e-5, 0.0, 1.0]], 2)):
        found = dynamic_range(X).columns
        assert [column.column for column in found] == [odd]
        assert found[0].ratio > 1e3
    four = dynamic_range([[1.0, 1.0, 1e5, 1e5]]).columns
    assert [column.column for column in four] == [2, 3]
    assert not dynamic_range([[1.0, 999.0]]).columns
    assert dynamic_range([[1.0, 1001.0]]).columns


def test_data_is_left_alone() -> None:
    X = sp.csr_matrix(([1.0, 2.0, 0.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    before = [part.copy() for part in (X.data, X.indices, X.indptr)]
    check(X), spectral_radius(X, 0.1), safe_step(X, fit_intercept=True)
    for now, then in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(now, then)


# ---- check ---------------------------------------------------------------------------------------


def test_check_of_healthy_data() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    y = X[:, 0]
    reg = thresher.TruncatedGradientRegressor(random_state=0).fit(X, y)
    report = check(X, y, reg)
    assert report.warnings == ()
    assert str(report).endswith("healthy")
    assert report.exponents == exponents(reg)
    assert check(X).exponents is None


def test_check_warns() -> None:
    X = np.random.default_rng(0).normal(size=(100, 4))
    X[:, 3] *= 1e8
    assert "column 3" in check(X).warnings[0]
    X[:, 3] = 0.0
    rate = thresher.TruncatedGradientRegressor(eta0=1.0)
    assert "eta0 = 1 may diverge" in check(X, estimator=rate).warnings[0]
    bounded = thresher.TruncatedGradientRegressor(loss="absolute", eta0=1.0)
    assert check(X, estimator=bounded).warnings == ()
    averaged = thresher.AveragedSGDRegressor(loss="squared", alpha=1e-4)
    assert "1/(alpha t)" in check(X, estimator=averaged).warnings[0]
    assert "nothing to learn" in check(X, np.ones(100)).warnings[0]
    assert check(X, np.array(["a", "b"] * 50)).warnings == ()
    with pytest.raises(DataError, match="row 1: the label"):
        check(X[:2], [1.0, math.nan])
    with pytest.raises(ParameterError, match="y must have 100"):
        check(X, [1.0])


def test_check_says_for_which_loss() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert "safe step for squared loss: " in str(check(X))
    for estimator, loss in (
        (thresher.TruncatedGradientClassifier(), "logistic"),
        (thresher.MarginPerceptronClassifier(), "margin"),
        (thresher.HardThresholdRegressor(), "squared"),
        (thresher.TruncatedGradientRegressor(loss="poisson"), "poisson"),
        (LogisticRegression(), "squared"),
    ):
        report = check(X, estimator=estimator)
        assert report.step.loss == loss
        assert f"safe step for {loss} loss: " in str(report)
        assert report.warnings == ()  # a margin perceptron has no rate that diverges
        assert report.note == ""


def test_check_of_a_pipeline_looks_at_its_last_step() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    steep = thresher.TruncatedGradientRegressor(loss="square", eta0=10.0)
    for pipeline in (
        make_pipeline(UnitVarianceScaler(), steep),
        make_pipeline(UnitVarianceScaler(), Pipeline([("inner", steep)])),
    ):
        report = check(X, X[:, 0], pipeline)
        assert report.step.loss == "square"
        assert "eta0 = 10 may diverge" in report.warnings[0]
        assert "X must be what that step gets" in str(report)
    fitted = make_pipeline(UnitVarianceScaler(), thresher.FTRLRegressor()).fit(X, X[:, 0])
    assert check(X, X[:, 0], fitted).exponents == exponents(fitted[-1])
    assert check(X, X[:, 0], make_pipeline(UnitVarianceScaler(), "passthrough")).warnings == ()


def test_check_of_rows_of_zeros() -> None:
    report = check(np.zeros((3, 2)), [0, 1, 0])
    assert report.warnings == ("all rows are zero: there is nothing to learn from",)
    assert "inf" not in str(report)
    assert check(sp.csr_matrix((3, 2))).warnings == report.warnings


def test_check_of_tiny_and_huge_values() -> None:
    X = np.random.default_rng(0).uniform(0.5, 1.0, size=(50, 3))
    assert check(X).warnings == ()
    for size, word in ((1e-7, "tiny"), (1e-200, "tiny"), (1e7, "huge")):
        (warning,) = [line for line in check(X * size).warnings if "single" not in line]
        assert f"the values are {word}" in warning
        assert "UnitVarianceScaler" in warning
        assert "inf" not in str(check(X * size))


def test_check_of_poisson_rates() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) * 10
    steep = thresher.TruncatedGradientRegressor(loss="poisson", eta0=1.0)
    assert "eta0 = 1 may diverge" in check(X, estimator=steep).warnings[0]
    assert check(X, estimator=steep.set_params(eta0=1e-6)).warnings == ()


def test_radius_of_one_with_a_safe_step_is_no_divergence() -> None:
    wide = _sparse(20, 50, 0.3)
    found = spectral_radius(wide, safe_step(wide).batch)
    assert found.radius == pytest.approx(1.0)
    assert found.unseen
    assert str(found).endswith("converges at this step, save in directions that X does not see")
    assert spectral_radius(np.zeros((3, 2)), 0.5).unseen
    edge = spectral_radius(np.eye(2), 2.0)  # |1 - 2| = 1: it swings for ever
    assert not edge.unseen
    assert "may not converge" in str(edge)
    tall = spectral_radius(np.eye(3), 0.5)
    assert not tall.unseen
    assert str(tall).endswith("converges at this step")
    steep = spectral_radius(wide, 100.0)
    assert not steep.unseen
    assert "diverges" in str(steep)


def test_import_is_light() -> None:
    code = "import sys, thresher.health; print({'scipy', 'sklearn'} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "set()"
