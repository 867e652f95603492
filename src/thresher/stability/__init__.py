"""Measures of the stability of feature selections, and stability selection.

A support is a set of features: a collection of feature numbers, a boolean mask, or a model. No
function makes a dense matrix, or turns feature numbers into a mask.
"""

from thresher.model.density import DensityBins, selected_by_density
from thresher.model.supports import kappa, stability_score
from thresher.stability.bounds import Bound, false_selections_bound
from thresher.stability.no_signal import WithoutSignal
from thresher.stability.selected import FeatureProbability
from thresher.stability.selection import PairsDone, StabilitySelection
from thresher.stability.streaming import StreamingStabilitySelection

__all__ = [
    "Bound",
    "DensityBins",
    "FeatureProbability",
    "PairsDone",
    "StabilitySelection",
    "StreamingStabilitySelection",
    "WithoutSignal",
    "false_selections_bound",
    "kappa",
    "selected_by_density",
    "stability_score",
]
