"""`thresher.compare`: compare all rules on one data set, with the same protocol."""

from thresher.comparison.candidates import CANDIDATES, Candidate
from thresher.comparison.measures import Measure
from thresher.comparison.protocol import CompareProgress
from thresher.comparison.result import Comparison, RuleResult
from thresher.comparison.run import compare

__all__ = [
    "CANDIDATES",
    "Candidate",
    "CompareProgress",
    "Comparison",
    "Measure",
    "RuleResult",
    "compare",
]
