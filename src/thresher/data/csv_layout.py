"""Finds out how a CSV file is laid out: delimiter, quotes, encoding, header and names of columns.

The first 64 KiB decide what the options leave open. A first line is data, not a header, if its
cells are like the cells below: a number above numbers, a word that occurs again in its column, or
a long text above long texts. If other cells are unlike those below, the result is an error that
names both options.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from thresher.data.csv_head import head_of
from thresher.data.csv_rows import ROWS, delimiter_of, first_rows, has_quotes, is_number
from thresher.data.open_quotes import open_header
from thresher.errors import DataError, InputError, ParameterError, setting

__all__ = ["TAG", "UNBROKEN", "CsvLayout", "CsvOptions", "layout_of"]

TAG = "__label__"  # before each label of a line of fastText
_MISSING = ("", "NA", "N/A", "null", "NULL", "None", "?", "nan", "NaN")
_TRUTH = ("true", "True", "TRUE", "false", "False", "FALSE")
_LONG = 5  # words of a text, about
_FEW = 0.2  # share of distinct values among labels, at most
UNBROKEN = "\x01"  # a delimiter that does not occur: each line is one cell


@dataclass(frozen=True)
class CsvOptions:
    """What the user says about a CSV file; None and empty: the file decides.

    Attributes
    ----------
    delimiter : str or None
    header : bool or None
        Whether the first line has the names of the columns.
    columns : tuple of str
        Names of the columns, instead of those in the file.
    encoding : str or None
    quotes : bool or None
        Whether a cell that begins with a quote ends with a quote.
    optional : tuple of str
        Names in `columns` that a file to predict may lack.
    """

    delimiter: str | None = None
    header: bool | None = None
    columns: tuple[str, ...] = ()
    encoding: str | None = None
    quotes: bool | None = None
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class CsvLayout:
    """How a CSV file is laid out.

    Attributes
    ----------
    delimiter : str
    header : bool
        Whether the first line has names.
    names : tuple of str
        Names of the columns.
    heads : tuple of str
        The names in the first line, if it has names.
    encoding : str
    quotes : bool
        Whether a cell that begins with a quote ends with a quote.
    text : str or None
        The column of text, if the file has two columns, labels and texts, without a header.
    tagged : bool
        Whether lines are ``__label__a words of the text``, as fastText has them.
    rows : tuple of tuples of str
        The first rows.
    note : str
        What was found out, for the user; empty if the file is as usual.
    empty : bool
        Whether the file has no rows.
    """

    delimiter: str = ","
    header: bool = True
    names: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    encoding: str = "utf-8"
    quotes: bool = True
    text: str | None = None
    tagged: bool = False
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    empty: bool = False

    def words(self, name: str) -> tuple[str, ...]:
        """Return the different values of a column in the first rows, if they are words."""
        at = self.names.index(name)
        cells = [row[at].strip() for row in self.rows if at < len(row)]
        known = [cell for cell in cells if cell not in (*_MISSING, *_TRUTH)]
        words = any(not is_number(cell) for cell in known)
        return tuple(dict.fromkeys(filter(None, cells))) if words else ()


def layout_of(
    path: str,
    options: CsvOptions,
    like: CsvLayout | None = None,
    waiting: Callable[[], None] | None = None,
) -> CsvLayout:
    r"""Return the layout of a CSV file; reads its first bytes.

    Parameters
    ----------
    path : str
        A path that `expand` returned.
    options : CsvOptions
    like : CsvLayout, optional
        The layout of the first file of a source. It decides if this file leaves open whether it
        has a header.
    waiting : callable, optional
        Called from time to time while a pipe has nothing to read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.data"
    >>> _ = path.write_text("5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n")
    >>> layout = layout_of(str(path), CsvOptions())
    >>> layout.delimiter, layout.header, layout.names
    (',', False, ('0', '1', '2'))
    """
    named = not options.columns and options.header is not False  # perhaps in the first line
    text, encoding, limit = head_of(path, options.encoding, waiting, not named)
    if not text.strip():
        if limit is not None:
            raise DataError(f"{path}:1: the first {limit >> 10} KiB are blank")
        return CsvLayout(names=options.columns, encoding=encoding, empty=True)
    if options.delimiter in (None, UNBROKEN) and _tagged(text):
        return _of_tags(text, encoding)
    if limit is not None and "\n" not in text and "\r" not in text:
        line = "header" if named else "first line"
        raise DataError(f"{path}:1: the {line} is longer than {limit >> 10} KiB")
    delimiter = options.delimiter or delimiter_of(text)
    if delimiter == " ":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    quotes = has_quotes(text, delimiter) if options.quotes is None else options.quotes
    rows, stopped = first_rows(path, text, delimiter, quotes)
    if limit is not None and len(rows) > 2 and not stopped:  # the last row may be cut off
        rows = rows[:-1]
    first, below = rows[0], rows[1:]
    layout = CsvLayout(delimiter, encoding=encoding, quotes=quotes, heads=first)
    header = options.header
    if header is None and not options.columns:
        header = _is_header(path, first, below, like)
    if header and quotes and not below and _is_open(path, text, delimiter, first):
        raise open_header(path, limit)
    complete = limit is None and not stopped  # whether there are no other rows
    if options.columns:
        found = _with_given_names(path, layout, options, first, below)
        return replace(found, empty=complete and not found.rows)
    if header:
        return replace(layout, names=first, rows=below, empty=complete and not below)
    return _without_header(path, replace(layout, header=False, heads=()), rows, options.header)


def _is_open(path: str, text: str, delimiter: str, header: tuple[str, ...]) -> bool:
    """Tell whether a quote in a header is never closed: then it takes in any row after it."""
    return first_rows(path, f"{text}\n0", delimiter, True).rows[0] != header


def _with_given_names(
    path: str,
    layout: CsvLayout,
    options: CsvOptions,
    first: tuple[str, ...],
    below: tuple[tuple[str, ...], ...],
) -> CsvLayout:
    """Return the layout if the names of the columns are given."""
    cells = tuple(cell.strip() for cell in first)
    named = set(cells) <= set(options.columns)  # the same names, perhaps in another order
    if named and set(options.columns) - set(cells) <= set(options.optional):
        return replace(layout, names=cells, rows=below)
    names = options.columns
    if len(first) != len(names):
        names = tuple(name for name in names if name not in options.optional)
    if len(first) != len(names):
        raise ParameterError(
            f"the first line has {len(first)} cells, but there are {len(options.columns)} names "
            f"of columns: {', '.join(options.columns[:50])}",
            place=path,
            parameter="columns",
        )
    header = options.header
    if header is None:  # only a line that cannot be data is a header
        data, heads = _votes(first, below)[:2]
        header = not data and heads > 0
    layout = replace(layout, header=header, names=names)
    return (
        replace(layout, rows=below) if header else replace(layout, heads=(), rows=(first, *below))
    )


def _without_header(
    path: str, layout: CsvLayout, rows: tuple[tuple[str, ...], ...], header: bool | None
) -> CsvLayout:
    """Return the layout of a file without names."""
    names = tuple(str(place) for place in range(len(rows[0])))
    layout = replace(layout, names=names, rows=rows)
    text = _text_place(rows)
    if text is not None:
        names = ("text", "label") if text == 0 else ("label", "text")
        kinds = "texts and labels" if text == 0 else "labels and texts"
        note = f"{path}: two columns without a header, {kinds}"
        return replace(layout, names=names, text="text", note=note)
    if header is None:
        last = len(names) - 1
        note = f"{path}: no header; the columns are named 0 to {last}, and -1 is the last"
        return replace(layout, note=note)
    return layout


# ---- the header ----------------------------------------------------------------------------------


def _is_header(
    path: str,
    first: Sequence[str],
    below: Sequence[Sequence[str]],
    like: CsvLayout | None,
) -> bool:
    """Tell whether the first line has names; raise InputError if that is not clear."""
    if like is not None and like.header and like.heads == tuple(first):
        return True
    data, heads, weak = _votes(first, below)
    twice = next((cell for cell, count in Counter(first).items() if count > 1), None)
    if data and not heads:
        return False
    odd = next((cell for cell in first if _is_fraction(cell)), twice if data else None)
    if odd is not None and below:
        what = "occurs twice" if odd == twice else "is a number"
        raise InputError(
            f"is the first line a header? {odd!r} {what}, but other cells are unlike the cells "
            f"below",
            place=f"{path}:1",
            parameter="header",
            hint=("use ", setting("header", False), " for a file without a header, or ",
                  setting("header", True)),
        )  # fmt: skip
    if not data and not heads and not weak and like is not None:
        return like.header
    return not data or heads > 0


def _votes(first: Sequence[str], below: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """Return the number of cells of the first line that are like data, like names, and perhaps."""
    data = heads = weak = 0
    numbered = _is_sequence(first)
    for place, cell in enumerate(first):
        cells = [row[place].strip() for row in below if place < len(row)]
        cells = [other for other in cells if other not in _MISSING]
        cell = cell.strip()
        if cell in _MISSING:
            continue
        if not cells:
            data += _is_fraction(cell)
            continue
        numbers = sum(map(is_number, cells)) > 0.9 * len(cells)
        if is_number(cell) and (numbers or cell in cells):
            data += not numbered
            heads += numbered
        elif numbers:
            heads += 1
        elif cell in cells:
            data += 1
        elif _mean_words(cells) >= _LONG:
            data += len(cell.split()) >= _LONG and not cell.endswith("?")
        else:
            weak += 2 * len(set(cells)) <= len(cells)
    return data, heads, weak


def _is_sequence(first: Sequence[str]) -> bool:
    """Tell whether the numbers in a first line are names: 0, 1, 2, ... or 2019, 2020, ..."""
    if any(map(_is_fraction, first)):
        return False
    numbers = [int(cell) for cell in first if cell.strip().isdecimal()]
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    return steps == {1} and (len(numbers) > 2 or len(numbers) < len(first))


def _is_fraction(cell: str) -> bool:
    return is_number(cell) and not cell.strip().lstrip("+-").isdecimal()


def _mean_words(cells: Sequence[str]) -> float:
    return sum(len(cell.split()) for cell in cells) / max(len(cells), 1)


# ---- labels and texts ----------------------------------------------------------------------------


def _text_place(rows: Sequence[Sequence[str]]) -> int | None:
    """Return which of two columns is text, if the other one has labels."""
    if any(len(row) != 2 for row in rows[:100]):
        return None
    columns = [[row[place] for row in rows if len(row) == 2] for place in (0, 1)]
    for text in (1, 0):
        labels, texts = columns[1 - text], columns[text]
        few = len(set(labels)) <= max(2, _FEW * len(labels))
        short = _mean_words(labels) < 2 and max(map(len, labels)) < 50
        if few and short and _mean_words(texts) >= _LONG:
            return text
    return None


def _tagged(text: str) -> bool:
    lines = [line for line in text.split("\n")[:100] if line.strip()]
    return sum(line.startswith(TAG) for line in lines) > 0.9 * len(lines)


def _of_tags(text: str, encoding: str) -> CsvLayout:
    lines = [line for line in text.split("\n")[:ROWS] if line.strip()]
    rows = []
    for line in lines:
        words = line.split()
        labels = [word.removeprefix(TAG) for word in words if word.startswith(TAG)]
        rows.append((" ".join(labels), " ".join(w for w in words if not w.startswith(TAG))))
    return CsvLayout(
        UNBROKEN, False, ("label", "text"), (), encoding, False, "text", True, tuple(rows)
    )
