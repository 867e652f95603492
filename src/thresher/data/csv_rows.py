"""Cuts the first lines of a CSV file into rows; finds its delimiter and whether it has quotes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from thresher.errors import DataError

__all__ = ["ROWS", "FirstRows", "delimiter_of", "first_rows", "has_quotes", "is_number"]

ROWS = 1000  # rows of the head that are looked at
_DELIMITERS = "\t,;|"
_NUMBER = re.compile(r"\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*")
_WHOLE = re.compile(r'"(?:[^"]|"")*"')  # a quoted cell


class FirstRows(NamedTuple):
    """The first rows of a text.

    Attributes
    ----------
    rows : tuple of tuples of str
    stopped : bool
        Whether the next row has a cell that is too long for the module csv.
    """

    rows: tuple[tuple[str, ...], ...]
    stopped: bool


def first_rows(path: str, text: str, delimiter: str, quotes: bool) -> FirstRows:
    """Return the first rows of a text: those before a cell of more than 131,072 characters.

    Parameters
    ----------
    path : str
        For the error if the first row has such a cell; "": no error, but no rows.
    text, delimiter : str
    quotes : bool
    """
    lines = io.StringIO(text, newline="")
    style: Literal[0, 3] = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quoting=style)
    rows: list[tuple[str, ...]] = []
    try:
        for row in reader:
            if row:
                rows.append(tuple(row))
            if len(rows) > ROWS:
                break
    except csv.Error as error:
        if not rows and path:
            raise DataError(f"{path}:1: {error}") from None
        return FirstRows(tuple(rows), True)
    return FirstRows(tuple(rows), False)


def delimiter_of(text: str) -> str:
    """Return the delimiter: the one that cuts most rows into as many cells as the first row."""
    best, chosen = (0.0, 1), ""
    for delimiter in _DELIMITERS:
        counts = [len(row) for row in first_rows("", text, delimiter, delimiter != "\t").rows[:100]]
        if not counts or counts[0] < 2:
            continue
        share = counts.count(counts[0]) / len(counts)
        if (share, counts[0]) > best and share > 0.5:
            best, chosen = (share, counts[0]), delimiter
    if not chosen and _is_aligned(text):
        return " "
    first = text.split("\n", 1)[0]
    return chosen or max("\t,;", key=first.count)


def _is_aligned(text: str) -> bool:
    """Tell whether spaces cut all lines into the same number of cells, most of them numbers."""
    rows = [line.split() for line in text.split("\n")[:100] if line.strip()]
    numbers = sum(is_number(cell) for row in rows for cell in row)
    return _is_even(rows) and len(rows[0]) > 1 and 2 * numbers > len(rows) * len(rows[0])


def has_quotes(text: str, delimiter: str) -> bool:
    """Tell whether cells of a file are quoted; a quote in a tab-separated text is often plain."""
    if delimiter != "\t":
        return True
    cells = [cell for line in text.splitlines()[:ROWS] for cell in line.split(delimiter)]
    opened = [cell for cell in cells if cell.startswith('"')]
    if not opened:
        return False
    if _is_even(first_rows("", text, delimiter, False).rows):
        return all(_WHOLE.fullmatch(cell) for cell in opened)
    return _is_even(first_rows("", text, delimiter, True).rows[:-1])


def _is_even(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether all rows have the same number of cells."""
    return len({len(row) for row in rows}) == 1


def is_number(cell: str) -> bool:
    """Tell whether a cell is a decimal number, perhaps with an exponent."""
    return _NUMBER.fullmatch(cell) is not None
