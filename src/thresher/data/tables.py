"""Rows from tables: CSV, Parquet and Arrow files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.bad_lines import BadCells, BadRow, RaggedLines, report
from thresher.data.block import Block, Position
from thresher.data.columns import (
    arrow,
    entries_of_column,
    finite,
    flattened,
    integers,
    is_number,
    is_string,
    numbers_of,
    plain,
    single,
)
from thresher.data.features import FeatureEntries, NamesWanted, rows_of_entries
from thresher.data.open_streams import stored_size
from thresher.data.paths import can_reopen
from thresher.data.read_options import ColumnKinds
from thresher.data.spans import Span
from thresher.data.table_files import (
    TABLE_FORMATS,
    check_unique,
    kinds_of,
    read_csv,
    read_tables,
    schema_of,
    typed,
)
from thresher.errors import DataError, InputError, ParameterError, setting

__all__ = ["TableColumns", "TableSource"]

BATCH_ROWS = 8192  # fixed, because positions in checkpoints count batches
_LABELS = ("label", "y", "target", "class")


@dataclass(frozen=True)
class TableColumns:
    """The use of the columns of a table.

    Parameters
    ----------
    label : str, optional
        The column of labels; by default the only column named label, y, target or class.
    weight : str, optional
        The column of row weights.
    text : sequence of str
        Columns of text: their words are features.
    ngrams : int
        Sequences of up to `ngrams` words of text are features.
    categorical : sequence of str
        Columns whose numbers are categories.
    ignore : sequence of str
        Columns to leave out.
    label_needed : bool
        Whether a table without labels is an error. If False, columns of labels and weights, and
        columns to ignore, may be missing, and are not read.
    missing, dates : str, optional
        As for `entries_of_column`.
    """

    label: str | None = None
    weight: str | None = None
    text: Sequence[str] = ()
    ngrams: int = 1
    categorical: Sequence[str] = ()
    ignore: Sequence[str] = ()
    label_needed: bool = True
    missing: str | None = None
    dates: str | None = None

    def label_in(self, source: str, names: list[str]) -> str | None:
        """Return the column of labels; raise DataError if a column that is needed is missing."""
        needed = [*self.text, *self.categorical]
        if self.label_needed:
            needed += [*self.ignore, *filter(None, (self.weight, self.label))]
        for name in needed:
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
        raise InputError(
            f"which column is the label? {found}",
            place=source,
            parameter="label",
            allowed=f"one of {', '.join(names)}",
            hint=("name it with ", setting("label"), f"; {_listed(names)}"),
        )


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:50]) + (", ..." if len(names) > 50 else "")
    return f"the columns are {shown}"


class TableSource:
    r"""Rows of a CSV, Parquet or Arrow file.

    Parameters
    ----------
    file : str
        A path that `expand` returned.
    format : {"csv", "parquet", "arrow"}
    columns : TableColumns
        The use of the columns.
    bits : int, optional
        Only the lowest `bits` bits of keys are used.
    delimiter : str, optional
        The separator of CSV files; by default tab, comma or semicolon, whichever occurs most often
        in the first line.
    kinds : ColumnKinds, optional
        Kinds of columns, shared by all tables of a source.
    span : Span, optional
        The rows of a Parquet file to read; by default all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.csv"
    >>> _ = path.write_text("age,city,label\n31,Rome,1\n,Oslo,0\n")
    >>> source = TableSource(str(path), "csv")
    >>> for block in source.blocks(names=True):
    ...     print(block.labels, block.native.starts, [name for _, name in block.native.names])
    [1. 0.] [0 2 3] [b'age', ...]
    """

    def __init__(
        self,
        file: str,
        format: str,
        columns: TableColumns | None = None,
        bits: int | None = None,
        delimiter: str | None = None,
        kinds: ColumnKinds | None = None,
        span: Span | None = None,
    ):
        if format not in TABLE_FORMATS:
            raise ParameterError(
                parameter="format", value=format, allowed=f"one of {', '.join(TABLE_FORMATS)}"
            )
        if span is not None and format != "parquet":
            raise ParameterError(f"{file}: {format} cannot be read in spans")
        arrow(f"reading {format} files")
        self.file = file
        self.format = format
        self.columns = columns or TableColumns()
        self.bits = bits
        self.delimiter = delimiter
        self.kinds = kinds or ColumnKinds({})
        self.span = span
        self.read = 0  # bytes read so far, approximately
        self._kinds_known = False  # whether `kinds` has the columns of this table

    @cached_property
    def numbered(self) -> bool:
        """Whether the file holds lists of feature numbers and values, as `convert` writes them."""
        if self.format != "parquet":
            return False
        return (schema_of(self.file).metadata or {}).get(b"thresher") == b"rows"

    def find_kinds(self) -> None:
        """Add the columns of this table to `kinds`; reads its first rows if necessary."""
        if not self._kinds_known and not self.kinds.fixed and can_reopen(self.file):
            self._kinds_known = True
            for table in self._tables(0, RaggedLines(self.file)):
                self.kinds.add(kinds_of(table, self.format))
                break

    def blocks(
        self,
        after: Position | None = None,
        dtype: str = "float32",
        names: NamesWanted = False,
        on_bad: Callable[[BadRow], None] | None = None,
        kinds: ColumnKinds | None = None,
    ) -> Iterator[Block]:
        """Yield the rows, up to 8192 per block; see `Source.blocks`.

        Parameters
        ----------
        after, dtype
        names : bool or array of uint64
            Whether blocks contain the names of features: of all, or of these keys.
        on_bad : callable, optional
            Called with each bad row, which is left out; by default the first one is an error.
        kinds : ColumnKinds, optional
            Used instead of the table's own kinds.
        """
        after = after or Position()
        kinds = kinds or self.kinds
        ragged = RaggedLines(self.file)
        self.read, csv = 0, self.format == "csv"
        first = 0 if csv else after.offset  # a CSV file can only be read from its beginning
        before = 0 if self.span is None else self.span.begin
        for batch, table in enumerate(self._tables(first, ragged), first):
            if batch == first and not kinds.fixed:
                kinds.add(kinds_of(table, self.format))
                self._kinds_known = True
            places = np.arange(table.num_rows) + (before + batch * BATCH_ROWS)
            lines = ragged.lines(places) if csv else places + 1
            last = int(lines[-1])
            bad = ragged.take(last)
            if batch < after.offset:
                continue
            end = Position(0, batch + 1, last)
            block = self._block(table, lines, end, dtype, names, kinds, bad)
            report(sorted(bad, key=lambda row: row.line), on_bad)
            yield block
        report(ragged.take(None), on_bad)
        self.read = stored_size(self.file) or self.read

    def _tables(self, first: int, ragged: RaggedLines) -> Iterator[Any]:
        """Yield the tables from number `first` on; add ragged lines of CSV to `ragged`."""
        if self.format != "csv":
            span = self.span or Span(0, sys.maxsize)
            skip = min(span.begin + first * BATCH_ROWS, span.end)
            return read_tables(self.file, self.format, BATCH_ROWS, Span(skip, span.end))

        def progress(position: int) -> None:
            self.read = position

        return read_csv(self.file, BATCH_ROWS, self.delimiter, ragged.add, progress)

    def _block(
        self,
        table: Any,
        lines: NDArray[np.int64],
        end: Position,
        dtype: str,
        names: NamesWanted,
        kinds: ColumnKinds,
        bad_rows: list[BadRow],
    ) -> Block:
        """Return the rows of a table; leave out bad rows and add them to `bad_rows`."""
        path = self.file
        check_unique(path, table.column_names)
        label = self.columns.label_in(path, table.column_names)
        whole = True
        while True:
            try:
                fields = self._fields(table, label, dtype, names, kinds)
                break
            except BadCells as bad:
                for i, row in enumerate(bad.rows.tolist()):
                    text = str(table.slice(row, 1).to_pylist()[0])
                    bad_rows.append(BadRow(path, int(lines[row]), bad.worded(i), text))
                keep = np.delete(np.arange(table.num_rows), bad.rows)
                table, lines = table.take(integers(keep)), lines[keep]
                whole = False
            except ParameterError as error:
                raise error.at(path) from None
        whole = whole and (not len(lines) or lines[-1] - lines[0] == len(lines) - 1)
        first = int(lines[0]) if len(lines) else 1
        text_labels = fields.pop("text_labels", None)
        native = _core.make_block(**fields, first_line=first)
        return Block(native, path, end, text_labels, None if whole else lines)

    def _fields(
        self, table: Any, label: str | None, dtype: str, names: NamesWanted, kinds: ColumnKinds
    ) -> dict[str, Any]:
        """Return rows, labels and weights: arguments of `_core.make_block`, and "text_labels"."""
        columns = self.columns
        fields: dict[str, Any] = {}
        features = self._first_features(table)
        for name in table.column_names:
            weight = name == columns.weight or (self.numbered and name == "weight")
            if name in columns.ignore or (self.numbered and name in ("keys", "values")):
                continue
            if (name == label or weight) and not columns.label_needed:
                continue
            column = typed(name, single(table.column(name)), self._kind(name, kinds))
            if name == label:
                fields.update(_labels_of(name, column))
            elif weight:
                fields["weights"] = _weights_of(name, column)
            else:
                features += entries_of_column(
                    name, column, name in columns.text, columns.ngrams, name in columns.categorical,
                    columns.missing, columns.dates,
                )  # fmt: skip
        if label is None or not columns.label_needed:
            fields["labels"] = np.full(table.num_rows, np.nan)
        return {**fields, **rows_of_entries(features, table.num_rows, dtype, self.bits, names)}

    def _first_features(self, table: Any) -> list[FeatureEntries]:
        """Return the features that are not in columns of their own."""
        return [_numbered(table)] if self.numbered else []

    def _kind(self, name: str, kinds: ColumnKinds) -> str | None:
        """Return the kind of a column; None: its type decides."""
        default = "string" if self.format == "csv" else None
        if name in self.columns.text or name in self.columns.categorical:
            return default
        return "number" if name == self.columns.weight else kinds.found.get(name, default)


def _numbered(table: Any) -> FeatureEntries:
    """Return the features of a table of lists of feature numbers and values."""
    rows, keys = flattened(single(table.column("keys")))
    _, values = flattened(single(table.column("values")))
    return FeatureEntries(
        rows,
        plain(keys, np.int64).view(np.uint64),
        plain(values, np.float64),
        lambda at: [b""] * len(at),
    )


def _labels_of(name: str, column: Any) -> dict[str, Any]:
    """Return labels as an argument of `_core.make_block`, or as "text_labels"."""
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
        raise ParameterError(f"labels must be numbers or strings; column '{name}' has type {kind}")
    labels = np.full(len(column), np.nan)
    if not pa.types.is_null(kind):
        rows, values = numbers_of(name, column)
        labels[rows] = values
    return {"labels": labels}


def _weights_of(name: str, column: Any) -> NDArray[np.float64]:
    if column.null_count == len(column) > 0:
        raise BadCells(np.arange(len(column)), name, lambda _: "the weight is missing")
    rows, values = numbers_of(name, column)
    weights = np.full(len(column), np.nan)
    weights[rows] = values
    bad = np.flatnonzero(~(weights >= 0))
    if len(bad):
        raise BadCells(bad, name, lambda i: f"a weight must be 0 or more; found {weights[bad[i]]}")
    return weights
