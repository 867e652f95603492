"""How well a model predicts rows: metrics with intervals, and the comparison of two models."""

from __future__ import annotations

from thresher.evaluation.metric import Metric
from thresher.evaluation.result import Evaluation, ModelComparison
from thresher.evaluation.run import evaluate

__all__ = ["Evaluation", "Metric", "ModelComparison", "evaluate"]
