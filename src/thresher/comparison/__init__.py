"""Every rule on one data set, under one protocol: `thresher.compare`."""

from thresher.comparison.candidates import CANDIDATES, Candidate
from thresher.comparison.measures import Measure
from thresher.comparison.result import Comparison, RuleResult
from thresher.comparison.running import compare
from thresher.comparison.trying import CompareProgress

__all__ = [
    "CANDIDATES",
    "Candidate",
    "CompareProgress",
    "Comparison",
    "Measure",
    "RuleResult",
    "compare",
]
