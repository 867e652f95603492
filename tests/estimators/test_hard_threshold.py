"""Gradient descent with hard thresholding equals the oracle; steps are safe (P-11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

import thresher
from oracles.hard_threshold import H, hard_threshold
from support.streams import streams
from thresher import DataError, DivergenceError, HardThresholdRegressor, ParameterError
from thresher.estimators.hard_threshold import LeastSquares, keep_largest


@given(data=st.data(), fit_intercept=st.booleans(), sparse=st.booleans())
def test_equals_the_oracle(data: st.DataObject, fit_intercept: bool, sparse: bool) -> None:
    stream = data.draw(streams("squared"))
    assume(len(stream.y) > 1 and (stream.weight is None or stream.weight.any()))
    kept = data.draw(st.integers(1, stream.width))
    iterations = data.draw(st.integers(1, 8))
    params: dict[str, Any] = {"n_nonzero": kept, "fit_intercept": fit_intercept}
    rows = stream.csr if sparse else stream.X, stream.y, stream.weight
    safe = HardThresholdRegressor(passes=1, **params).fit(*rows).step_
    e = HardThresholdRegressor(passes=iterations, tol=None, step=safe, **params).fit(*rows)
    oracle = hard_threshold(
        stream.X, stream.y, step=e.step_, iterations=iterations, sample_weight=stream.weight,
        **params,
    )  # fmt: skip
    np.testing.assert_allclose(e.psi_, oracle.psi, rtol=1e-10, atol=1e-12)
    near_tie = np.diff(np.sort(np.abs(oracle.weights))) < 1e-9
    if not near_tie.any() or kept == stream.width:
        np.testing.assert_allclose(e.coef_[0], oracle.weights, atol=1e-9)
    assert e.intercept_[0] == pytest.approx(oracle.intercept, abs=1e-9)
    assert e.model_.nnz <= kept
    assert np.all(np.diff(e.psi_) <= 1e-12 * e.psi_[0])
    s = np.ones(len(stream.y)) if stream.weight is None else stream.weight
    assert e.history_[-1].loss == pytest.approx(e.psi_[-1] / s.sum())


@given(
    values=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=1), s=st.integers(1, 9)
)
def test_of_equal_values_the_lower_index_is_kept(values: list[float], s: int) -> None:
    v = np.array(values)
    np.testing.assert_array_equal(keep_largest(v, s), H(v, s)[0])


@pytest.mark.parametrize("shape", [(30, 5), (50, 60), (300, 200), (20, 400)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_largest_eigenvalue_is_bounded(shape: tuple[int, int], fit_intercept: bool) -> None:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=shape) + 0.2, rng.random(shape[0])
    A = np.sqrt(s)[:, None] * (np.c_[X, np.ones(len(X))] if fit_intercept else X)
    true = np.linalg.norm(A, 2) ** 2
    found = LeastSquares(X, np.zeros(len(X)), s, fit_intercept).largest_eigenvalue()
    assert true <= found <= 1.02 * true


def text(rows: int = 200, width: int = 500) -> sp.csr_matrix:
    """Return tf-idf of words drawn from Zipf's law, not normalised (A-29)."""
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, rows * 60) - 1, width - 1)
    counts = sp.coo_matrix((np.ones(len(words)), (np.repeat(np.arange(rows), 60), words)))
    return TfidfTransformer(norm=None).fit_transform(counts.tocsr())


def test_gamma_3_diverges_on_text_with_a_warning_or_error() -> None:
    """P-11: 10 iterations end with a warning, 500 with an error; both name a safe step."""
    X = text()
    y = np.sign(np.asarray(X[:, 3].todense()).ravel() - 1.0) + 0.1
    with pytest.warns(ConvergenceWarning, match=r"rose in iteration 1.*a step of .* is safe") as w:
        e = HardThresholdRegressor(n_nonzero=40, step=1 / 3, passes=10, tol=None).fit(X, y)
    assert e.psi_[-1] > 1e10 * e.psi_[0]
    assert np.isfinite(e.coef_).all()
    with pytest.raises(DivergenceError, match=r"step 0.333 is too long.*step='safe'"):
        HardThresholdRegressor(n_nonzero=40, step=1 / 3, passes=500).fit(X, y)
    safe = float(str(w[0].message).split("a step of ")[1].split()[0])
    for step in (safe, "safe"):
        e = HardThresholdRegressor(n_nonzero=40, step=step, passes=50, tol=None).fit(X, y)
        assert np.all(np.diff(e.psi_) <= 1e-9 * e.psi_[0])
        assert e.step_ == pytest.approx(safe, rel=0.01)


def test_stopping_and_history(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 30))
    y = X[:, 1] - X[:, 2] + 3.0
    e = HardThresholdRegressor(n_nonzero=2, tol=1e-6).fit(X, y, eval_set=(X[:30], y[:30]))
    assert e.n_iter_ == len(e.history_) == len(e.psi_) - 1 < 200
    assert e.history_[-1].valid_loss == pytest.approx(
        0.5 * np.mean((e.predict(X[:30]) - y[:30]) ** 2)
    )
    assert e.model_.indices.tolist() == [1, 2]
    assert e.intercept_[0] == pytest.approx(3.0, abs=0.05)
    stopped = HardThresholdRegressor(callback=lambda record: record.examples >= 300).fit(X, y)
    assert stopped.n_iter_ == 3
    assert HardThresholdRegressor().fit(X, y).model_.nnz == 10  # at least 10
    assert not hasattr(e, "partial_fit")
    e.model_.save(tmp_path / "a.thresher")
    np.testing.assert_array_equal(thresher.load(tmp_path / "a.thresher").predict(X), e.predict(X))


def test_bad_arguments_are_refused() -> None:
    X, y = np.eye(6), np.arange(6.0)
    with pytest.raises(ParameterError, match="n_nonzero must be at most the number of features, 6"):
        HardThresholdRegressor(n_nonzero=7).fit(X, y)
    for bad in (np.nan, np.inf, 1e200):
        X[3, 2] = bad
        for rows in (X, sp.csr_matrix(X)):
            with pytest.raises(DataError, match="row 3: the value of feature 2 is"):
                HardThresholdRegressor().fit(rows, y)
    for huge, what in (((1e153 * np.ones((6, 6)), y), "X"), ((np.eye(6), 1e200 * y), "y")):
        with pytest.raises(ValueError, match=f"{what} is too large"):
            HardThresholdRegressor(step="safe" if what == "X" else 0.1).fit(*huge)
    with pytest.raises(ValueError, match="non-zero"):
        HardThresholdRegressor().fit(np.eye(6), y, sample_weight=np.zeros(6))


def test_rows_of_zeros() -> None:
    for X in (np.zeros((5, 3)), sp.csr_matrix((5, 30))):
        e = HardThresholdRegressor(fit_intercept=False).fit(X, np.ones(5))
        assert not e.coef_.any()
