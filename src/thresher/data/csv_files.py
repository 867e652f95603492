"""Reads CSV files as tables of strings with a fixed number of rows."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.bad_lines import BadRow
from thresher.data.byte_stream import BinaryStream
from thresher.data.columns import arrow, integers, single
from thresher.data.csv_layout import TAG, CsvLayout
from thresher.data.open_quotes import EndRow, RowsAndEnd, open_quote
from thresher.data.open_streams import open_bytes
from thresher.data.table_files import cut
from thresher.errors import InputError, setting

__all__ = ["LINE", "OnRagged", "decoded", "read_csv", "split_tags"]

_BLOCK = 1 << 18  # bytes per read, and the longest row; reading takes 50 MiB (80 MiB with 1 MiB)
_WAIT = 0.1  # seconds between two calls of `waiting`
LINE = "line"  # the only column of a file of fastText, before it is split

OnRagged = Callable[[int, str | InputError, str], None]
"""Called with number, error and text of a CSV line with more or fewer cells than the first line.

Also of a line with a quote that is never closed.
"""


def read_csv(
    path: str,
    rows: int,
    layout: CsvLayout,
    on_ragged: OnRagged,
    on_read: Callable[[int], None] = lambda _: None,
    waiting: Callable[[], None] | None = None,
    limit: int | None = None,
) -> Iterator[Any]:
    """Yield the rows of a CSV file as tables of bytes; `decoded` turns them into strings.

    Parameters
    ----------
    path : str
    rows : int
        Rows per table.
    layout : CsvLayout
    on_ragged : callable
        Called for each line with too many or too few cells, before the rows after it are yielded,
        and for a line with a quote that is never closed.
    on_read : callable
        Called with the number of bytes read so far.
    waiting : callable, optional
        Called from time to time while a pipe has no rows; an error that it raises ends the reading.
    limit : int, optional
        As for `open_bytes`.
    """
    with open_bytes(path, waiting, limit) as stream:
        if layout.empty:
            return
        tables = _tables(stream, path, rows, layout, on_ragged)
        if not stream.rereadable:
            tables = _in_thread(tables, stream)
        for table in tables:
            on_read(stream.raw_position)
            yield table


def _in_thread(tables: Iterator[Any], stream: BinaryStream) -> Iterator[Any]:
    """Yield tables that another thread reads, one at a time.

    While Arrow waits for a pipe, no signal handler of Python can run in the thread that waits.
    """
    try:
        with ThreadPoolExecutor(1) as pool:
            try:
                while True:
                    table = pool.submit(next, tables, None)
                    while not wait([table], _WAIT).done:
                        stream.waiting()
                    if table.result() is None:
                        return
                    yield table.result()
            finally:
                stream.abandon()  # so that the thread ends
    finally:
        tables.close()  # type: ignore[attr-defined]


def _tables(
    stream: BinaryStream, path: str, rows: int, layout: CsvLayout, on_ragged: OnRagged
) -> Iterator[Any]:
    """Yield the rows of a stream as tables of bytes."""
    pa = arrow("reading CSV")
    import pyarrow.csv as csv

    names = (LINE,) if layout.tagged else layout.names
    names = layout.heads if layout.header else names
    end, left_out = EndRow(layout, len(names)), 0

    def report(row: Any) -> str:
        nonlocal left_out
        if not end.is_text(row.text):
            text = end.text_before(row.text)
            what = f"expected {row.expected_columns} cells, found {row.actual_columns}"
            on_ragged(row.number, what if text is None else open_quote(text), text or row.text)
            left_out += 1
        return "skip"

    def without_open_row(batches: Any) -> Iterator[Any]:
        count = 2 if layout.header else 1
        for batch in batches:
            count += batch.num_rows
            text = end.row_before(batch)
            if text is not None:
                on_ragged(count - 1 + left_out, open_quote(text), text)
                batch = batch.slice(0, batch.num_rows - 1)
            yield batch

    options = {
        "read_options": csv.ReadOptions(
            use_threads=False,
            block_size=_BLOCK,
            column_names=None if layout.header else names,
            encoding="utf8" if layout.encoding == "utf-8" else layout.encoding,
        ),
        "parse_options": csv.ParseOptions(
            delimiter=layout.delimiter,
            quote_char='"' if layout.quotes else False,
            newlines_in_values=layout.quotes,
            invalid_row_handler=report,
        ),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            strings_can_be_null=True,
            null_values=[""],
        ),
    }
    try:
        plain = _SingleSpaces(stream) if layout.delimiter == " " else stream
        reads = _WholeReads(RowsAndEnd(plain, end, layout.encoding) if layout.quotes else plain)
        with csv.open_csv(reads, **options) as reader, _read_to_the_end(reads, reader):
            for table in cut(without_open_row(reader), rows):
                yield split_tags(table) if layout.tagged else table.rename_columns(layout.names)
    except pa.ArrowInvalid as error:
        raise _explained(path, layout, str(error)) from error
    except UnicodeError as error:
        raise InputError(
            f"its bytes are not {layout.encoding}: {error}",
            place=path,
            parameter="encoding",
            hint=("name another one with ", setting("encoding")),
        ) from None


@contextlib.contextmanager
def _read_to_the_end(reads: _WholeReads, reader: Any) -> Iterator[None]:
    """End the reads of Arrow's own thread, which reads ahead, when the rows are not needed.

    If Python ended while that thread reads, the process would abort.
    """
    try:
        yield
    finally:
        reads.ended = True
        with contextlib.suppress(Exception):  # of rows that nobody reads
            for _ in reader:
                pass


class _WholeReads(io.RawIOBase):
    """A stream whose reads return as many bytes as requested, unless it ends.

    A pipe returns fewer; Arrow would refuse rows that are longer than two such reads.
    """

    def __init__(self, stream: io.RawIOBase) -> None:
        self.stream = stream
        self.ended = False  # whether there is nothing more to read

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return the number of bytes."""
        room, filled = memoryview(buffer).cast("B"), 0
        while (
            not self.ended and filled < len(room) and (got := self.stream.readinto(room[filled:]))
        ):
            filled += got
        return filled


