"""Reads Parquet and Arrow files as tables with a fixed number of rows; converts cells by kind.

Only the number of rows decides where a table ends, so a resumed run gets the same tables.
"""

from __future__ import annotations

import io
import itertools
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from thresher.data.arrow_views import without_views
from thresher.data.bad_lines import BadCells
from thresher.data.columns import arrow, integers, is_number, is_string, plain, single, strings
from thresher.data.formats import FORMATS
from thresher.data.open_streams import open_bytes, open_seekable
from thresher.data.spans import Span
from thresher.errors import DataError, ParameterError, setting

__all__ = ["TABLE_FORMATS", "cut", "kind_of_strings", "kinds_of", "read_tables", "typed"]

TABLE_FORMATS = tuple(name for name, format in FORMATS.items() if format.kind == "table")

MISSING = ("NA", "N/A", "null", "NULL", "None")  # and empty cells
NO_NUMBER = ("?",)  # missing cells of columns of numbers, too; it may be a category in others
TRUTH = {"true": 1, "True": 1, "TRUE": 1, "false": 0, "False": 0, "FALSE": 0}


def read_tables(path: str, kind: str, rows: int, span: Span) -> Iterator[Any]:
    """Yield the rows of a span of a Parquet or Arrow file, as tables of `rows` rows."""
    pa = arrow(f"reading {kind} files")
    batches = _parquet if kind == "parquet" else _arrow
    try:
        yield from map(without_views, cut(batches(pa, path, span), rows))
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise DataError(f"{path}: {error}") from error


