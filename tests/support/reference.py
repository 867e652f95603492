"""The checked reference code of the papers, for tests that compare the oracles with it.

It is not in the repository, but in a folder ``reference`` next to that of the data sets: next to
$THRESHER_DATA, or in shared/ next to the repository. It is written for numba; without numba, its
functions run as plain Python, which is fast enough for small data.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[2]


def reference_path() -> Path:
    """Return the path of the reference code."""
    data = Path(os.environ.get("THRESHER_DATA", ROOT.parent / "shared" / "data"))
    return data.parent / "reference" / "reference.py"


def load_reference() -> ModuleType:
    """Return the reference code as a module; skip the test if there is none."""
    path = reference_path()
    if not path.is_file():
        pytest.skip(f"no reference code in {path}; set THRESHER_DATA to the folder next to its own")
    return _load(path)


@functools.cache
def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("checked_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stand_in = importlib.util.find_spec("numba") is None
    if stand_in:
        sys.modules["numba"] = _numba()
    try:
        spec.loader.exec_module(module)
    finally:
        if stand_in:
            del sys.modules["numba"]
    return module


def _numba() -> ModuleType:
    """Make a module ``numba`` whose njit returns the function unchanged."""

    def njit(*functions: Callable[..., Any], **options: Any) -> Any:
        return functions[0] if functions else lambda function: function

    module = ModuleType("numba")
    module.njit = njit  # type: ignore[attr-defined]
    return module


def rows_of(X: np.ndarray) -> tuple[Any, Any, Any]:
    """Return indptr, indices and data of the rows of X, for the reference code."""
    csr = sp.csr_matrix(X)
    return csr.indptr, csr.indices, csr.data


def columns_of(X: np.ndarray) -> tuple[Any, Any, Any]:
    """Return indptr, indices and data of the columns of X, for the reference code."""
    csc = sp.csc_matrix(X)
    return csc.indptr, csc.indices, csc.data
