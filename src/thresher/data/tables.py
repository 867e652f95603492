"""Tables - CSV, Parquet and Arrow files - as sources of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import BadRow, Block, Position
from thresher.data.columns import (
    arrow,
    finite,
    flattened,
    integers,
    is_number,
    is_string,
    numbers_of,
    parts_of_column,
    plain,
    single,
)
from thresher.data.features import BadCells, Names, Part, rows_of_parts
from thresher.data.opening import can_reopen, stored_size
from thresher.data.table_files import (
    TABLE_FORMATS,
    check_unique,
    csv_kinds,
    read_csv,
    read_tables,
    schema_of,
    typed,
)
from thresher.errors import DataError, ParameterError

__all__ = ["Columns", "TableSource"]

BATCH_ROWS = 8192  # part of what a position means: fixed
_LABELS = ("label", "y", "target", "class")


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are.

    Parameters
    ----------
    label : str, optional
        The column of labels; by default the only one that is called label, y, target or class.
    weight : str, optional
        The column of the rows' weights.
    text : sequence of str
        Columns of text: their words are features.
    ngrams : int
        Up to so many words of text in a row are features.
    categorical : sequence of str
        Columns whose numbers only tell values apart.
    ignore : sequence of str
        Columns to leave out.
    label_needed : bool
        Whether a table without labels is an error; else their rows have none.
    """

    label: str | None = None
    weight: str | None = None
    text: Sequence[str] = ()
    ngrams: int = 1
    categorical: Sequence[str] = ()
    ignore: Sequence[str] = ()
    label_needed: bool = True

    def label_in(self, source: str, names: list[str]) -> str | None:
        """Return which column holds the labels, after all that are named were found."""
        named = [*self.text, *self.categorical, *self.ignore]
        named += [self.weight] if self.weight is not None else []
        named += [self.label] if self.label is not None and self.label_needed else []
        for name in named:
            if name not in names:
                raise DataError(f"{source}: there is no column '{name}'; {_listed(names)}")
        if self.label is not None:
            return self.label if self.label in names else None
        usual = [name for name in names if name in _LABELS and name not in self.ignore]
        if len(usual) == 1:
            return usual[0]
        if not usual and not self.label_needed:
            return None
        found = f"{' and '.join(usual)} could be" if usual else f"none is {_or(_LABELS)}"
        raise DataError(
            f"{source}: which column is the label? {found}; name it with label (--label); "
            f"{_listed(names)}"
        )


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:50]) + (", ..." if len(names) > 50 else "")
    return f"the columns are {shown}"


