"""Numerical health: checks of data and weights before, during and after training.

Exponents of the weights (R-11.5), spectral radius and safe steps of gradient descent (R-10.3 to
R-10.6), range of the columns, detection of divergence. SciPy is imported only when it is needed.
"""

import importlib
from typing import Any

_MODULES = {
    "column_scales": ("ColumnOffsetWarning", "ColumnScaleWarning"),
    "columns": ("DynamicRange", "OddColumn", "dynamic_range"),
    "label_order": ("LabelOrderWarning",),
    "report": ("HealthReport", "check"),
    "steps": ("SafeStep", "SpectralRadius", "potential", "safe_step", "spectral_radius"),
    "watch": ("DivergenceWarning", "DivergenceWatch", "NoSignalWarning"),
    "weights": ("ExponentSpread", "exponents"),
}

__all__ = [
    "ColumnOffsetWarning", "ColumnScaleWarning", "DivergenceWarning", "DivergenceWatch",
    "DynamicRange", "ExponentSpread", "HealthReport", "LabelOrderWarning", "NoSignalWarning",
    "OddColumn", "SafeStep", "SpectralRadius", "check", "dynamic_range", "exponents", "potential",
    "safe_step", "spectral_radius",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a module when it is used: the command line needs only `watch`."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"thresher.health.{module}"), name)
    raise AttributeError(f"module 'thresher.health' has no attribute {name!r}")
