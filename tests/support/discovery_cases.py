"""Rows, cores and comparisons for tests of feature discovery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from oracles.discovery import Evidence
from thresher import FeatureDiscovery, _core

SUMS = ("S", "realised", "predicted", "redrawn_S", "redrawn_D")
WEIGHTS = {
    "none": None,
    "integers": [0.0, 1.0, 2.0, 3.0],
    "fractions": [0.0, 0.25, 0.5, 1.0, 2.5],
    "small": [1e-3, 1e-2],
}


@dataclass
class Rows:
    """Rows, targets, weights, the order of visits, and the fold of each row."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    order: np.ndarray
    folds: np.ndarray

    @property
    def h(self) -> np.ndarray:
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def batch(self, sparse: bool = True, dtype: Any = np.float64) -> _core.Batch:
        if not sparse:
            return _core.dense_batch(self.X.astype(dtype), self.y, self.weight)
        c = sp.csr_matrix(self.X.astype(dtype))
        return _core.sparse_batch(c.indptr, c.indices, c.data, c.shape[1], self.y, self.weight)


def rows_of(
    seed: int, task: str, *, rows: int = 60, width: int = 9, weights: str = "none",
    density: float = 0.5, folds: int = 3,
) -> Rows:  # fmt: skip
    """Return rows whose targets depend on the first columns; some columns are rare or empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width)) * (
        rng.random((rows, width)) < density * 2 * rng.random(width)
    )
    signal = np.tanh(X[:, : 1 + width // 4].sum(axis=1)) + 0.5 * rng.normal(size=rows)
    X = (X * 10.0 ** rng.integers(-1, 2, width)).astype(np.float32).astype(np.float64)
    y = (signal > 0).astype(float) if task == "classification" else 40.0 + 7.0 * signal
    allowed = WEIGHTS[weights]
    weight = None if allowed is None else rng.choice(allowed, rows)
    return Rows(X, y, weight, rng.permutation(rows), rng.integers(0, folds, rows))


@st.composite
def some_rows(draw: st.DrawFn, task: str) -> Rows:
    """Draw rows of any shape, with weights or without."""
    return rows_of(
        draw(st.integers(0, 2**32 - 1)),
        task,
        rows=draw(st.integers(1, 60)),
        width=draw(st.integers(1, 12)),
        weights=draw(st.sampled_from(sorted(WEIGHTS))),
        density=draw(st.sampled_from([0.1, 0.4, 1.0])),
    )


def core(
    task: str, width: int, *, store: str = "dense", dtype: str = "float64", redraws: int = 6,
    seed: int = 0, folds: int = 1, level: str = "auto",
) -> _core.Discovery:  # fmt: skip
    """Return a discovery of one output."""
    return _core.make_discovery(task, store, dtype, width, redraws, seed, folds, level)


def dense_sums(made: _core.Discovery, width: int, redraws: int) -> dict[str, np.ndarray]:
    """Return the sums of all features, with zeros for those that did not occur."""
    sums, found = made.sums(), {}
    at = sums["keys"].astype(int)
    for name in ("rows", *SUMS):
        values = sums[name]
        if name.startswith("redrawn"):
            values = values.reshape(-1, redraws)
        found[name] = np.zeros((width, *values.shape[1:]))
        if len(values):
            found[name][at] = values
    return found


def crossfitted(made: _core.Discovery, rows: Rows, batch: Any = None, folds: int = 3) -> np.ndarray:
    """Let all folds learn, then score; return the predictions in the order of the visits."""
    batch = batch or rows.batch()
    for fold in range(folds):
        made.learn(batch, rows.folds, fold, rows.order)
        made.finish(fold)
    return made.score(batch, rows.folds, 0, rows.order)[0]


def near(found: dict[str, np.ndarray], oracle: Evidence, task: str, tolerance: float) -> None:
    """Compare the sums with those of the oracle, relative to the largest of each kind.

    The core returns the sums of redraws as float32.
    """
    np.testing.assert_array_equal(found["rows"], oracle.rows)
    for name in SUMS if task == "classification" else SUMS[:-1]:
        expected = getattr(oracle, name)
        scale = np.abs(expected).max(initial=1e-300)
        rough = max(tolerance, 1e-6) if name.startswith("redrawn") else tolerance
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=rough * scale, err_msg=name)


def same(one: _core.Discovery, other: _core.Discovery) -> None:
    """Compare the bits of all sums and facts."""
    first, second = one.sums(), other.sums()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    assert one.facts() == other.facts()


def signal(kind: str = "classification", rows: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Return 40 columns of which 3 raises the target and 7 lowers it; 11 is zero, 12 constant."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(rows, 40))
    X[:, 11], X[:, 12] = 0.0, 1.0
    score = 1.2 * X[:, 3] - 1.2 * X[:, 7] + rng.logistic(size=rows)
    if kind == "regression":
        return X, 5.0 + score
    if kind == "classes":
        return X, np.array(["a", "b", "c"])[np.digitize(score, [-1.0, 1.0])]
    return X, (score > 0).astype(int)


def discovered(**options: Any) -> FeatureDiscovery:
    """Return a FeatureDiscovery with a seed, which reads files in stored order."""
    return FeatureDiscovery(**{"random_state": 0, "shuffle": False} | options)


def same_results(one: FeatureDiscovery, other: FeatureDiscovery) -> None:
    """Compare the bits of all results."""
    for name in ("selected_", "z_", "qvalues_", "pvalues_", "features_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.expected_false_ == other.expected_false_
    assert one.n_rows_ == other.n_rows_
    for first, second in zip(one.checks_, other.checks_, strict=True):
        assert first.name == second.name
        if not first.checked or not second.checked:  # rows in memory have one more check
            continue
        assert first.fine == second.fine
        np.testing.assert_allclose(first.value, second.value, rtol=1e-9, atol=1e-6)