class TableSource:
    r"""Rows of CSV, Parquet or Arrow files.

    Parameters
    ----------
    files : sequence of str
        Those that `expand` returned.
    format : {"csv", "parquet", "arrow"}
    columns : Columns
        What the columns are.
    bits : int, optional
        Keys are cut to so many bits.
    delimiter : str, optional
        Of CSV; by default the one of tab, comma and semicolon that the first line has most of.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.csv"
    >>> _ = path.write_text("age,city,label\n31,Rome,1\n,Oslo,0\n")
    >>> source = TableSource([str(path)], "csv")
    >>> for block in source.blocks(names=True):
    ...     print(block.labels, block.native.starts, [name for _, name in block.native.names])
    [1. 0.] [0 2 3] [b'age', ...]
    """

    def __init__(
        self,
        files: Sequence[str],
        format: str,
        columns: Columns | None = None,
        bits: int | None = None,
        delimiter: str | None = None,
    ):
        if format not in TABLE_FORMATS:
            raise ParameterError(f"format must be one of {', '.join(TABLE_FORMATS)}; got {format}")
        arrow(f"reading {format} files")
        self.files = list(files)
        self.format = format
        self.columns = columns or Columns()
        self.bits = bits
        self.delimiter = delimiter
        self._kinds: dict[str, str] | None = None
        self._read = 0

    @cached_property
    def _sizes(self) -> list[int | None]:
        return [stored_size(file) for file in self.files]

    @property
    def size(self) -> int | None:
        """Bytes of all files as they are stored, or None if one is a pipe."""
        return None if None in self._sizes else self._stored(len(self.files))

    def _stored(self, files: int) -> int:
        """Return the bytes of the first files, as far as they are known."""
        return sum(size or 0 for size in self._sizes[:files])

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read more than once."""
        return all(can_reopen(file) for file in self.files)

    @cached_property
    def numbered(self) -> bool:
        """Whether the files hold lists of feature numbers and values, as `convert` writes them."""
        if self.format != "parquet":
            return False
        found = [(schema_of(file).metadata or {}).get(b"thresher") for file in self.files]
        return all(kind == b"rows" for kind in found)

    @property
    def read(self) -> int:
        """How many bytes of `size` lie behind, about."""
        return self._read

    def blocks(
        self,
        after: Position | None = None,
        dtype: str = "float32",
        names: Names = False,
        on_bad: Callable[[BadRow], None] | None = None,
    ) -> Iterator[Block]:
        """Yield the rows, up to 8192 at a time.

        Parameters
        ----------
        after : Position, optional
            Where to go on: the end of a block that was read before.
        dtype : {"float32", "float64"}
            Of the values.
        names : bool or array of uint64
            Whether blocks bring the names of features; of the keys that are given, or of all.
        on_bad : callable, optional
            Is told of bad rows, which are left out; by default the first of them is an error.
        """
        after = after or Position()
        for number in range(after.file, len(self.files)):
            path = self.files[number]
            batch, line = (after.offset, after.line) if number == after.file else (0, 0)
            ragged: list[BadRow] = []
            for table in self._tables(path, batch, ragged, self._stored(number)):
                lines = _lines(self.format, batch * BATCH_ROWS, table.num_rows, ragged)
                last = int(lines[-1])
                _report([bad for bad in ragged if line < bad.line <= last], on_bad)
                batch, line = batch + 1, last
                end = Position(number, batch, line)
                yield self._block(path, table, lines, end, dtype, names, on_bad)
            _report([bad for bad in ragged if bad.line > line], on_bad)
            self._read = self._stored(number + 1)

    def _tables(self, path: str, skip: int, ragged: list[BadRow], before: int) -> Iterator[Any]:
        """Yield the tables of a file after some; `ragged` gets the lines that are in none."""
        if self.format != "csv":
            yield from read_tables(path, self.format, BATCH_ROWS, skip * BATCH_ROWS)
            return

        def note(line: int, what: str, text: str) -> None:
            ragged.append(BadRow(path, line, what, text))

        def progress(position: int) -> None:
            self._read = before + position

        # The first rows of the first file tell which columns are numbers, wherever reading begins.
        if self._kinds is None and path != self.files[0]:
            self._kinds = self._kinds_of_first()
        tables = read_csv(path, BATCH_ROWS, self.delimiter, note, progress)
        for number, table in enumerate(tables):
            if self._kinds is None:
                self._kinds = csv_kinds(table)
            if number >= skip:
                yield table

    def _kinds_of_first(self) -> dict[str, str]:
        """Return what the columns were taken for when the reading began."""
        for file in self.files:
            for table in read_csv(file, BATCH_ROWS, self.delimiter, lambda *_: None):
                return csv_kinds(table)
        return {}

    def _block(
        self,
        path: str,
        table: Any,
        lines: NDArray[np.int64],
        end: Position,
        dtype: str,
        names: Names,
        on_bad: Callable[[BadRow], None] | None,
    ) -> Block:
        check_unique(path, table.column_names)
        label = self.columns.label_in(path, table.column_names)
        whole = True
        while True:
            try:
                fields = self._fields(table, label, dtype, names)
                break
            except BadCells as bad:
                for i, row in enumerate(bad.rows.tolist()):
                    what = f"column '{bad.column}': {bad.what(i)}"
                    text = str(table.slice(row, 1).to_pylist()[0])
                    _report([BadRow(path, int(lines[row]), what, text)], on_bad)
                keep = np.delete(np.arange(table.num_rows), bad.rows)
                table, lines = table.take(integers(keep)), lines[keep]
                whole = False
            except ParameterError as error:
                raise ParameterError(f"{path}: {error}") from None
        whole = whole and (not len(lines) or lines[-1] - lines[0] == len(lines) - 1)
        first = int(lines[0]) if len(lines) else 1
        text_labels = fields.pop("text_labels", None)
        native = _core.make_block(**fields, first_line=first)
        return Block(native, path, end, text_labels, None if whole else lines)

    def _fields(self, table: Any, label: str | None, dtype: str, names: Names) -> dict[str, Any]:
        """Return rows, labels and weights as `_core.make_block` takes them, or labels as text."""
        columns = self.columns
        fields: dict[str, Any] = {}
        parts: list[Part] = [_numbered(table)] if self.numbered else []
        for name in table.column_names:
            if name in columns.ignore or (self.numbered and name in ("keys", "values")):
                continue
            column = single(table.column(name))
            if self.format == "csv":
                column = typed(name, column, self._kind(name))
            if name == label:
                fields.update(_labels_of(name, column))
            elif name == columns.weight or (self.numbered and name == "weight"):
                fields["weights"] = _weights_of(name, column)
            else:
                parts += parts_of_column(
                    name, column, name in columns.text, columns.ngrams, name in columns.categorical
                )
        if label is None:
            fields["labels"] = np.full(table.num_rows, np.nan)
        return {**fields, **rows_of_parts(parts, table.num_rows, dtype, self.bits, names)}

    def _kind(self, name: str) -> str:
        strings = (*self.columns.text, *self.columns.categorical)
        return "string" if name in strings else (self._kinds or {}).get(name, "string")


def _numbered(table: Any) -> Part:
    """Return features that are numbers already."""
    rows, keys = flattened(single(table.column("keys")))
    _, values = flattened(single(table.column("values")))
    return Part(
        rows,
        plain(keys, np.int64).view(np.uint64),
        plain(values, np.float64),
        lambda at: [b""] * len(at),
    )


def _report(bad: list[BadRow], on_bad: Callable[[BadRow], None] | None) -> None:
    for row in bad:
        if on_bad is None:
            raise DataError(str(row))
        on_bad(row)


def _lines(kind: str, skip: int, rows: int, ragged: list[BadRow]) -> NDArray[np.int64]:
    """Return the line of each row; that of a table's row is its number, from 1."""
    places = np.arange(skip, skip + rows, dtype=np.int64)
    if kind != "csv":
        return places + 1
    # Row k stands behind the header, k rows, and the ragged lines with at most k rows before them.
    rows_before = np.array([bad.line for bad in ragged], np.int64) - 2 - np.arange(len(ragged))
    return places + 2 + np.searchsorted(rows_before, places, side="right")


