"""Reads tables to look at them: it goes on where training would stop.

Cells of CSV files are strings. Lines with too many or too few cells are counted and left out.
Bytes that are not text in the encoding are replaced, and counted; so are NUL bytes.

A row with a quote that is never closed is one bad line, unless quotes seem to be plain characters:
fewer lines are bad if quotes are plain than if they are marks, where the lines that this row
encloses are counted as bad. So it is if the row is longer than a block.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from thresher.data.columns import arrow
from thresher.data.csv_files import LINE, split_tags
from thresher.data.csv_layout import CsvLayout
from thresher.data.open_quotes import EndRow, RowsAndEnd, open_quote
from thresher.data.open_streams import open_bytes
from thresher.data.paths import can_reopen
from thresher.data.spans import Span
from thresher.data.table_files import read_tables
from thresher.errors import DataError
from thresher.overview.sniff import Sniffed

__all__ = ["BATCH_ROWS", "BadLineCount", "PlainQuotesError", "read_batches"]

BATCH_ROWS = 8192
_BLOCK = 1 << 20  # bytes per read, and the longest row


@dataclass
class BadLineCount:
    """Lines and bytes that cannot be read.

    Attributes
    ----------
    lines : int
        Lines that are left out.
    first : str
        Place of the first of them, and what is wrong.
    undecodable : int
        Bytes that are not text in the encoding.
    first_undecodable : str
        Place of the first of them.
    nul : int
        NUL bytes.
    first_nul : str
        Place of the first of them.
    open_quote : bool
        Whether one of these lines has a quote that is never closed, and encloses others.
    """

    lines: int = 0
    first: str = ""
    undecodable: int = 0
    first_undecodable: str = ""
    nul: int = 0
    first_nul: str = ""
    open_quote: bool = False

    def add(self, place: str, what: str) -> None:
        """Count a line."""
        self.lines += 1
        self.first = self.first or f"{place}: {what}"


class PlainQuotesError(Exception):
    """A quote is never closed, and quotes seem to be plain characters.

    Attributes
    ----------
    file : Sniffed
        The file, which should be read again.
    """

    def __init__(self, file: Sniffed) -> None:
        super().__init__(file.path)
        self.file = file


class _Utf8(io.RawIOBase):
    """A stream of text in any encoding, as UTF-8 without NUL bytes."""

    def __init__(
        self, stream: Any, path: str, encoding: str, bad: BadLineCount, aligned: bool = False
    ) -> None:
        super().__init__()
        self._aligned, self._part = aligned, b""
        self._stream, self._path, self._bad = stream, path, bad
        self._plain = encoding == "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""
        self._lines = 0
        self.size = 0  # bytes that were returned
        self._ended = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return the number of bytes, 0 at the end."""
        while not self._ready and not self._ended:
            piece = self._stream.read(1 << 16)
            self._ended = not piece
            self._ready = self._converted(piece or b"")
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        self.size += size
        return size

    def _converted(self, piece: bytes) -> bytes:
        bad = self._bad
        if self._plain and piece.isascii() and not self._decoder.getstate()[0]:
            found = piece
        else:
            found = self._decoder.decode(piece, self._ended).removeprefix("\ufeff").encode()
            wrong = found.count(b"\xef\xbf\xbd") - piece.count(b"\xef\xbf\xbd") * self._plain
            if wrong > 0:
                bad.undecodable += wrong
                bad.first_undecodable = bad.first_undecodable or self._place(found, b"\xef\xbf\xbd")
        if b"\0" in found:
            bad.nul += found.count(b"\0")
            bad.first_nul = bad.first_nul or self._place(found, b"\0")
            found = found.replace(b"\0", b"")
        self._lines += found.count(b"\n")
        return self._with_one_space(found) if self._aligned else found

    def _with_one_space(self, found: bytes) -> bytes:
        """Return whole lines, with one space between two cells."""
        whole = self._part + found
        end = len(whole) if self._ended else whole.rfind(b"\n") + 1
        self._part = whole[end:]
        return re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", re.sub(rb"[ \t]+", b" ", whole[:end]))

    def _place(self, found: bytes, what: bytes) -> str:
        line = self._lines + found[: found.find(what)].count(b"\n") + 1
        return f"{self._path}:{line}"


def read_batches(
    file: Sniffed, bad: BadLineCount, on_read: Callable[[int], None] = lambda _: None
) -> Iterator[Any]:
    """Yield the rows of a table as record batches of at most `BATCH_ROWS` rows.

    Parameters
    ----------
    file : Sniffed
    bad : BadLineCount
        Gets what cannot be read.
    on_read : callable
        Called with the number of stored bytes that were read.

    Raises
    ------
    PlainQuotesError
        A CSV file should be read again, from its beginning, with quotes as plain characters.
    """
    if file.format != "csv":
        for table in read_tables(file.path, file.format, BATCH_ROWS, Span(0, sys.maxsize)):
            yield table.combine_chunks().to_batches()[0]
        return
    if file.layout is not None and file.layout.names:
        yield from _csv(file, file.layout, bad, on_read)


