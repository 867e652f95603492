"""How the cells of a CSV file are written: separator, header and quotes, from its first lines."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from thresher.overview.columns import MISSING

__all__ = ["DELIMITERS", "CsvLayout", "find_layout", "has_header"]

DELIMITERS = "\t,;|"
_LINES = 200
_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*")
_LABEL_NAMES = {"label", "labels", "y", "target", "class", "text", "id"}
_LONG_NAME = 48  # letters of a cell that is too long for a name
_MANY_WORDS = 6


@dataclass(frozen=True)
class CsvLayout:
    """The layout of a CSV file.

    Attributes
    ----------
    delimiter : str
        One of `DELIMITERS`, a space, or "" for one column.
    header : bool
        Whether the first line holds names.
    names : tuple of str
        Names of the columns; positions from 0 without header.
    quotes : bool
        Whether a quote at the beginning of a cell encloses the cell. False if a quote is not
        closed, so that it must be a plain character.
    regular : float
        Share of the first lines that have the usual number of cells.
    guessed : str
        The separator that a reader takes which counts separators in the first line.
    aligned : bool
        Whether cells are separated by any number of spaces.
    """

    delimiter: str
    header: bool
    names: tuple[str, ...]
    quotes: bool = True
    regular: float = 1.0
    guessed: str = ""
    aligned: bool = False


def find_layout(head: str, delimiter: str | None = None, header: bool | None = None) -> CsvLayout:
    r"""Return the layout of a file, given its first lines.

    Parameters
    ----------
    head : str
        Complete lines.
    delimiter : str, optional
        The separator, if it is known.
    header : bool, optional
        Whether there is a header, if it is known.

    Examples
    --------
    >>> find_layout("age;city\n31;Rome\n28;Oslo\n")
    CsvLayout(delimiter=';', header=True, names=('age', 'city'), ...)
    >>> find_layout("ham\tsee you, tomorrow\nspam\twin a prize\nham\tok\n").names
    ('0', '1')
    """
    ends = head.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line for line in ends.split("\n") if line.strip()][:_LINES]
    if not lines:
        return CsvLayout(delimiter or ",", True, ())
    whole = "\n".join(lines) + "\n"
    tried = [delimiter] if delimiter else [*DELIMITERS, " "]
    best: tuple[float, int, int] = (0.0, 0, 0)
    chosen = ""
    rows: list[list[str]] = [[line] for line in lines]
    regular = 1.0
    quotes = True
    for order, each in enumerate(tried):
        found = _cells(whole, each, True)
        closed = len(found) == len(lines) or _quotes_are_closed(lines, each)
        if not closed:
            found = _cells(whole, each, False)
        width, times = Counter(len(row) for row in found).most_common(1)[0]
        share = times / len(found)
        if width < 2 or (share < 0.6 and not delimiter):
            continue
        score = (share if each != " " else share - 0.5, min(width, 3), -order)
        if score > best:
            best, chosen, rows, regular, quotes = score, each, found, share, closed
    aligned = not delimiter and chosen in ("", " ") and _is_aligned(lines)
    if aligned:
        chosen, rows, regular = " ", [line.split() for line in lines], 1.0
    width = max(Counter(len(row) for row in rows).items(), key=lambda item: item[1])[0]
    usual = [row for row in rows if len(row) == width]
    first = rows[0] if len(rows[0]) == width else usual[0]
    if header is None:
        header = has_header(first, [row for row in usual if row is not first])
    names = tuple(cell.strip() for cell in first) if header else tuple(map(str, range(width)))
    guessed = max("\t,;", key=lines[0].count)
    return CsvLayout(chosen, header, names, quotes, round(regular, 4), guessed, aligned)


def _is_aligned(lines: Sequence[str]) -> bool:
    """Tell whether cells are numbers, mostly, that are separated by any number of spaces."""
    cells = [line.split() for line in lines]
    width = len(cells[0])
    numbers = sum(bool(_NUMBER.fullmatch(cell)) for row in cells for cell in row)
    several = any("  " in line.strip() or line[:1] == " " for line in lines)
    return (
        several
        and width > 1
        and all(len(row) == width for row in cells)
        and numbers >= 0.5 * width * len(cells)
    )


def _cells(whole: str, delimiter: str, quotes: bool) -> list[list[str]]:
    try:
        return list(
            csv.reader(
                io.StringIO(whole, newline=""),
                delimiter=delimiter,
                quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
            )
        )
    except csv.Error:  # a cell longer than 128 KiB
        return [line.split(delimiter) for line in whole.split("\n")]


def _quotes_are_closed(lines: Sequence[str], delimiter: str) -> bool:
    """Tell whether quotes enclose cells, although some cells have several lines then.

    They do not if all lines have as many cells without a meaning of quotes, and a quote at the
    beginning of a cell is not closed in its line.
    """
    open_cells = 0
    widths = Counter(line.count(delimiter) for line in lines)
    regular = widths.most_common(1)[0][1] >= 0.98 * len(lines)
    for line in lines:
        for cell in line.split(delimiter):
            cell = cell.strip()
            if cell.startswith('"') and (len(cell) == 1 or not cell.endswith('"')):
                open_cells += 1
    return not (regular and open_cells)


def has_header(first: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first line holds names of columns.

    Names are different, short, and not numbers; and a column below them is of numbers or of other
    strings.

    Parameters
    ----------
    first : sequence of str
        Cells of the first line.
    body : sequence of sequence of str
        Cells of the next lines, as many in each.

    Examples
    --------
    >>> has_header(["size", "price"], [["1", "2"], ["3", "4"]])
    True
    >>> has_header(["5.1", "setosa"], [["4.9", "setosa"], ["6.3", "virginica"]])
    False
    """
    cells = [cell.strip() for cell in first]
    if any(_NUMBER.fullmatch(cell) for cell in cells):
        return False
    named = [cell for cell in cells if cell]
    if len(set(named)) < len(named) or not named:
        return False
    if any(len(cell) > _LONG_NAME or len(cell.split()) > _MANY_WORDS for cell in cells):
        return False
    if not body or {cell.lower() for cell in cells} & _LABEL_NAMES:
        return True
    below = [[row[at].strip() for row in body] for at in range(len(cells))]
    if any(cell in column for cell, column in zip(cells, below, strict=True) if cell):
        return False  # a value of a category
    if any(_mostly_numbers(column) for column in below):
        return True
    # Only strings: names are shorter than texts, and are words.
    return all(re.fullmatch(r"[^\W\d][\w .()/#%-]*", cell) for cell in named)


def _mostly_numbers(column: Sequence[str]) -> bool:
    present = [cell for cell in column if cell not in MISSING]
    numbers = sum(bool(_NUMBER.fullmatch(cell)) for cell in present)
    return bool(present) and numbers >= 0.8 * len(present)
