"""Imports modules by their names in version 0.1.0, for objects that it pickled."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Modules with classes in pickles of estimators, models, searches and comparisons.
_MOVED = {
    "thresher.density": "thresher.model.density",
    "thresher.evidence": "thresher.model.evidence",
    "thresher.frontier": "thresher.model.frontier",
    "thresher.learned": "thresher.model.history",
    "thresher.search.frontier": "thresher.model.frontier",
    "thresher.search.place": "thresher.model.frontier",
    "thresher.search.views": "thresher.estimators.pickles",
}


class _OldNames:  # no base class: importing importlib.abc takes 14 ms
    """Imports the module of the new name for an old name."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old name, and None for any other."""
        return ModuleSpec(name, self) if name in _MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module with all names of the new module."""
        module = ModuleType(spec.name)
        module.__dict__.update(vars(importlib.import_module(_MOVED[spec.name])))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


def find_old_names() -> None:
    """Make `pickle.load` find objects that were pickled under an old module name."""
    sys.meta_path.append(_OldNames())