def _csv(
    file: Sniffed,
    layout: CsvLayout,
    bad: BadLineCount,
    on_read: Callable[[int], None],
) -> Iterator[Any]:
    """Yield batches of a CSV file."""
    pa = arrow("reading CSV")
    from pyarrow import csv

    names = [LINE] if layout.tagged else _unique(layout.names)
    end, opened, left_out = EndRow(layout, len(names)), "", 0
    count = 2 if layout.header else 1

    def ragged(row: Any) -> str:
        nonlocal opened, left_out
        text = end.text_before(row.text)
        if text is not None:
            opened = text
            return "skip"
        what = f"expected {row.expected_columns} cells, found {row.actual_columns}"
        bad.add(f"{file.path}:{row.number}" if row.number else file.path, what)
        left_out += 1
        return "skip"

    with open_bytes(file.path) as stream:
        plain = _Utf8(stream, file.path, file.encoding or "utf-8", bad, layout.delimiter == " ")
        rows = RowsAndEnd(plain, end, "utf-8") if layout.quotes else plain
        text = io.BufferedReader(rows, _BLOCK)  # reads whole blocks: small batches are slow
        try:
            reader = csv.open_csv(
                text,
                read_options=csv.ReadOptions(
                    use_threads=False,
                    block_size=_BLOCK,
                    column_names=names,
                    skip_rows_after_names=1 if layout.header else 0,
                ),
                parse_options=csv.ParseOptions(
                    delimiter=layout.delimiter,
                    quote_char='"' if layout.quotes else False,
                    newlines_in_values=layout.quotes,
                    invalid_row_handler=ragged,
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
            with reader:
                cells = 0
                for batch in reader:
                    before = end.row_before(batch)
                    if before is not None:
                        opened, batch = before, batch.slice(0, batch.num_rows - 1)
                    count += batch.num_rows
                    for begin in range(0, batch.num_rows, BATCH_ROWS):
                        piece = batch.slice(begin, BATCH_ROWS)
                        # The reader reads ahead: count what the rows so far take. A cell has an
                        # offset of four bytes, and one byte after it in the file.
                        cells += piece.nbytes - 3 * piece.num_rows * len(names)
                        share = min(cells / max(plain.size, 1), 1.0)
                        on_read(round(stream.raw_position * share))
                        yield _split(piece) if layout.tagged else piece
        except pa.ArrowInvalid as error:
            what = str(error)
            if "Empty CSV" in what:
                return
            if "straddling" in what and layout.quotes:
                if can_reopen(file.path):
                    raise PlainQuotesError(file) from error
                what = f"a row is longer than {_BLOCK >> 10} KiB, or a quote is never closed"
            raise DataError(f"{file.path}: {what}") from error
    if opened:
        lines = max(opened.count("\n"), opened.count("\r"))  # that the open row encloses
        if lines and _bad_without_quotes(file, layout, lines + left_out) < lines + left_out:
            raise PlainQuotesError(file)
        bad.add(f"{file.path}:{count + left_out}", str(open_quote(opened).what))
        bad.open_quote = bad.open_quote or lines > 0


def _bad_without_quotes(file: Sniffed, layout: CsvLayout, most: int) -> int:
    """Return how many lines are bad if quotes are plain characters; `most` if that is not known."""
    if not can_reopen(file.path):
        return most
    bad = BadLineCount()
    try:
        for _ in _csv(file, replace(layout, quotes=False), bad, lambda _: None):
            pass
    except DataError:
        return most
    return bad.lines


def _split(lines: Any) -> Any:
    """Return labels and texts of lines of fastText."""
    pa = arrow("reading CSV")
    table = split_tags(pa.Table.from_batches([lines]))
    columns = [table.column(name).chunk(0).cast(pa.string()) for name in table.column_names]
    return pa.RecordBatch.from_arrays(columns, names=table.column_names)


def _unique(names: tuple[str, ...]) -> list[str]:
    """Return names that are all different: repeated and empty ones get their position."""
    found: list[str] = []
    seen: set[str] = set()
    used = set(names)
    for at, name in enumerate(names):
        new = name
        if not name or name in seen:
            new = f"{name}#{at}"
            while new in used:
                new += "#"
        seen.add(new)
        used.add(new)
        found.append(new)
    return found
