"""The scikit-learn face: one module for each family of rules, over one shared base."""

from thresher.estimators.averaged import AveragedSGDClassifier, AveragedSGDRegressor
from thresher.estimators.coordinate_descent import (
    CoordinateDescentClassifier,
    CoordinateDescentRegressor,
)
from thresher.estimators.dual_averaging import DualAveragingClassifier, DualAveragingRegressor
from thresher.estimators.forward_backward import (
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
)
from thresher.estimators.ftrl import FTRLClassifier, FTRLRegressor
from thresher.estimators.hard_threshold import HardThresholdRegressor
from thresher.estimators.margin_perceptron import MarginPerceptronClassifier
from thresher.estimators.mirror_descent import MirrorDescentClassifier, MirrorDescentRegressor
from thresher.estimators.stabilized import StabilizedClassifier
from thresher.estimators.truncated_gradient import (
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

__all__ = [
    "AveragedSGDClassifier",
    "AveragedSGDRegressor",
    "CoordinateDescentClassifier",
    "CoordinateDescentRegressor",
    "DualAveragingClassifier",
    "DualAveragingRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "ForwardBackwardClassifier",
    "ForwardBackwardRegressor",
    "HardThresholdRegressor",
    "MarginPerceptronClassifier",
    "MirrorDescentClassifier",
    "MirrorDescentRegressor",
    "StabilizedClassifier",
    "TruncatedGradientClassifier",
    "TruncatedGradientRegressor",
]
