"""The one table of all rules and their parameters: defaults, ranges, symbols, help texts.

Estimators, the command line and the search take their checks and documentation from this table.
It imports no large package.
"""

from __future__ import annotations

from thresher.rules.matrix_rules import MATRIX_RULES
from thresher.rules.rule import Rule
from thresher.rules.streaming_rules import STREAMING_RULES

RULES: dict[str, Rule] = STREAMING_RULES | MATRIX_RULES
