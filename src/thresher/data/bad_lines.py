"""Bad lines: how an error words them, and what is done with them (`on_bad_line` of `scan`).

==========================  =================================================================
input                       error
==========================  =================================================================
text (svmlight, VW)         ``FILE:LINE:COLUMN: REASON``
cell of a table             ``FILE:LINE: column 'NAME': REASON``
CSV line of wrong length    ``FILE:LINE: expected 3 cells, found 2``
CSV line with an open quote ``FILE:LINE: a quote is never closed``
==========================  =================================================================

LINE counts from 1; in a Parquet or Arrow file it is the row. The reasons for text come from the
parsers of the core (``cpp/thresher/io/svmlight.cpp``, ``vw.cpp``); the reasons for cells come from
the code that reads the cell (``columns.py``, ``table_files.py``, ``tables.py``).
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.disk_sync import sync_file
from thresher.errors import DataError, InputError, ParameterError, Words, setting
from thresher.file_access import is_stream, naming, open_stream

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.csv_layout import CsvLayout

__all__ = ["BadCells", "BadLines", "BadRow", "RaggedLines", "check_policy", "report", "text_of_row"]


class BadCells(Exception):
    """Invalid cells of one column.

    Attributes
    ----------
    rows : array of int
        The rows of the cells.
    column : str
    what : callable
        Takes i and returns what is wrong with the cell in ``rows[i]``.
    hint : str or tuple, optional
        What the user can do.
    """

    def __init__(
        self,
        rows: NDArray[np.intp],
        column: str,
        what: Callable[[int], str],
        hint: Words | None = None,
    ):
        super().__init__(column)
        self.rows = rows
        self.column = column
        self.what = what
        self.hint = hint

    def error(self, i: int) -> InputError:
        """Return the error of the i-th cell, without its file and line."""
        return InputError(f"column '{self.column}': {self.what(i)}", hint=self.hint)


@dataclass(frozen=True)
class BadRow:
    """A bad row of a table; ``str(row)`` is its error.

    Attributes
    ----------
    file : str
        Name of the file.
    line : int
        Its line in the file, or its row in the table, from 1.
    what : str
        What is wrong with it.
    text : str
        The row, as far as it is known.
    cause : InputError, optional
        An error with facts, to be raised instead of one without.
    """

    file: str
    line: int
    what: str
    text: str = ""
    cause: InputError | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def text_of_row(cells: Mapping[str, Any], layout: CsvLayout | None) -> str:
    r"""Return a row of a table for a file of bad lines: as a line of CSV, or else as JSON.

    Parameters
    ----------
    cells : mapping
        Values by the names of columns.
    layout : CsvLayout or None
        Of a CSV file.

    Examples
    --------
    >>> from thresher.data.csv_layout import CsvLayout
    >>> text_of_row({"label": None, "text": "a; b", "size": "3"}, CsvLayout(delimiter=";"))
    ';"a; b";3'
    >>> text_of_row({"label": None, "text": "a; b", "size": 3}, None)
    '{"label": null, "text": "a; b", "size": 3}'
    """
    if layout is None:
        return json.dumps(dict(cells), default=str, ensure_ascii=False)
    line = io.StringIO()
    if len(layout.delimiter) == 1 and layout.quotes:
        csv.writer(line, delimiter=layout.delimiter, lineterminator="").writerow(cells.values())
        return line.getvalue()
    between = " " if layout.tagged else layout.delimiter
    return between.join("" if one is None else str(one) for one in cells.values())


def report(bad: list[BadRow], on_bad: Callable[[BadRow], None] | None) -> None:
    """Call a function for each bad row; without a function, raise DataError for the first."""
    for row in bad:
        if on_bad is None:
            place = f"{row.file}:{row.line}"
            raise DataError(str(row)) if row.cause is None else row.cause.at(place)
        on_bad(row)


def check_policy(on_bad_line: str) -> None:
    """Raise ParameterError if the option `on_bad_line` has a value that is not allowed."""
    policy, _, file = on_bad_line.partition("=")
    if not (on_bad_line in ("error", "skip") or (policy == "quarantine" and file)):
        raise ParameterError(
            parameter="on_bad_line", value=on_bad_line, allowed="error, skip or quarantine=FILE"
        )


class BadLines:
    """What is done with the bad lines of a source: an error, or they are counted and left out.

    Parameters
    ----------
    policy : {"error", "skip", "quarantine=FILE"}
        "quarantine" also copies bad lines to a file.

    Attributes
    ----------
    count : int
        Bad lines left out so far. A line that several passes read counts once.
    first : str or None
        The error of the first one.
    """

    def __init__(self, policy: str) -> None:
        self.policy, _, self.file = policy.partition("=")
        self.count = 0
        self.first: str | None = None
        self._written = 0  # bytes in the quarantine file
        self._last = (-1, -1)  # file and line of the last bad line before this block
        self._first_at = (-1, -1)  # file and line of the first one
        self._of_block: list[tuple[tuple[int, int], bytes]] = []
        self._out: IO[bytes] | None = None

    def check(self, block: Block) -> DataError | None:
        """Leave out the bad lines of a block; return the error to raise after its rows."""
        for bad in block.native.bad:
            line = block.native.first_line + bad.line
            what = ""
            if self.is_first(block.end.file, line):  # else `true_line` may read the file in vain
                what = f"{block.file}:{block.true_line(line)}:{bad.column}: {bad.what}"
            if self.policy == "error":
                return DataError(what)
            self.add(block.end.file, line, what, bad.text)
        return None

    def is_first(self, file: int, line: int) -> bool:
        """Tell whether no bad line before this one is known."""
        return self.first is None or (file, line) < self._first_at

    def add(self, file: int, line: int, what: str, text: bytes) -> None:
        """Leave out a line, given by the number of its file and its line in it.

        Those of a block may come in any order; call `end_block` after them.
        """
        place = file, line
        if place <= self._last:  # a later pass reads it again
            return
        self.count += 1
        if self.is_first(file, line):
            self.first, self._first_at = what, place
        self._of_block.append((place, text if self.policy == "quarantine" else b""))

    def end_block(self) -> None:
        """Copy the bad lines of a block to the file, in their order."""
        if not self._of_block:
            return
        found, self._of_block = sorted(self._of_block), []
        self._last = found[-1][0]
        if self.policy == "quarantine":
            for _, text in found:
                self._write(text)

    def _write(self, text: bytes) -> None:
        rest = memoryview(text + b"\n")
        new = not os.path.exists(self.file)
        with naming(self.file):
            try:
                self._out = self._out or self._opened()
                while rest:  # the system may write less than it gets
                    rest = rest[self._out.write(rest) :]
            except OSError:
                self._remove_half_a_line(new)
                raise
        self._written += len(text) + 1

    def _opened(self) -> IO[bytes]:
        if is_stream(self.file):
            return open(open_stream(self.file), "wb", buffering=0)
        out = open(self.file, "r+b" if self._written else "wb", buffering=0)  # noqa: SIM115
        os.ftruncate(out.fileno(), self._written)  # unlike truncate(), repeats after a signal
        out.seek(self._written)
        return out

    def _remove_half_a_line(self, new: bool) -> None:
        """After an error: leave only whole lines, and no empty file that was not there before."""
        out, self._out = self._out, None
        if is_stream(self.file):
            return
        with contextlib.suppress(OSError):
            if out is not None:
                os.ftruncate(out.fileno(), self._written)
                out.close()
            if self._written == 0 and (new or out is not None):
                os.unlink(self.file)

    @property
    def warning(self) -> str:
        """The warning at the end of reading; empty if there were no bad lines."""
        if self.count == 0:
            return ""
        if self.count == 1:
            return f"1 bad line left out: {self.first}"
        return f"{self.count:,} bad lines left out; the first: {self.first}"

    @property
    def state(self) -> list[Any]:
        """The state as JSON types, for a checkpoint. The lines that it counts are on the disk."""
        if self._out is not None:
            sync_file(self.file)
        return [self.count, self.first, self._written, list(self._last)]

    @state.setter
    def state(self, saved: list[Any]) -> None:
        self.count, self.first, self._written, (file, line) = saved
        self._last = (int(file), int(line))
        if self.policy == "quarantine" and self._written and not is_stream(self.file):
            self._check_written()

    def _check_written(self) -> None:
        """Raise InputError if the file lacks lines that an earlier run has written."""
        found = os.path.getsize(self.file) if os.path.exists(self.file) else None
        if found is None or found < self._written:
            lacks = "is missing" if found is None else f"has {found:,} bytes"
            raise InputError(
                f"the file of bad lines {lacks}; the run to be continued has written "
                f"{self._written:,} bytes to it",
                place=self.file,
                hint=("put the file back, or begin the run again without ", setting("resume")),
            )


class RaggedLines:
    """Lines of a CSV file with too many or too few cells, or a quote that is never closed.

    They are in no table. The reader finds them ahead of the rows that are used; `take` returns
    those that rows have reached.

    Parameters
    ----------
    path : str
    header : bool
        Whether the first line is not a row.
    """

    def __init__(self, path: str, header: bool = True) -> None:
        self.path = path
        self._first = 2 if header else 1  # the line of the first row
        self._ahead: deque[BadRow] = deque()
        self._taken = 0

    def add(self, line: int, what: str | InputError, text: str) -> None:
        """Add a line that the reader found."""
        cause = what if isinstance(what, InputError) else None
        self._ahead.append(BadRow(self.path, line, str(what), text, cause))

    def lines(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the line of each of the next rows, given by their numbers from 0."""
        # Before row k: the header, k rows, and each ragged line with at most k rows before it.
        ahead = np.array([bad.line for bad in self._ahead], np.int64)
        rows_before = ahead - self._first - self._taken - np.arange(len(ahead))
        return rows + self._first + self._taken + np.searchsorted(rows_before, rows, side="right")

    def take(self, line: int | None) -> list[BadRow]:
        """Remove and return the ragged lines up to a line; None: all of them."""
        found = []
        while self._ahead and (line is None or self._ahead[0].line <= line):
            found.append(self._ahead.popleft())
        self._taken += len(found)
        return found
