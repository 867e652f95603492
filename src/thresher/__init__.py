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
from thresher.moved_modules import find_old_names
from thresher.rules import RULES

if TYPE_CHECKING:
    from thresher import (
        certificates,
        datasets,
        discovery,
        distributed,
        health,
        mlflow,
        plots,
        preprocessing,
        race,
        stability,
    )
    from thresher.comparison import Comparison, compare
    from thresher.data.scan import scan
    from thresher.data.source import Source
    from thresher.discovery import FeatureDiscovery
    from thresher.estimators import *  # noqa: F403
    from thresher.evaluation import Evaluation, ModelComparison, evaluate
    from thresher.model.merge import merge
    from thresher.model.model import Feature, Model, Progress, Why, load
    from thresher.overview import Look, look
    from thresher.plots import (
        ExponentDisplay,
        FeatureDensityDisplay,
        LearningCurveDisplay,
        SparsityPathDisplay,
        StabilityDisplay,
    )
    from thresher.preprocessing import UnitVarianceScaler
    from thresher.race import SparseClassifier, SparseRegressor
    from thresher.search import OnePassSearchCV, SparsityPath
    from thresher.stability import (
        StabilitySelection,
        StreamingStabilitySelection,
        stability_score,
    )
    from thresher.training.observer import Interrupted, Observer

__all__ = [
    "Comparison",
    "DataError",
    "DivergenceError",
    "Evaluation",
    "ExponentDisplay",
    "Feature",
    "FeatureDensityDisplay",
    "FeatureDiscovery",
    "Interrupted",
    "LearningCurveDisplay",
    "Look",
    "Model",
    "ModelComparison",
    "ModelFileError",
    "Observer",
    "OnePassSearchCV",
    "ParameterError",
    "Progress",
    "Source",
    "SparseClassifier",
    "SparseRegressor",
    "SparsityPath",
    "SparsityPathDisplay",
    "StabilityDisplay",
    "StabilitySelection",
    "StreamingStabilitySelection",
    "UnitVarianceScaler",
    "Why",
    "__version__",
    "certificates",
    "compare",
    "datasets",
    "discovery",
    "distributed",
    "evaluate",
    "health",
    "load",
    "look",
    "merge",
    "mlflow",
    "plots",
    "preprocessing",
    "race",
    "scan",
    "stability",
    "stability_score",
]
_ESTIMATORS = [name for rule in RULES.values() for name in rule.estimators.values()]
__all__ += _ESTIMATORS

_MODULES = (
    "certificates",
    "datasets",
    "discovery",
    "distributed",
    "health",
    "mlflow",
    "plots",
    "preprocessing",
    "race",
    "stability",
)
_HOMES = {
    **dict.fromkeys(("Feature", "Model", "Progress", "Why", "load"), "model.model"),
    **dict.fromkeys((name for name in __all__ if name.endswith("Display")), "plots"),
    **dict.fromkeys(_ESTIMATORS, "estimators"),
    **dict.fromkeys(("Evaluation", "ModelComparison", "evaluate"), "evaluation"),
    "Comparison": "comparison",
    "FeatureDiscovery": "discovery",
    "Interrupted": "training.observer",
    "Look": "overview",
    "Observer": "training.observer",
    "OnePassSearchCV": "search",
    "Source": "data.source",
    "SparseClassifier": "race",
    "SparseRegressor": "race",
    "SparsityPath": "search",
    "StabilitySelection": "stability",
    "StreamingStabilitySelection": "stability",
    "UnitVarianceScaler": "preprocessing",
    "compare": "comparison",
    "look": "overview",
    "merge": "model.merge",
    "scan": "data.scan",
    "stability_score": "stability",
}

find_old_names()


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: importing scikit-learn takes most of a second.

    So the command line can handle Ctrl-C before NumPy is imported.
    """
    if name in _MODULES:
        return importlib.import_module(f"thresher.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"thresher.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'thresher' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
