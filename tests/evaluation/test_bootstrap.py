"""The bootstrap: replicates are evaluations with counts as weights, and do not depend on blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from support.score_models import identity_model
from thresher.evaluation.bootstrap import CHUNK, CellSums, PoissonCounts, interval

SEEDS = st.integers(0, 2**20)
REPLICATES = 9


def problem(seed, task):
    rng = np.random.default_rng(seed)
    rows = 150
    if task == "binary":
        X = rng.normal(size=(rows, 1)).round(1)
        return identity_model(1, [0, 1]), X, (X[:, 0] + rng.normal(size=rows) > 0).astype(int)
    if task == "multiclass":
        X = rng.normal(size=(rows, 3))
        return identity_model(3, [0, 1, 2]), X, rng.integers(0, 3, rows)
    if task == "multilabel":
        X = rng.normal(size=(rows, 4))
        model = identity_model(4, [0, 1, 2, 3], multilabel=True)
        return model, X, (rng.random((rows, 4)) < 0.4).astype(int)
    X = rng.normal(size=(rows, 1))
    return identity_model(1, None, "squared"), X, X[:, 0] + rng.normal(size=rows)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
@given(SEEDS, st.booleans())
def test_a_replicate_is_an_evaluation_with_counts_as_weights(task, seed, weighted):
    model, X, y = problem(seed, task)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(X)) if weighted else None
    found = thresher.evaluate(model, X, y, weights, replicates=REPLICATES, seed=seed)
    counts = PoissonCounts(REPLICATES, seed).of(np.arange(len(X)))
    for r in (0, REPLICATES - 1):
        own = counts[:, r] * (1.0 if weights is None else weights)
        wanted = thresher.evaluate(model, X, y, own, replicates=0)
        for name, one in found.metrics.items():
            assert one.replicates[r] == pytest.approx(wanted[name], rel=1e-9, abs=1e-9), name


@given(SEEDS)
def test_counts_depend_only_on_seed_row_and_replicate(seed):
    rows = np.random.default_rng(seed).integers(0, 2**40, 50)
    counts = PoissonCounts(7, seed)
    every = counts.of(rows)
    for k in (0, 17, 49):
        np.testing.assert_array_equal(counts.of(rows[k : k + 1])[0], every[k])
    assert every.shape == (50, 7)


def test_counts_are_poisson_and_independent():
    counts = PoissonCounts(40, 3).of(np.arange(5000))
    shares = np.bincount(counts.astype(int).ravel(), minlength=8)[:5] / counts.size
    np.testing.assert_allclose(shares, np.exp(-1) / np.array([1, 1, 2, 6, 24]), atol=0.004)
    between = np.corrcoef(counts.T) - np.eye(40)
    assert np.abs(between).max() < 0.08
    assert abs(np.corrcoef(counts[:-1, 0], counts[1:, 0])[0, 1]) < 0.05
    assert not np.array_equal(counts, PoissonCounts(40, 4).of(np.arange(5000)))


@given(SEEDS)
def test_sums_in_cells(seed):
    rng = np.random.default_rng(seed)
    counts = PoissonCounts(5, 0)
    sums = CellSums(3, counts)
    rows, cells, values = rng.integers(0, 8, 30), rng.integers(0, 3, 30), rng.normal(size=30)
    drawn = counts.of(np.arange(8))
    sums.add(rows, cells, values, drawn)
    sums.add(rows, cells, values, drawn)
    for cell in range(3):
        own = cells == cell
        assert float(sums.total[cell]) == pytest.approx(2 * values[own].sum())
        wanted = 2 * values[own] @ drawn[rows[own]]
        np.testing.assert_allclose(sums.replicates[cell], wanted, atol=1e-12)


def test_intervals_contain_the_truth_about_as_often_as_they_say():
    hits = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 1))
        y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
        found = thresher.evaluate(identity_model(1, [0, 1]), X, y, seed=seed)
        one = found.metrics["accuracy"]
        hits += one.low <= 0.75 <= one.high  # P(sign of x is that of x + z) is 3/4
    assert 51 <= hits <= 60


def test_interval_of_undefined_replicates():
    assert interval(None, 0.9) is None
    assert interval(np.array([np.nan, np.nan, 1.0]), 0.9) is None
    assert interval(np.array([np.nan, 1.0, 2.0]), 0.5) == (1.25, 1.75)


def test_results_do_not_depend_on_parts(monkeypatch, tmp_path):
    model, X, y = problem(0, "binary")
    X, y = np.tile(X, (60, 1)), np.tile(y, 60)
    assert len(X) > 2 * CHUNK
    wanted = thresher.evaluate(model, X, y, replicates=REPLICATES)
    monkeypatch.setattr("thresher.evaluation.rows._SLICE", 1001)
    found = thresher.evaluate(model, X, y, replicates=REPLICATES)
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{b} 1:{float(a)!r}\n" for a, b in zip(X[:, 0], y, strict=True)))
    read = thresher.evaluate(model, thresher.scan(path), replicates=REPLICATES)
    for other in (found, read):
        for name, one in wanted.metrics.items():
            assert other[name] == pytest.approx(one.value, rel=1e-12)
            np.testing.assert_allclose(other.metrics[name].replicates, one.replicates)
