"""A race of rules: `SparseClassifier` and `SparseRegressor` choose the rule themselves."""

from thresher.race.estimators import SparseClassifier, SparseRegressor
from thresher.race.result import Entrant, Race

__all__ = ["Entrant", "Race", "SparseClassifier", "SparseRegressor"]
