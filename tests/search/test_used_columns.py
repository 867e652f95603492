"""Searches of wide matrices: the lanes have only the columns that occur, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

import thresher
from thresher import (
    FTRLClassifier,
    OnePassSearchCV,
    SparsityPath,
    TruncatedGradientClassifier,
    _core,
)
from thresher.data import used_columns as used_module
from thresher.data.arrays import as_batch
from thresher.data.matrix_source import MatrixBlock
from thresher.data.used_columns import used_columns
from thresher.errors import DataError
from thresher.rules import RULES

RNG = np.random.default_rng(4)
WIDTH = 1 << 17
COLUMNS = np.sort(RNG.choice(WIDTH, 40, replace=False)).astype(np.int32)
SMALL = sp.random_array((90, 40), density=0.3, rng=RNG, format="csr", dtype=np.float32)
Y = (SMALL @ RNG.normal(size=40) > 0).astype(int)
LANE_RULES = [name for name, rule in RULES.items() if rule.lanes and rule.streams]


def wide(small: Any = SMALL, keys: Any = np.int32) -> Any:
    """Return a wide matrix with few columns that are not empty."""
    indices = COLUMNS[small.indices].astype(keys)
    return sp.csr_matrix((small.data, indices, small.indptr), shape=(small.shape[0], WIDTH))


def mixed() -> Any:
    """Return rows whose columns are not sorted; some columns come twice."""
    rows = [RNG.integers(0, 40, 12) for _ in range(90)]
    starts = np.arange(0, 12 * 91, 12, dtype=np.int32)
    values = RNG.normal(size=12 * 90).astype(np.float32)
    indices = COLUMNS[np.concatenate(rows)]
    return sp.csr_matrix((values, indices, starts), shape=(90, WIDTH))


def kept_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lanes have all columns."""
    monkeypatch.setattr(used_module, "_WIDE", 2**62)


def search(model: Any, grid: Any, X: Any, **more: Any) -> OnePassSearchCV:
    """Return a fitted search."""
    return OnePassSearchCV(model, grid, **{"cv": KFold(3), "n_jobs": 2, **more}).fit(X, Y)


def assert_same(found: Any, expected: Any) -> None:
    """Compare scores, counts and the best models, to the last bit."""
    for name in ("mean_test_score", "std_test_score"):
        assert found.cv_results_[name].tolist() == expected.cv_results_[name].tolist()
    assert found.nonzeros_.tolist() == expected.nonzeros_.tolist()
    assert (found.best_estimator_.coef_ == expected.best_estimator_.coef_).all()


def test_memory_of_empty_columns_is_not_needed() -> None:
    """The models of 2^17 columns would not fit into 1 MB; those of 40 columns do."""
    grid = {"gravity": [0.0, 1e-3, 1e-2]}
    found = search(TruncatedGradientClassifier(), grid, wide(), memory_limit=1_000_000)
    assert found.n_readings_ == 1


