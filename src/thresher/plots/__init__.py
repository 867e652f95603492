"""Displays like those of scikit-learn; they need matplotlib (`pip install 'thresher[plot]'`)."""

from thresher.plots.exponents import ExponentDisplay
from thresher.plots.feature_density import FeatureDensityDisplay
from thresher.plots.learning_curve import LearningCurveDisplay
from thresher.plots.sparsity_path import SparsityPathDisplay
from thresher.plots.stability import StabilityDisplay

__all__ = [
    "ExponentDisplay",
    "FeatureDensityDisplay",
    "LearningCurveDisplay",
    "SparsityPathDisplay",
    "StabilityDisplay",
]
