"""Search over grids of parameters and folds; all models learn from one reading of the rows.

Modules are imported when they are used: a model file that holds the result of a search can be read
without scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.search.one_pass import OnePassSearchCV
    from thresher.search.path import SparsityPath
    from thresher.search.progress import SearchProgress

_MODULES = {"OnePassSearchCV": "one_pass", "SearchProgress": "progress", "SparsityPath": "path"}

__all__ = ["OnePassSearchCV", "SearchProgress", "SparsityPath"]


def __getattr__(name: str) -> Any:
    """Import a module when it is used."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"thresher.search.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'thresher.search' has no attribute {name!r}")