@pytest.mark.parametrize("rule", LANE_RULES)
@pytest.mark.parametrize("shuffle", ["each", False])
def test_every_rule_has_the_same_bits(
    rule: str, shuffle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores, counts and models do not depend on the renumbering."""
    model = getattr(thresher, RULES[rule].estimators["classifier"])()
    own = {"shuffle": shuffle, "random_state": 3, "passes": 2, "store": "dense"}
    model.set_params(**{name: own[name] for name in own if name in model.get_params()})
    grid = {"fit_intercept": [True, False]}
    for scoring in ("neg_log_loss", "accuracy"):
        if scoring == "neg_log_loss" and not hasattr(model, "predict_proba"):
            continue
        with monkeypatch.context() as patch:
            kept_numbers(patch)
            expected = search(model, grid, wide(), scoring=scoring)
        assert_same(search(model, grid, wide(), scoring=scoring), expected)


@pytest.mark.parametrize("X", [wide(keys=np.int64), mixed()], ids=["int64", "mixed"])
def test_other_rows_have_the_same_bits(X: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Column numbers may have 64 bits, come in any order, and repeat."""
    model = TruncatedGradientClassifier(shuffle=False, passes=2)
    grid = {"gravity": [0.0, 1e-3]}
    with monkeypatch.context() as patch:
        kept_numbers(patch)
        expected = search(model, grid, X)
    assert used_columns(MatrixBlock(X, Y)) is not None
    assert_same(search(model, grid, X), expected)


def test_models_of_a_path_have_the_columns_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of all rows are lanes, too."""
    model, strengths = FTRLClassifier(alpha=0.1, passes=1, random_state=0), [0.01, 0.1]
    path = SparsityPath(model, strengths, cv=KFold(3)).fit(wide(), Y)
    with monkeypatch.context() as patch:
        kept_numbers(patch)
        expected = SparsityPath(model, strengths, cv=KFold(3)).fit(wide(), Y)
    assert path.errors_.tolist() == expected.errors_.tolist()
    for own, other in zip(path.models_, expected.models_, strict=True):
        assert own.indices.tolist() == other.indices.tolist()
        assert set(own.indices.tolist()) <= set(COLUMNS.tolist())
        assert own.weights.tolist() == other.weights.tolist()


@pytest.mark.parametrize("target", [None, 5])
def test_scorers_see_models_with_the_columns_of_the_rows(target: int | None) -> None:
    """A scorer may read coefficients, and predict other rows."""

    def score(model: Any, X: Any, y: Any) -> float:
        assert X.shape[1] == WIDTH
        used = np.flatnonzero(model.coef_)
        assert set(used.tolist()) <= set(COLUMNS.tolist())
        return float(np.mean(model.predict(X[::2]) == y[::2]))

    model = TruncatedGradientClassifier(target_nnz=target, refit=False)
    for scoring in (score, "accuracy"):
        found = search(model, {"gravity": [1e-4, 1e-3]}, wide(), scoring=scoring)
        assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def test_errors_name_the_columns_of_the_rows() -> None:
    """A value that is not finite."""
    X = wide()
    at = int(X.indptr[50])
    X.data[at] = np.inf
    model = TruncatedGradientClassifier(shuffle=False)
    with pytest.raises(DataError, match=f"row 50: the value of feature {X.indices[at]} is inf"):
        search(model, {"gravity": [0.0]}, X, error_score="raise")


@pytest.mark.parametrize("threads", [1, 2])
def test_columns_are_found_and_numbered(threads: int) -> None:
    """The columns that occur in increasing order, and the keys."""
    X = mixed()
    columns, keys = _core.used_columns(as_batch(X), WIDTH, threads)
    assert columns.tolist() == np.unique(X.indices).tolist()
    assert keys.dtype == np.int32
    assert columns[keys].tolist() == X.indices.tolist()
    assert _core.used_columns(as_batch(X), len(columns), threads) is not None
    assert _core.used_columns(as_batch(X), len(columns) - 1, threads) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e18, -1e18])
def test_rows_that_may_be_refused_are_not_renumbered(value: float) -> None:
    """Values that are not finite, or have very large squares; keys outside."""
    X = wide(SMALL.astype(np.float64))
    X.data[-1] = value
    assert _core.used_columns(as_batch(X), WIDTH, 2) is None
    for key in (-1, WIDTH):
        starts, keys = np.array([0, 1], np.int32), np.array([key], np.int32)
        batch = _core.sparse_batch(starts, keys, np.ones(1), WIDTH)
        assert _core.used_columns(batch, WIDTH, 1) is None


def test_empty_matrices_and_dense_ones() -> None:
    """A matrix without nonzeros has no columns; a dense array keeps its columns."""
    nothing = sp.csr_matrix((3, WIDTH), dtype=np.float64)
    used = used_columns(MatrixBlock(nothing, np.zeros(3)))
    assert used is not None
    assert len(used.numbers) == 0
    assert used_columns(MatrixBlock(np.ones((2, 1 << 16)), np.zeros(2))) is None
    with pytest.raises(ValueError, match="only CSR rows have keys"):
        _core.used_columns(as_batch(np.ones((2, 2))), 2, 1)
