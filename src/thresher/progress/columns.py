"""Columns of a table that grows line by line, and of a line that is overwritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from thresher.progress.texts import duration, loss_text


class Column(NamedTuple):
    """A column, aligned to the right.

    Attributes
    ----------
    heading : str
    width : int
        Characters, with the space before the column. A longer text is not cut: the next column
        moves to the right.
    text : callable
        Takes the facts of a line; returns the text of this column.
    rank : int
        A narrow terminal leaves out the columns with the highest ranks; 0: never.
    """

    heading: str
    width: int
    text: Callable[[Mapping[str, Any]], str]
    rank: int = 0


def heading_of(columns: Sequence[Column]) -> str:
    """Return the first line of a table."""
    return _joined(columns, [column.heading for column in columns])


def line_of(columns: Sequence[Column], facts: Mapping[str, Any]) -> str:
    """Return a line of a table; at least one space is between two columns.

    Examples
    --------
    >>> columns = (Column("pass", 6, number_or_blank("pass", "")), LOSS)
    >>> print(heading_of(columns), line_of(columns, {"pass": 1, "loss": 931980.5}), sep="|")
      pass      loss|     1 9.320e+05
    """
    return _joined(columns, [column.text(facts) for column in columns])


def _joined(columns: Sequence[Column], texts: Sequence[str]) -> str:
    pairs = zip(columns, texts, strict=True)
    return "".join(f" {text:>{column.width - 1}}" for column, text in pairs).rstrip()


def narrowed(columns: Sequence[Column], width: int) -> tuple[Column, ...]:
    """Return the columns that fit in `width` characters; those of rank 0 always stay."""
    kept = list(columns)
    while sum(column.width for column in kept) > width:
        last = max(kept, key=lambda column: column.rank)
        if last.rank == 0:
            break
        kept.remove(last)
    return tuple(kept)


def number_or_blank(name: str, form: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that formats the fact `name`; the text is empty if the fact is None.

    Examples
    --------
    >>> text = number_or_blank("loss", ".4f")
    >>> text({"loss": 0.25}), text({"loss": None})
    ('0.2500', '')
    """
    return lambda facts: "" if facts[name] is None else format(facts[name], form)


LOSS = Column("loss", 10, lambda facts: loss_text(facts["loss"]))
_EXAMPLES = Column("examples", 12, number_or_blank("examples", ","), 2)  # rows learned so far
_PASS = Column("pass", 6, number_or_blank("pass", ""), 4)  # from 1
_NONZEROS = Column("nonzeros", 12, number_or_blank("nonzeros", ","), 1)  # weights
_RATE = Column("rows/s", 12, number_or_blank("rows_per_second", ","), 3)
_DONE = Column("done", 7, number_or_blank("done", ".0%"))
_LEFT = Column("left", 10, lambda facts: duration(facts["left"]))  # estimated time

# The columns by kind of training. The loss of rows is progressive, since the record before.
ROWS = (_EXAMPLES, _PASS, LOSS, _NONZEROS, _RATE, _DONE, _LEFT)
PASSES = (_PASS._replace(rank=0), LOSS, _NONZEROS, _RATE, _DONE, _LEFT)
STAGES = (
    Column("class", 9, lambda facts: f"{facts['output']}/{facts['outputs']}"),
    Column("stage", 7, number_or_blank("stage", ""), 2),
    LOSS, _NONZEROS, _DONE, _LEFT,
)  # fmt: skip


def columns_of(facts: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns of the table that shows these facts."""
    if "stage" in facts:
        return STAGES if facts["outputs"] > 1 else STAGES[1:]
    return PASSES if "examples" not in facts else ROWS
