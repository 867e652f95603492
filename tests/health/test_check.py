"""The dynamic range of data, and `check` before training (P-11)."""

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
from support.sparse_rows import sparse_rows
from thresher import DataError, ParameterError
from thresher.health import (
    check,
    dynamic_range,
    exponents,
    safe_step,
    spectral_radius,
)
from thresher.preprocessing import UnitVarianceScaler

# ---- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_dynamic_range_names_the_odd_columns(make: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, size=(50, 8)) * (rng.random((50, 8)) < 0.9)
    X[:, 2], X[:, 3], X[:, 4] = X[:, 2] * -1e9, X[:, 3] * 1e-8, 0.0
    X[:, 5] = -1.0
    X[:, 6] = np.where(np.arange(50) % 2, 1.0, -1.0)  # constant magnitude, but not constant
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


def test_of_two_columns_the_larger_is_odd() -> None:
    for X, odd in (([[1.0, 5e4]], 1), ([[5e4, 1.0]], 0), ([[1e-5, 0.0, 1.0]], 2)):
        found = dynamic_range(X).columns
        assert [column.column for column in found] == [odd]
        assert found[0].ratio > 1e3
    four = dynamic_range([[1.0, 1.0, 1e5, 1e5]]).columns
    assert [column.column for column in four] == [2, 3]
    assert not dynamic_range([[1.0, 999.0]]).columns
    assert dynamic_range([[1.0, 1001.0]]).columns


def test_data_are_not_changed() -> None:
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


def test_check_names_the_loss() -> None:
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
        assert report.warnings == ()  # a margin perceptron diverges with no rate
        assert report.note == ""


def test_check_of_a_pipeline_checks_its_last_step() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    steep = thresher.TruncatedGradientRegressor(loss="square", eta0=10.0)
    for pipeline in (
        make_pipeline(UnitVarianceScaler(), steep),
        make_pipeline(UnitVarianceScaler(), Pipeline([("inner", steep)])),
    ):
        report = check(X, X[:, 0], pipeline)
        assert report.step.loss == "square"
        assert "eta0 = 10 may diverge" in report.warnings[0]
        assert "X must be the input of that step" in str(report)
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


def test_a_radius_of_one_with_a_safe_step_is_not_divergence() -> None:
    wide = sparse_rows(20, 50, 0.3)
    found = spectral_radius(wide, safe_step(wide).batch)
    assert found.radius == pytest.approx(1.0)
    assert found.unseen
    assert str(found).endswith("converges at this step, except in the null space of X")
    assert spectral_radius(np.zeros((3, 2)), 0.5).unseen
    edge = spectral_radius(np.eye(2), 2.0)  # |1 - 2| = 1: it oscillates forever
    assert not edge.unseen
    assert "may not converge" in str(edge)
    tall = spectral_radius(np.eye(3), 0.5)
    assert not tall.unseen
    assert str(tall).endswith("converges at this step")
    steep = spectral_radius(wide, 100.0)
    assert not steep.unseen
    assert "diverges" in str(steep)


def test_import_does_not_import_scipy() -> None:
    code = "import sys, thresher.health; print({'scipy', 'sklearn'} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "set()"
