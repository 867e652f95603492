"""One fit of the selected features, against direct computations and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import thresher
from support.files import svmlight
from thresher.data.labels import ManyClasses, NumericLabels, TwoClasses
from thresher.data.matrix_source import MatrixSource
from thresher.discovery.joint_fit import JointFit, gathered


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 100.0, 0.01, 1.0]
    signal = X @ [1.0, -0.01, 50.0, 0.0]
    return rng, X, signal


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_are_those_of_a_logistic_regression(weighted, sparse):
    rng, X, signal = rows()
    y = (signal + rng.logistic(size=len(X)) > 0).astype(float)
    h = rng.choice([0.0, 0.5, 1.0, 3.0], len(X)) if weighted else None
    fit = JointFit.of(sp.csr_matrix(X) if sparse else X, y[None], h, classifies=True, ridge=1e-9)
    expected = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000, solver="newton-cg")
    scale = np.sqrt((X**2).mean(axis=0))
    expected.fit(X / scale, y, sample_weight=h)
    np.testing.assert_allclose(fit.weights[0], expected.coef_[0] / scale, rtol=1e-4)
    np.testing.assert_allclose(fit.intercepts, expected.intercept_, rtol=1e-4, atol=1e-6)
    D, p = np.c_[X, np.ones(len(X))], expected.predict_proba(X / scale)[:, 1]
    v = p * (1 - p) * (1.0 if h is None else h)
    errors = np.sqrt(np.diag(np.linalg.inv(D.T @ (D * v[:, None]))))
    np.testing.assert_allclose(fit.wald[0], fit.weights[0] / errors[:-1], rtol=1e-3)
    assert fit.stands().tolist()[:3] == [True, True, True]
    np.testing.assert_array_equal(fit.stands(least=1e9), False)


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_those_of_least_squares(weighted):
    rng, X, signal = rows(1)
    y = 1e6 + 1e3 * (signal + rng.normal(size=len(X)))
    h = rng.choice([0.5, 1.0, 3.0], len(X)) if weighted else np.ones(len(X))
    fit = JointFit.of(X, y[None], h if weighted else None, classifies=False, ridge=1e-9)
    D = np.c_[X, np.ones(len(X))]
    cross = D.T @ (D * h[:, None])
    expected = np.linalg.solve(cross, D.T @ (h * y))
    np.testing.assert_allclose(fit.weights[0], expected[:-1], rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(fit.intercepts[0], expected[-1], rtol=1e-9)
    variance = (h * (y - D @ expected) ** 2).sum() / (h.sum() - 5)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(cross)))
    np.testing.assert_allclose(fit.wald[0], (expected / errors)[:-1], rtol=1e-4, atol=1e-6)


def test_the_penalty_is_of_scaled_columns():
    rng, X, signal = rows(2)
    y = (signal + rng.logistic(size=len(X)) > 0).astype(float)
    fit = JointFit.of(X, y[None], None, classifies=True, ridge=5.0)
    scale = np.sqrt((X**2).mean(axis=0))
    D, sign = np.c_[X / scale, np.ones(len(X))], 2 * y - 1

    def loss(c):
        return np.logaddexp(0, -sign * (D @ c)).sum() + 2.5 * (c @ c)

    expected = minimize(loss, np.zeros(5), tol=1e-10).x
    np.testing.assert_allclose(fit.weights[0] * scale, expected[:-1], rtol=1e-4, atol=1e-5)


def test_separable_and_copied_columns_have_an_answer():
    x = np.r_[-np.ones(50), np.ones(50)]
    X = np.c_[x, x, np.zeros(100)]
    fit = JointFit.of(X, (x > 0).astype(float)[None], None, classifies=True)
    assert np.isfinite(fit.weights).all()
    assert np.isfinite(fit.wald).all()
    assert fit.weights[0, 0] == pytest.approx(fit.weights[0, 1])
    assert fit.weights[0, 0] > 0
    assert abs(fit.weights[0, 2]) < 1e-9


def test_several_outputs():
    rng, X, signal = rows(3)
    y = np.stack([signal > 0.5, signal < -0.5]).astype(float)
    y = np.where(rng.random(y.shape) < 0.1, 1 - y, y)
    both = JointFit.of(X, y, None, classifies=True)
    for output in range(2):
        alone = JointFit.of(X, y[[output]], None, classifies=True)
        np.testing.assert_array_equal(both.weights[output], alone.weights[0])
        np.testing.assert_array_equal(both.wald[output], alone.wald[0])


def test_columns_gathered_from_files_and_matrices(tmp_path):
    path = svmlight(tmp_path / "rows.svm", rows=120)
    source = thresher.scan(path)
    whole, y = source_matrix(source)
    keys = np.array([0, 7, 8, 59, 1000], np.uint64)
    X, targets, h = gathered(source, keys, TwoClasses(0.0))
    assert h is None
    np.testing.assert_array_equal(X.toarray()[:, :4], whole[:, [0, 7, 8, 59]])
    assert X[:, 4].nnz == 0
    np.testing.assert_array_equal(targets, (y > 0)[None])
    weights = np.arange(120.0)
    for rows_of in (whole, sp.csr_matrix(whole)):
        memory = MatrixSource(rows_of, y, weights)
        X, targets, h = gathered(memory, keys[:4], ManyClasses([-1, 1], 0.0))
        np.testing.assert_array_equal(X.toarray(), whole[:, [0, 7, 8, 59]])
        np.testing.assert_array_equal(h, weights)
    nothing, numbers, _ = gathered(source, keys[:0], NumericLabels())
    assert nothing.shape == (120, 0)
    np.testing.assert_array_equal(numbers[0], y)


def source_matrix(source):
    found, labels = np.zeros((120, 60)), np.zeros(120)
    for block in source.blocks():
        for row in range(block.rows):
            at = slice(block.native.starts[row], block.native.starts[row + 1])
            found[row, np.asarray(block.native.keys[at]).astype(int)] = block.native.values[at]
        labels[: block.rows] = block.label_sets()[1]
    return found, labels
