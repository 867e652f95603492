"""Learning rules as data: the table of rules, their checks, and what the core is told."""

from thresher.rules.parameter import Parameter
from thresher.rules.table import RULES, Rule

__all__ = ["RULES", "Parameter", "Rule"]
