"""One fit of the selected features, against direct computations and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import thresher
from support.files import svmlight
from support.slices import sliced
from thresher.data.labels import ManyClasses, NumericLabels, TwoClasses
from thresher.data.matrix_source import MatrixSource
from thresher.discovery.joint_fit import JointFit, gathered


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 100.0, 0.01, 1.0]
    signal = X @ [1.0, -0.01, 50.0, 0.0]
    return rng, X, signal


def penalised(X, y, h, classifies):
    """Minimise the loss with a penalty of 1 on columns with mean square 1, directly."""
    h = h / h[h > 0].mean()
    scale = np.r_[np.sqrt(np.average(X**2, axis=0, weights=h)), 1.0]
    D, penalty = np.c_[X, np.ones(len(X))] / scale, np.r_[np.ones(X.shape[1]), 0.0]

    def loss(c):
        f = D @ c
        each = np.logaddexp(0, f) - y * f if classifies else (y - f) ** 2 / 2
        return h @ each + (penalty * c * c).sum() / 2

    def slope(c):
        p = 1 / (1 + np.exp(-(D @ c))) if classifies else D @ c
        return D.T @ (h * (p - y)) + penalty * c

    c = minimize(loss, np.zeros(D.shape[1]), jac=slope, tol=1e-12, options={"gtol": 1e-9}).x
    p = 1 / (1 + np.exp(-(D @ c)))
    v = h * (p * (1 - p) if classifies else 1.0)
    inverse = np.linalg.inv(D.T @ (D * v[:, None]) + np.diag(penalty))
    spread = D.T @ (D * (h * v)[:, None]) + np.diag(penalty)  # of the gradient
    sd = 1.0 if classifies else np.sqrt((h * (y - D @ c) ** 2).sum() / (h.sum() - len(c)))
    return c / scale, sd * np.sqrt(np.diag(inverse @ spread @ inverse)) / scale


@pytest.mark.parametrize("classifies", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_and_errors_equal_a_direct_computation(classifies, weighted, sparse):
    rng, X, signal = rows()
    noisy = signal + rng.logistic(size=len(X))
    y = (noisy > 0).astype(float) if classifies else 10 + 3 * noisy
    h = rng.choice([0.0, 0.5, 1.0, 3.0], len(X)) if weighted else np.ones(len(X))
    given = sp.csr_matrix(X) if sparse else X
    fit = JointFit.of(given, y[None], h if weighted else None, classifies=classifies)
    weights, errors = penalised(X, y, h, classifies)
    np.testing.assert_allclose(fit.weights[0], weights[:-1], rtol=1e-3, atol=1e-5 * abs(weights[0]))
    np.testing.assert_allclose(fit.intercepts[0], weights[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fit.wald[0], (weights / errors)[:-1], rtol=1e-3, atol=1e-4)
    pruned, stays = JointFit.pruned(given, y[None], h if weighted else None, classifies=classifies)
    assert stays.tolist()[:3] == [True, True, True]
    again = JointFit.of(given[:, stays], y[None], h if weighted else None, classifies=classifies)
    np.testing.assert_allclose(pruned.wald, again.wald, rtol=1e-6)
    nothing, none = JointFit.pruned(given, y[None], None, classifies=classifies, least=1e9)
    assert not none.any()
    assert nothing.weights.shape == (1, 0)


@pytest.mark.parametrize("classifies", [True, False])
def test_only_ratios_of_weights_matter(classifies):
    rng, X, signal = rows()
    y = signal + rng.logistic(size=len(X))
    y = (y > 0).astype(float)[None] if classifies else y[None]
    plain = JointFit.of(X, y, None, classifies=classifies)
    for factor in (1 / 400, 0.01, 100.0):
        same = JointFit.of(X, y, np.full(len(X), factor), classifies=classifies)
        np.testing.assert_allclose(same.weights, plain.weights, rtol=1e-9)
        np.testing.assert_allclose(same.wald, plain.wald, rtol=1e-9)
    h = rng.choice([0.0, 0.5, 1.0, 3.0], len(X))
    once, scaled = (JointFit.of(X, y, h * f, classifies=classifies) for f in (1.0, 1e-3))
    np.testing.assert_allclose(scaled.wald, once.wald, rtol=1e-9)


@pytest.mark.parametrize("classifies", sliced([True, False], 1))
def test_standard_errors_with_weights_are_those_of_many_samples(classifies):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 1))
    h = rng.choice([0.1, 1.0, 10.0], 500)
    found, errors = [], []
    for _ in range(200):
        y = 0.5 * X[:, 0] + rng.logistic(size=500)
        y = (y > 0).astype(float)[None] if classifies else y[None]
        fit = JointFit.of(X, y, h, classifies=classifies)
        found.append(fit.weights[0, 0])
        errors.append(fit.weights[0, 0] / fit.wald[0, 0])
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.15)


def fitted_again(X, y, classifies, least):
    """Drop the weakest column, and fit again, until all columns are strong."""
    kept = list(range(X.shape[1]))
    while True:
        strength = np.abs(JointFit.of(X[:, kept], y, None, classifies=classifies).wald).max(axis=0)
        if strength.min(initial=np.inf) >= least:
            return kept
        del kept[int(strength.argmin())]


@pytest.mark.parametrize(
    ("classifies", "outputs"), sliced([(True, 1), (False, 2), (False, 1), (True, 2)], 0, 1)
)
def test_one_column_is_dropped_after_the_other(classifies, outputs):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1500, 10))
    X = np.c_[X, X + 0.1 * rng.normal(size=X.shape), rng.normal(size=(1500, 15))]
    f = np.stack([X[:, :6] @ rng.choice([-0.5, 0.5], 6) for _ in range(outputs)])
    y = f + rng.logistic(size=f.shape)
    y = (y > 0).astype(float) if classifies else y
    stays = JointFit.pruned(X, y, None, classifies=classifies)[1]
    found = np.flatnonzero(stays).tolist()
    assert found == fitted_again(X, y, classifies, 2.0)
    assert {column % 10 for column in found if column < 20} >= set(range(6))


def test_units_of_targets_and_columns_do_not_matter():
    rng, X, signal = rows(1)
    y = signal + rng.normal(size=len(X))
    fit = JointFit.of(X, y[None], None, classifies=False)
    far = JointFit.of(X * 1e6, y[None] * 1e6 + 1e9, None, classifies=False)
    np.testing.assert_allclose(far.weights, fit.weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(far.wald, fit.wald, rtol=1e-4, atol=1e-4)


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
