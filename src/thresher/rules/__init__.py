"""Learning rules as data: the table of rules, their checks, and what the core is told."""

from thresher.rules.parameter import CLASSIFIER_LOSSES, REGRESSOR_LOSSES, Parameter, Task
from thresher.rules.table import RULES, Rule

__all__ = ["CLASSIFIER_LOSSES", "REGRESSOR_LOSSES", "RULES", "Parameter", "Rule", "Task"]
