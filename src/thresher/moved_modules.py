"""Finds modules by the names they had in version 0.1.0, for objects pickled by it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Only modules whose classes are in pickles of estimators, models, searches and comparisons.
_MOVED = {
    "thresher.density": "thresher.model.density",
    "thresher.evidence": "thresher.model.evidence",
    "thresher.learned": "thresher.model.history",
    "thresher.search.frontier": "thresher.model.frontier",
    "thresher.search.place": "thresher.model.frontier",
    "thresher.search.views": "thresher.estimators.pickles",
}


class _OldNames:  # no base class: importing importlib.abc takes 14 ms
    """A finder and loader of modules: imports the new module where an old name is asked for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old name, and None for any other."""
        return ModuleSpec(name, self) if name in _MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module with everything that the module of the new name has."""
        module = ModuleType(spec.name)
        module.__dict__.update(vars(importlib.import_module(_MOVED[spec.name])))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


def find_old_names() -> None:
    """Let `pickle.load` find what was pickled under an old name."""
    sys.meta_path.append(_OldNames())
