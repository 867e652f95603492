"""Search: grids of parameters over folds, from one reading of the rows per pass.

What searches needs scikit-learn, and is imported when it is asked for: a model file that tells of a
search is read without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.search.one_pass import OnePassSearchCV
    from thresher.search.path import SparsityPath
    from thresher.search.progress import SearchProgress

_HOMES = {"OnePassSearchCV": "one_pass", "SearchProgress": "progress", "SparsityPath": "path"}

__all__ = ["OnePassSearchCV", "SearchProgress", "SparsityPath"]


def __getattr__(name: str) -> Any:
    """Import what is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"thresher.search.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'thresher.search' has no attribute {name!r}")
