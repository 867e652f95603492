"""Learning rules as data: the table of rules, their checks, and the arguments of the core."""

from thresher.rules.parameter import Parameter
from thresher.rules.rule import Rule
from thresher.rules.table import RULES

__all__ = ["RULES", "Parameter", "Rule"]
