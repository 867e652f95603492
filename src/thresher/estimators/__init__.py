"""scikit-learn estimators: one module for each family of rules, and common base classes."""

from typing import Any

from thresher.errors import ParameterError
from thresher.estimators.adagrad import AdaGradClassifier, AdaGradRegressor
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
from thresher.estimators.one_pass import OnePassClassifier, OnePassRegressor
from thresher.estimators.stabilized import StabilizedClassifier
from thresher.estimators.truncated_gradient import (
    TruncatedGradientClassifier,
    TruncatedGradientRegressor,
)
from thresher.losses import Task
from thresher.rules import RULES

__all__ = [
    "AdaGradClassifier",
    "AdaGradRegressor",
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
    "OnePassClassifier",
    "OnePassRegressor",
    "StabilizedClassifier",
    "TruncatedGradientClassifier",
    "TruncatedGradientRegressor",
]


def estimator_class(rule: str, task: Task) -> Any:
    """Return the estimator class of a rule.

    Raises ParameterError if the rule has none for the task.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    task : {"classifier", "regressor"}

    Examples
    --------
    >>> estimator_class("ftrl", "regressor").__name__
    'FTRLRegressor'
    """
    found = RULES[rule].estimators.get(task)
    if found is None:
        raise ParameterError(f"the rule {rule} has no {task}")
    return globals()[found]
