"""The scikit-learn face: one module for each family of rules, over one shared base."""

from thresher.estimators.averaged import AveragedSGDClassifier, AveragedSGDRegressor
from thresher.estimators.dual_averaging import DualAveragingClassifier, DualAveragingRegressor
from thresher.estimators.forward_backward import (
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
)
from thresher.estimators.ftrl import FTRLClassifier, FTRLRegressor
from thresher.estimators.margin_perceptron import MarginPerceptronClassifier
from thresher.estimators.stabilized import StabilizedClassifier
from thresher.estimators.truncated_gradient import (
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)

__all__ = [
    "AveragedSGDClassifier",
    "AveragedSGDRegressor",
    "DualAveragingClassifier",
    "DualAveragingRegressor",
    "FTRLClassifier",
    "FTRLRegressor",
    "ForwardBackwardClassifier",
    "ForwardBackwardRegressor",
    "MarginPerceptronClassifier",
    "StabilizedClassifier",
    "TruncatedGradientClassifier",
    "TruncatedGradientRegressor",
]
