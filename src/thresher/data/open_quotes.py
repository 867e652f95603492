"""Finds a quote in a CSV file that is never closed: the reader takes all rows after it for a cell.

Only the reader knows which quotes are marks and which are part of a cell. So one more row is given
to it after the end of the file: after an open quote, that row becomes a part of the last cell.
"""

from __future__ import annotations

import codecs
import io
from typing import TYPE_CHECKING, Any

from thresher.errors import InputError, setting

if TYPE_CHECKING:
    from thresher.data.csv_layout import CsvLayout

__all__ = ["EndRow", "RowsAndEnd", "open_header", "open_quote"]

_CELL = "\x1eend of the file\x1e"
_HINT = "if quotes are part of the cells, use ", setting("quotes", False)
_UNITS = {"utf-16": 2, "utf-32": 4}  # bytes of a character; a mark says in which order


class EndRow:
    """The row after the end of a file; it has one cell too many, so that it is never data.

    Parameters
    ----------
    layout : CsvLayout
    columns : int
        Number of cells of the rows.
    """

    def __init__(self, layout: CsvLayout, columns: int) -> None:
        self.text = _CELL + layout.delimiter * columns
        self.delimiter = layout.delimiter

    def is_text(self, text: str) -> bool:
        """Tell whether the text of a row is this row."""
        return text == self.text

    def text_before(self, text: str) -> str | None:
        """Return the text of a row without this row at its end; None if it is not there."""
        return text.removesuffix(self.text).rstrip("\r\n") if text.endswith(self.text) else None

    def row_before(self, batch: Any) -> str | None:
        """Return the text of the last row of a batch if this row is at its end, else None."""
        if not batch.num_rows or not batch.num_columns:
            return None
        last = self.text_before(_last_cell(batch.columns[-1]))
        if last is None:
            return None
        others = [self._quoted(_last_cell(column)) for column in batch.columns[:-1]]
        return self.delimiter.join([*others, '"' + last.replace('"', '""')])

    def _quoted(self, cell: str) -> str:
        special = any(mark in cell for mark in (self.delimiter, '"', "\n", "\r"))
        return '"' + cell.replace('"', '""') + '"' if special else cell


def _last_cell(column: Any) -> str:
    cell = column[len(column) - 1].as_py() or ""
    return cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)


class RowsAndEnd(io.RawIOBase):
    """The bytes of a CSV file, and then those of an `EndRow`, unless the file is empty.

    Parameters
    ----------
    stream : RawIOBase
    row : EndRow
    encoding : str
    """

    def __init__(self, stream: Any, row: EndRow, encoding: str) -> None:
        super().__init__()
        self._stream, self._text, self._encoding = stream, "\n" + row.text, encoding
        self._read, self._head = 0, b""
        self._rest: bytes | None = None  # of the row; None: the file has not ended

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a part of the buffer; return the number of bytes."""
        room = memoryview(buffer).cast("B")
        if self._rest is None:
            got: int = self._stream.readinto(room) or 0
            if got:
                self._head = self._head or bytes(room[:4])
                self._read += got
                return got
            self._rest = self._encoded()
        size = min(len(room), len(self._rest))
        room[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def _encoded(self) -> bytes:
        name = codecs.lookup(self._encoding).name
        unit = next((_UNITS[known] for known in _UNITS if name.startswith(known)), 1)
        if not self._read or self._read % unit:  # empty, or its last character is cut off
            return b""
        if name in _UNITS:
            big = self._head.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
            name += "-be" if big else "-le"
        return self._text.encode("utf-8" if name == "utf-8-sig" else name)


def open_quote(text: str) -> InputError:
    """Return the error of a row with a quote that is never closed, without its place."""
    lines = text.count("\n")
    rest = f", with the {lines:,} lines after it" if lines > 1 else ", with the line after it"
    return InputError(
        "a quote is never closed: its cell has the rest of the file" + rest * (lines > 0),
        parameter="quotes",
        hint=_HINT,
    )


def open_header(path: str, limit: int | None) -> InputError:
    """Return the error of a header with a quote that is never closed; it cannot be left out.

    Parameters
    ----------
    path : str
    limit : int or None
        Bytes in which the header should end, if the file has more.
    """
    longer = "" if limit is None else f", or the header is longer than {limit >> 10} KiB"
    what = f"a quote in the header is never closed{longer}"
    return InputError(what, place=f"{path}:1", parameter="quotes", hint=_HINT)
