"""How stable a selection of features is, and selection of features that are stable.

Supports are sets of features: collections of their numbers, boolean masks, or models. Nothing here
makes a dense matrix, and index input is never turned into masks.
"""

from thresher.model.density import DensityBins, selected_by_density
from thresher.model.supports import kappa, stability_score
from thresher.stability.bounds import Bound, false_selections_bound
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
    "false_selections_bound",
    "kappa",
    "selected_by_density",
    "stability_score",
]
