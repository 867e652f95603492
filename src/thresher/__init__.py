"""Thresher: sparse linear models learned from massive, high-dimensional, sparse data.

>>> from thresher import TruncatedGradientClassifier
>>> clf = TruncatedGradientClassifier(gravity=1e-4).fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
>>> clf.predict([[1.0, 0.0]]).tolist()
['yes']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from thresher._version import __version__
from thresher.errors import DataError, DivergenceError, ModelFileError, ParameterError
from thresher.model import Feature, Model, Progress, Why, load

if TYPE_CHECKING:
    from thresher.estimators import (
        AveragedSGDClassifier,
        AveragedSGDRegressor,
        CoordinateDescentClassifier,
        CoordinateDescentRegressor,
        DualAveragingClassifier,
        DualAveragingRegressor,
        ForwardBackwardClassifier,
        ForwardBackwardRegressor,
        FTRLClassifier,
        FTRLRegressor,
        HardThresholdRegressor,
        MarginPerceptronClassifier,
        MirrorDescentClassifier,
        MirrorDescentRegressor,
        StabilizedClassifier,
        TruncatedGradientClassifier,
        TruncatedGradientRegressor,
    )

__all__ = [
    "AveragedSGDClassifier",
    "AveragedSGDRegressor",
    "CoordinateDescentClassifier",
    "CoordinateDescentRegressor",
    "DataError",
    "DivergenceError",
    "DualAveragingClassifier",
    "DualAveragingRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "Feature",
    "ForwardBackwardClassifier",
    "ForwardBackwardRegressor",
    "HardThresholdRegressor",
    "MarginPerceptronClassifier",
    "MirrorDescentClassifier",
    "MirrorDescentRegressor",
    "Model",
    "ModelFileError",
    "ParameterError",
    "Progress",
    "StabilizedClassifier",
    "TruncatedGradientClassifier",
    "TruncatedGradientRegressor",
    "Why",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import the estimators when one is asked for: scikit-learn takes most of a second."""
    if name in __all__:
        return getattr(importlib.import_module("thresher.estimators"), name)
    raise AttributeError(f"module 'thresher' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
