"""Columns of a table that grows line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Column(NamedTuple):
    """A column, aligned to the right.

    Attributes
    ----------
    heading : str
    width : int
        Characters, with the space before the column.
    text : callable
        Takes the facts of a line; returns the text of this column.
    """

    heading: str
    width: int
    text: Callable[[Mapping[str, Any]], str]


def heading_of(columns: Sequence[Column]) -> str:
    """Return the first line of a table."""
    return "".join(f"{column.heading:>{column.width}}" for column in columns)


def line_of(columns: Sequence[Column], facts: Mapping[str, Any]) -> str:
    """Return a line of a table."""
    return "".join(f"{column.text(facts):>{column.width}}" for column in columns).rstrip()


def number_or_blank(name: str, form: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that formats the fact `name`; the text is empty if the fact is None.

    Examples
    --------
    >>> text = number_or_blank("loss", ".4f")
    >>> text({"loss": 0.25}), text({"loss": None})
    ('0.2500', '')
    """
    return lambda facts: "" if facts[name] is None else format(facts[name], form)
