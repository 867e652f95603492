"""Parse grids of parameters: NAME=A,B,C or NAME=A..B:N."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from thresher.cli.options.rule_parameters import value_of
from thresher.cli.render.errors import option_of
from thresher.errors import ParameterError
from thresher.losses import canonical_loss
from thresher.rules import RULES
from thresher.rules.parameter import Parameter

# Not allowed in a grid: all models share them.
SHARED = frozenset(
    (
        *("epsilon", "quantile", "passes", "shuffle", "store", "dtype", "tol", "patience"),
        *("class_weight", "warm_start", "random_state", "callback", "n_jobs", "verbose"),
        *("certify", "levels"),
    )
)
MAX_POINTS = 10_000  # combinations of a grid
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def grid_of(rule: str, texts: Sequence[str], chosen: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values of each parameter of a grid.

    Parameters
    ----------
    rule : str
        A key of ``RULES``.
    texts : sequence of str
        Values of ``--grid``: ``NAME=A,B,C``, or ``NAME=A..B:N`` for N values with equal ratios.
    chosen : mapping
        Parameters given by other options.

    Raises
    ------
    ParameterError
        The message names the option, the value given and the values allowed.

    Examples
    --------
    >>> from thresher.cli.options.grid import grid_of
    >>> grid_of("truncated-gradient", ["gravity=1e-6..1e-4:3", "schedule=sqrt,constant"], {})
    {'gravity': [1e-06, 1e-05, 0.0001], 'schedule': ['sqrt', 'constant']}
    """
    table = {
        name: parameter for name, parameter in RULES[rule].parameters.items() if name not in SHARED
    }
    grid: dict[str, list[Any]] = {}
    for text in texts:
        word, equals, values = text.partition("=")
        name, owner = word.strip().replace("-", "_"), f"--grid {text}"
        if not equals or not name or not values.strip():
            raise ParameterError(
                f"--grid must be NAME=A,B,C or NAME=A..B:N, such as gravity=1e-7..1e-3:8; "
                f"got {text!r}"
            )
        if name in SHARED and name in RULES[rule].parameters:
            raise ParameterError(
                f"{owner}: {name} must be the same for all models; a grid may have "
                f"{', '.join(table)}"
            )
        if name not in table:
            raise ParameterError(
                f"{owner}: {name} is not a parameter of the rule {rule}; a grid may have "
                f"{', '.join(table)}"
            )
        if name in grid:
            raise ParameterError(
                f"{owner}: {name} is already in the grid; give all its values at once"
            )
        if name in chosen:
            raise ParameterError(
                f"{owner}: {name} is also given by {option_of(name)}; give only one of the two"
            )
        grid[name] = _values(name, table[name], values.strip(), owner)
    if math.prod(map(len, grid.values())) > MAX_POINTS:
        raise ParameterError(
            f"--grid: at most {MAX_POINTS:,} combinations are allowed; got "
            f"{' x '.join(str(len(values)) for values in grid.values())}"
        )
    return grid


def _values(name: str, parameter: Parameter, text: str, owner: str) -> list[Any]:
    parsed = _range if ".." in text else _list
    values = parsed(name, parameter, text, owner)
    seen = set()
    for value in values:
        if value in seen:
            raise ParameterError(f"{owner}: {value!r} is given twice")
        seen.add(value)
    return values


def _list(name: str, parameter: Parameter, text: str, owner: str) -> list[Any]:
    words = [word.strip() for word in text.split(",")]
    if parameter.kind == "flag":
        for word in words:
            if word.lower() not in _FLAGS:
                raise ParameterError(f"{owner}: {name} must be true or false; got {word!r}")
        return [_FLAGS[word.lower()] for word in words]
    if name == "loss":
        words = [canonical_loss(word) for word in words]
    return [value_of(parameter, word, f"{owner}: {name}") for word in words]


def _range(name: str, parameter: Parameter, text: str, owner: str) -> list[Any]:
    """Return values with equal ratios; rounded, without repetitions, for an integer parameter."""
    ends, colon, count = text.partition(":")
    first, last = (_number(word) for word in ends.split("..", 1))
    if parameter.kind not in ("number", "integer"):
        raise ParameterError(
            f"{owner}: {name} must be {parameter.allowed()}; a range must be of numbers"
        )
    if "..." in ends:
        raise ParameterError(
            f"{owner}: write a range with two dots, such as 1e-7..1e-3:8; got {ends!r}"
        )
    if not colon or not 2 <= _count(count) <= MAX_POINTS:
        raise ParameterError(
            f"{owner}: a range needs its number of values, from 2 to {MAX_POINTS:,}, such as "
            f"1e-7..1e-3:8"
        )
    if not (0 < first < math.inf and 0 < last < math.inf and first != last):
        raise ParameterError(
            f"{owner}: the ends of a range must be two different numbers > 0, because its values "
            f"have equal ratios; got {ends!r}"
        )
    steps = int(count) - 1
    exponents = [
        math.log10(first) + (math.log10(last) - math.log10(first)) * i / steps
        for i in range(1, steps)
    ]
    values: list[Any] = [first, *(float(f"{10**exponent:.6g}") for exponent in exponents), last]
    if parameter.kind == "integer":
        values = list(dict.fromkeys(round(value) for value in values))
    for value in values:
        if not parameter.accepts(value):
            raise ParameterError(f"{owner}: {name} must be {parameter.allowed()}; got {value:g}")
    return values


def _count(word: str) -> int:
    """Return a whole number of at most nine digits, or 0."""
    word = word.strip()
    return int(word) if word.isdecimal() and len(word) < 10 else 0


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
