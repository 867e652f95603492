"""Numerical health: what data and weights do to the arithmetic, before, in and after training.

Exponents of the weights (R-11.5), spectral radius and safe steps of gradient descent (R-10.3 to
R-10.6), range of the columns, a watch for divergence. SciPy is imported when it is needed.
"""

from thresher.health.columns import DynamicRange, OddColumn, dynamic_range
from thresher.health.report import HealthReport, check
from thresher.health.steps import SafeStep, SpectralRadius, potential, safe_step, spectral_radius
from thresher.health.watch import DivergenceWarning, DivergenceWatch
from thresher.health.weights import ExponentSpread, exponents

__all__ = [
    "DivergenceWarning", "DivergenceWatch", "DynamicRange", "ExponentSpread", "HealthReport",
    "OddColumn", "SafeStep", "SpectralRadius", "check", "dynamic_range", "exponents", "potential",
    "safe_step", "spectral_radius",
]  # fmt: skip