class _SingleSpaces(io.RawIOBase):
    """A stream of lines whose cells have one space between them, and none around them."""

    def __init__(self, stream: io.RawIOBase) -> None:
        self.stream, self._rest, self._ready = stream, b"", b""

    def readinto(self, buffer: Any) -> int:
        """Fill a part of the buffer; return the number of bytes."""
        while not self._ready:
            raw = bytearray(_BLOCK)
            got = self.stream.readinto(raw) or 0
            whole, mark, rest = (self._rest + bytes(raw[:got])).rpartition(b"\n")
            if got == 0:
                whole, mark, rest = self._rest, b"", b""
            self._rest = rest
            lines = (b" ".join(line.split()) for line in whole.split(b"\n"))
            self._ready = b"\n".join(lines) + mark
            if got == 0:
                break
        count = min(len(self._ready), len(buffer))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


def _explained(path: str, layout: CsvLayout, what: str) -> InputError:
    """Return the error of a file that Arrow cannot parse."""
    uneven = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", what)
    if uneven is not None:  # Arrow reports such lines one by one, unless they are not UTF-8
        line, expected, found = uneven.groups()
        return InputError(
            f"expected {expected} cells, found {found}, and the line is not UTF-8",
            place=f"{path}:{line}",
            parameter="encoding",
            hint=("name the encoding, for example ", setting("encoding", "latin-1")),
        )
    if "straddling" not in what:
        return InputError(what, place=path)
    what = f"a row is longer than {_BLOCK >> 10} KiB"
    if not layout.quotes:
        return InputError(what, place=path)
    hint = "if quotes are part of the cells, use ", setting("quotes", False)
    return InputError(f"{what}, or a quote is never closed", place=path, hint=hint)


def split_tags(table: Any) -> Any:
    """Return labels and texts of lines of fastText: ``__label__a __label__b words``."""
    pa = arrow("reading CSV")
    lines = single(table.column(LINE)).cast(pa.binary())
    labels, texts = [], []
    for line in lines.to_pylist():
        rest = line or b""
        found = []
        while rest.startswith(TAG.encode()):
            word, _, rest = rest.partition(b" ")
            found.append(word.removeprefix(TAG.encode()).strip())
            rest = rest.lstrip()
        labels.append(b" ".join(found) or None)
        texts.append(rest or None)
    return pa.Table.from_arrays([_binary(labels), _binary(texts)], names=["label", "text"])


def _binary(cells: list[bytes | None]) -> Any:
    """Return an Arrow array of bytes, without importing pandas."""
    pa = arrow("reading CSV")
    offsets = np.zeros(len(cells) + 1, np.int32)
    np.cumsum([len(cell or b"") for cell in cells], out=offsets[1:])
    present = np.packbits([cell is not None for cell in cells], bitorder="little")
    buffers = [present, offsets, b"".join(cell or b"" for cell in cells)]
    return pa.Array.from_buffers(pa.binary(), len(cells), [pa.py_buffer(b) for b in buffers])


def decoded(
    path: str, table: Any, lines: NDArray[np.int64]
) -> tuple[Any, NDArray[np.int64], list[BadRow]]:
    """Return a table of strings, the lines of its rows, and the rows that are not UTF-8.

    Parameters
    ----------
    path : str
    table : pyarrow.Table
        A table of bytes.
    lines : array
        The line of each row.
    """
    pa = arrow("reading CSV")
    columns: list[Any] = []
    bad: dict[int, tuple[str, bytes]] = {}
    for name in table.column_names:
        column = single(table.column(name))
        try:
            columns.append(column.cast(pa.string()))
        except pa.ArrowInvalid:
            cells = column.to_pylist()
            for row, cell in enumerate(cells):
                if cell is not None and _bad_byte(cell) is not None:
                    bad.setdefault(row, (name, cell))
            cells = [None if row in bad else cell for row, cell in enumerate(cells)]
            columns.append(_binary(cells).cast(pa.string()))
    made = pa.Table.from_arrays(columns, names=table.column_names)
    if not bad:
        return made, lines, []
    found = [_not_text(path, int(lines[row]), *bad[row]) for row in sorted(bad)]
    keep = np.delete(np.arange(len(lines)), sorted(bad))
    return made.take(integers(keep)), lines[keep], found


def _bad_byte(cell: bytes) -> int | None:
    """Return the place of the first byte that is not UTF-8."""
    try:
        cell.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _not_text(path: str, line: int, name: str, cell: bytes) -> BadRow:
    at = _bad_byte(cell) or 0
    shown = cell[max(at - 15, 0) : at + 15].decode("utf-8", "backslashreplace")
    cause = InputError(
        f"column '{name}': \"{shown}\" is not UTF-8",
        parameter="encoding",
        hint=("name the encoding, for example ", setting("encoding", "latin-1")),
    )
    return BadRow(path, line, str(cause), cell.decode("utf-8", "replace"), cause)
