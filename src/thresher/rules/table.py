"""Every rule and every parameter, once: defaults, ranges, the paper's symbol, a line of help.

The estimators take their checks and documentation from this table, and so do the command line and
the search. It imports nothing heavy.
"""

from __future__ import annotations

from thresher.rules.matrix_rules import MATRIX_RULES
from thresher.rules.rule import Rule
from thresher.rules.streaming_rules import STREAMING_RULES

RULES: dict[str, Rule] = STREAMING_RULES | MATRIX_RULES