def _labels_of(name: str, column: Any) -> dict[str, Any]:
    """Return labels as `_core.make_block` takes them, or as text."""
    pa = arrow("reading tables")
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if is_string(kind):
        return {"text_labels": np.array(column.to_pylist(), object)}
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and is_number(kind.value_type):
        rows, items = flattened(column)
        starts = np.zeros(len(column) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(column)), out=starts[1:])
        if items.null_count:
            bad = rows[plain(items.is_null(), np.int64) == 1]
            raise BadCells(np.unique(bad), name, lambda _: "a label in the list is null")
        values = finite(name, rows, items)
        return {"label_starts": starts, "label_values": values}
    if not is_number(kind) and not pa.types.is_null(kind):
        raise ParameterError(
            f"labels must be numbers or strings; column '{name}' is of type {kind}"
        )
    labels = np.full(len(column), np.nan)
    if not pa.types.is_null(kind):
        rows, values = numbers_of(name, column)
        labels[rows] = values
    return {"labels": labels}


def _weights_of(name: str, column: Any) -> NDArray[np.float64]:
    if column.null_count == len(column) > 0:
        raise BadCells(np.arange(len(column)), name, lambda _: "there is no weight")
    rows, values = numbers_of(name, column)
    weights = np.full(len(column), np.nan)
    weights[rows] = values
    bad = np.flatnonzero(~(weights >= 0))
    if len(bad):
        raise BadCells(bad, name, lambda i: f"a weight must be 0 or more; found {weights[bad[i]]}")
    return weights
