"""Helpers for tests of lanes: rows, parameters, and the comparison with a separate model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from thresher import _core
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def rows_of(rng: np.random.Generator, rows: int, width: int, dtype: str) -> Any:
    X = sp.random(rows, width, 0.3, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    return (0.4 * X).astype(dtype)


def batch_of(X: Any, y: Any, weights: Any = None) -> _core.Batch:
    return _core.sparse_batch(X.indptr, X.indices, X.data, X.shape[1], y, weights)


def defaults(rule: str) -> dict[str, Any]:
    task = RULES[rule].tasks[0]
    values = {name: p.default_for(task) for name, p in RULES[rule].parameters.items()}
    rate = RULES[rule].rate_from_rows  # its "auto" needs rows
    return values | ({rate: 1.0} if rate else {})


def levels() -> list[str]:
    """Return the vector levels of this machine."""
    found = []
    for level in ("portable", "avx2", "avx512"):
        try:
            _core.make_lanes("ftrl", "dense", "float32", 1, [], [], [], [], level)
        except ValueError:
            continue
        found.append(level)
    return found


def same(got: Any, expected: Any, dtype: str) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


def grid(rule: str = "truncated-gradient", lanes: int = 15, **common: Any) -> Any:
    """Return the core arguments (numbers and words) of lanes that differ in gravity."""
    found = [
        core_parameters(rule, defaults(rule) | {"gravity": 1e-3 * i, "eta0": 0.1} | common, None)
        for i in range(lanes)
    ]
    return [numbers for numbers, _ in found], [words for _, words in found]