def cut(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Turn record batches of any size into tables of `rows` rows."""
    pa = arrow("reading tables")
    pending: list[Any] = []
    count = 0
    schema = None
    for batch in batches:
        schema = batch.schema
        if batch.num_rows:
            pending.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.Table.from_batches(pending)
            yield table.slice(0, rows)
            pending = table.slice(rows).to_batches()
            count -= rows
    if count:
        yield pa.Table.from_batches(pending, schema)


def _parquet(pa: Any, path: str, span: Span) -> Iterator[Any]:
    # A buffered stream reads single pages, not whole row groups.
    with _opened(path, pre_buffer=False, buffer_size=1 << 16) as file:
        starts = _starts(file)
        if span.end < sys.maxsize:
            span.within(path, starts[-1], "rows")
        first = bisect_right(starts, span.begin) - 1
        last = bisect_left(starts, span.end)
        groups = range(first, min(last, len(starts) - 1)) if span.size else range(0)
        yield from _rows_in(
            file.iter_batches(4096, row_groups=groups, use_threads=False),
            Span(span.begin - starts[first], span.end - starts[first]),
        )


def _opened(path: str, **options: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(open_seekable(path), **options)


def _starts(file: Any) -> list[int]:
    about = file.metadata
    sizes = (about.row_group(group).num_rows for group in range(about.num_row_groups))
    return [0, *itertools.accumulate(sizes)]


def row_groups(path: str) -> list[int]:
    """Return the first row of each row group of a Parquet file, and the number of rows."""
    pa = arrow("reading parquet files")
    try:
        with _opened(path) as file:
            return _starts(file)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise DataError(f"{path}: not a Parquet file, or damaged: {error}") from None


def schema_of(path: str) -> Any:
    """Return the schema of a Parquet file."""
    arrow("reading parquet files")
    import pyarrow.parquet as parquet

    try:
        return parquet.read_schema(open_seekable(path))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not a Parquet file, or damaged: {error}") from None


def _arrow(pa: Any, path: str, span: Span) -> Iterator[Any]:
    with open_bytes(path) as stream:
        if stream.peek(6).startswith(b"ARROW1"):
            source = open_seekable(path)
            if isinstance(source, str):
                source = pa.OSFile(source)  # a mapped file that becomes shorter kills the process
            with source, pa.ipc.open_file(source) as file:
                yield from _rows_in(map(file.get_batch, range(file.num_record_batches)), span)
        else:
            # A plain stream may return fewer bytes than a message has.
            with pa.ipc.open_stream(io.BufferedReader(stream)) as messages:
                yield from _rows_in(messages, span)


def _rows_in(batches: Iterable[Any], span: Span) -> Iterator[Any]:
    at = 0
    for batch in batches:
        end = at + batch.num_rows
        if span.begin < end:
            begin = max(span.begin - at, 0)
            yield batch.slice(begin, min(span.end, end) - at - begin)
        if end >= span.end:
            return
        at = end


def kinds_of(table: Any, format: str) -> dict[str, str]:
    """Return the kinds of columns: the first rows decide for CSV, the column types for others.

    Returns
    -------
    dict
        "number", "truth" or "string" by column, without columns of lists, maps, or only nulls.
    """
    columns = zip(table.column_names, table.columns, strict=True)
    if format == "csv":
        return {name: kind_of_strings(single(column)) for name, column in columns}
    kinds = {name: _kind_of_type(column.type) for name, column in columns}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _kind_of_type(kind: Any) -> str | None:
    types = arrow("reading tables").types
    if types.is_boolean(kind):
        return "truth"
    if is_number(kind):
        return "number"
    binary = types.is_binary(kind) or types.is_large_binary(kind)
    return "string" if is_string(kind) or binary or types.is_dictionary(kind) else None


def kind_of_strings(column: Any) -> str:
    """Return the kind of a column of a CSV file: "number", "truth" or "string"."""
    pa = arrow("reading CSV")
    column = _without_missing(column).drop_null()
    if len(column) and pa.compute.all(pa.compute.is_in(column, strings(list(TRUTH)))).as_py():
        return "truth"
    try:
        _numbers(column)
    except pa.ArrowInvalid:
        return "string"
    return "number"


def _without_missing(column: Any, more: tuple[str, ...] = ()) -> Any:
    pa = arrow("reading CSV")
    missing = pa.compute.is_in(column, strings((*MISSING, *more)))
    return pa.compute.if_else(missing, pa.nulls(1, column.type)[0], column)


def _numbers(column: Any) -> Any:
    pa = arrow("reading CSV")
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:  # the slow way, for spaces and words such as NA; few columns have them
        trimmed = pa.compute.utf8_trim_whitespace(column)
        return _without_missing(trimmed, NO_NUMBER).cast(pa.float64())


def typed(name: str, column: Any, kind: str | None) -> Any:
    """Return a column converted to its kind; None: unchanged.

    Strings become numbers, and numbers become strings. Other types stay unchanged.
    """
    pa = arrow("reading tables")
    if is_number(column.type):
        return column.cast(pa.string()) if kind == "string" else column
    if kind in ("number", "truth"):
        inner = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not is_string(inner):
            return column
        column = column.cast(pa.string())
    if kind == "number":
        try:
            return _numbers(column)
        except pa.ArrowInvalid:
            cells = column.to_pylist()
            bad = np.array([row for row, cell in enumerate(cells) if not _is_number(cell)], np.intp)
            raise _not_a_number(name, column, bad, "a number") from None
    if kind == "truth":
        column = _without_missing(column)
        place = pa.compute.index_in(column, strings(list(TRUTH)))
        unknown = pa.compute.and_(place.is_null(), column.is_valid())
        if pa.compute.any(unknown).as_py():
            bad = np.flatnonzero(plain(unknown, np.int64))
            raise _not_a_number(name, column, bad, "true or false")
        return integers(np.array(list(TRUTH.values()))).take(place)
    return column


def _is_number(cell: str | None) -> bool:
    pa = arrow("reading CSV")
    if cell is None:
        return True
    try:
        _numbers(strings([cell]))
    except pa.ArrowInvalid:
        return False
    return True


def _not_a_number(name: str, column: Any, bad: Any, expected: str) -> BadCells:
    def what(i: int) -> str:
        return (
            f"expected {expected}, as in the first rows or in the training data; found "
            f"\"{str(column[int(bad[i])])[:40]}\" (if '{name}' holds strings, say so with kinds in "
            f"scan)"
        )

    return BadCells(bad, name, what)


def check_unique(path: str, names: Sequence[str], csv: bool = False) -> None:
    """Raise an error if two columns have the same name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        hint = (
            *("if the first line is data, use ", setting("header", False)),
            *("; else name the columns with ", setting("columns")),
        )
        raise ParameterError(
            f"two columns are named '{twice}'", place=path, hint=hint if csv else None
        )
