"""Rows from tables: CSV, Parquet and Arrow files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.bad_lines import BadCells, BadRow, RaggedLines, report, text_of_row
from thresher.data.block import Block, Position
from thresher.data.columns import (
    arrow,
    entries_of_column,
    flattened,
    integers,
    is_number,
    is_string,
    plain,
    single,
)
from thresher.data.csv_files import decoded, read_csv
from thresher.data.csv_layout import CsvLayout, CsvOptions, layout_of
from thresher.data.features import FeatureEntries, NamesWanted, rows_of_entries
from thresher.data.label_columns import (
    columns_as_labels,
    kind_of_labels,
    labels_of,
    refuse_missing,
    separator_of,
    weights_of,
)
from thresher.data.open_streams import stored_size
from thresher.data.paths import can_reopen
from thresher.data.read_options import ColumnKinds
from thresher.data.spans import Span
from thresher.data.table_columns import TableColumns
from thresher.data.table_digest import digest_of_table
from thresher.data.table_files import (
    TABLE_FORMATS,
    check_unique,
    kinds_of,
    read_tables,
    schema_of,
    typed,
)
from thresher.data.text_columns import use_of_strings, warn_of_strings
from thresher.errors import InputError, ParameterError, setting

__all__ = ["TableColumns", "TableSource"]

BATCH_ROWS = 8192  # fixed, because positions in checkpoints count batches


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
        The separator of CSV files; by default tab, comma, semicolon or bar, whichever the first
        lines have.
    kinds : ColumnKinds, optional
        Kinds of columns, shared by all tables of a source.
    span : Span, optional
        The rows of a Parquet file to read; by default all.
    csv : CsvOptions, optional
        What is known about a CSV file, in place of `delimiter`.

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
        csv: CsvOptions | None = None,
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
        self.trains = self.columns.label_needed  # whether to warn of columns
        self.bits = bits
        self.csv = csv or CsvOptions(delimiter=delimiter)
        self.kinds = kinds or ColumnKinds({})
        self.span = span
        self.read = 0  # bytes read so far, approximately
        self.limit: int | None = None  # bytes of a CSV file to read; None: all
        self.words: tuple[str, ...] = ()  # the first different labels, if they are words
        self.waiting: Callable[[], None] | None = None  # called while a pipe has no rows
        self._kinds_known = False  # whether `kinds` has the columns of this table
        self._use: tuple[tuple[str, ...], TableColumns, tuple[str, ...]] | None = None

    @cached_property
    def numbered(self) -> bool:
        """Whether the file holds lists of feature numbers and values, as `convert` writes them."""
        if self.format != "parquet":
            return False
        return (schema_of(self.file).metadata or {}).get(b"thresher") == b"rows"

    @cached_property
    def layout(self) -> CsvLayout | None:
        """The layout of a CSV file; the first bytes decide it."""
        if self.format != "csv":
            return None
        found = layout_of(self.file, self.csv, self.kinds.layout, self.waiting)
        check_unique(self.file, found.names, csv=True)
        if self.kinds.layout is None and not found.empty:
            self.kinds.layout = found
        return found

    def find_kinds(self) -> None:
        """Add the columns of this table to `kinds`; reads its first rows if necessary."""
        if not self._kinds_known and not self.kinds.fixed and can_reopen(self.file):
            for table in self._tables(0, RaggedLines(self.file)):
                if self.format == "csv":
                    table = decoded(self.file, table, np.arange(table.num_rows))[0]
                self._learn_kinds(table)
                break

    def _learn_kinds(self, table: Any) -> None:
        """Decide from the first rows how columns are read."""
        self._kinds_known = True
        names = table.column_names
        found, kinds = kinds_of(table, self.format), self.kinds
        columns, labels = self.use(names)
        special = {*labels, columns.weight, *columns.text, *columns.categorical, *columns.ignore}
        for name in names:
            if found.get(name) != "string" or name in special or name in kinds.found:
                continue
            column = single(table.column(name))
            if self.layout is not None and name == self.layout.text:
                found[name] = "text"
            elif self.columns.is_auto(names) and is_string(column.type):
                found[name] = "text" if use_of_strings(column)[0] == "text" else "string"
            elif self.trains:
                warn_of_strings(self.file, name, column)
        if len(labels) == 1 and found.get(labels[0]) == "string":
            label = single(table.column(labels[0]))
            self.words = tuple(filter(None, label.unique().to_pylist()))
        if columns.multilabel and len(labels) == 1:
            self._find_separator(table, kinds)
            label = single(table.column(labels[0]))
            if is_string(label.type):
                found[labels[0]] = kind_of_labels(label, kinds.separator or ",")
        kinds.add(found)

    def _find_label_kinds(self, table: Any, kinds: ColumnKinds) -> None:
        """Decide how labels are read, if kinds from the training data do not say so."""
        if self.columns.multilabel:
            self._find_separator(table, kinds)
        unknown = [name for name in self.use(table.column_names)[1] if name not in kinds.found]
        if unknown and not self.columns.multilabel:
            kinds.found = {**kinds.found, **kinds_of(table.select(unknown), self.format)}

    def _find_separator(self, table: Any, kinds: ColumnKinds) -> None:
        """Set the separator of labels from the first rows, if it is not known."""
        labels = self.use(table.column_names)[1]
        if kinds.separator is None and len(labels) == 1:
            tagged = self.layout is not None and self.layout.tagged
            kinds.separator = " " if tagged else separator_of(single(table.column(labels[0])))

    def use(self, names: list[str]) -> tuple[TableColumns, tuple[str, ...]]:
        """Return the use of columns by their names, and the columns of labels."""
        if self._use is None or self._use[0] != tuple(names):
            check_unique(self.file, names)
            columns = self.columns.located(self.file, names)
            layout = self.layout
            nameless = layout is not None and layout.rows and not layout.header
            cells = layout.rows[0] if nameless and layout is not None else ()
            self._use = tuple(names), columns, columns.labels_in(self.file, names, cells)
        return self._use[1:]

    @property
    def names(self) -> list[str] | None:
        """Names of the columns; None if they are not known before reading."""
        if self.layout is not None:
            return list(self.layout.names)
        if self.format == "parquet":
            return list(schema_of(self.file).names)
        return None if self._use is None else list(self._use[0])

    def blocks(
        self,
        after: Position | None = None,
        dtype: str = "float32",
        names: NamesWanted = False,
        on_bad: Callable[[BadRow], None] | None = None,
        kinds: ColumnKinds | None = None,
        labelled: bool = False,
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
        labelled : bool
            Whether a row without a label is a bad row.
        """
        after = after or Position()
        if after.offset:  # the first rows decide, not those after the position
            self.find_kinds()
        kinds = self._given_kinds(kinds) or self.kinds
        layout = self.layout
        ragged = RaggedLines(self.file, layout is None or layout.header)
        self.read, csv = 0, self.format == "csv"
        first = 0 if csv else after.offset  # a CSV file can only be read from its beginning
        before = 0 if self.span is None else self.span.begin
        for batch, table in enumerate(self._tables(first, ragged), first):
            places = np.arange(table.num_rows) + (before + batch * BATCH_ROWS)
            lines = ragged.lines(places) if csv else places + 1
            last, bad = int(lines[-1]), list[BadRow]()
            if csv and (batch == first or batch >= after.offset):
                table, lines, bad = decoded(self.file, table, lines)
            if batch == first and not kinds.fixed and not self._kinds_known:
                self._learn_kinds(table)
            elif batch == first and self.columns.label_needed:
                self._find_label_kinds(table, kinds)
            bad += ragged.take(last)
            if batch < after.offset:
                continue
            end = Position(0, batch + 1, last)
            block = self._block(table, lines, end, dtype, names, kinds, bad, labelled)
            report(sorted(bad, key=lambda row: row.line), on_bad)
            yield block
        report(ragged.take(None), on_bad)
        self.read = stored_size(self.file) or self.read

    def _given_kinds(self, kinds: ColumnKinds | None) -> ColumnKinds | None:
        """Return kinds from the training data; raise an error if they cannot be of this file."""
        layout = self.layout
        if kinds is None:
            return None
        kinds.separator = kinds.separator or self.kinds.separator
        if layout is None or not kinds.found or layout.empty:
            return kinds
        if layout.header or any(name in kinds.found for name in layout.names):
            return kinds
        raise InputError(
            "its first line looks like data, but the columns of the training data had names",
            place=f"{self.file}:1",
            parameter="columns",
            hint=("name them with ", setting("columns", ",".join(kinds.found)), ", or use ",
                  setting("header", True)),
        )  # fmt: skip

    def _tables(self, first: int, ragged: RaggedLines) -> Iterator[Any]:
        """Yield the tables from number `first` on; add ragged lines of CSV to `ragged`."""
        if self.format != "csv":
            span = self.span or Span(0, sys.maxsize)
            skip = min(span.begin + first * BATCH_ROWS, span.end)
            return read_tables(self.file, self.format, BATCH_ROWS, Span(skip, span.end))

        def progress(position: int) -> None:
            self.read = position

        assert self.layout is not None
        return read_csv(
            self.file, BATCH_ROWS, self.layout, ragged.add, progress, self.waiting, self.limit
        )

    def _block(
        self,
        table: Any,
        lines: NDArray[np.int64],
        end: Position,
        dtype: str,
        names: NamesWanted,
        kinds: ColumnKinds,
        bad_rows: list[BadRow],
        labelled: bool,
    ) -> Block:
        """Return the rows of a table; leave out bad rows and add them to `bad_rows`."""
        columns, labels = self.use(table.column_names)
        cells = digest_of_table(table, columns.ignore)
        whole = not bad_rows
        while True:
            try:
                fields = self._fields(table, columns, labels, dtype, names, kinds)
                if labelled:
                    refuse_missing(labels, fields)
                break
            except BadCells as bad:
                for i, row in enumerate(bad.rows.tolist()):
                    text = text_of_row(table.slice(row, 1).to_pylist()[0], self.layout)
                    cause = bad.error(i)
                    bad_rows.append(BadRow(self.file, int(lines[row]), str(cause), text, cause))
                keep = np.delete(np.arange(table.num_rows), bad.rows)
                table, lines = table.take(integers(keep)), lines[keep]
                whole = False
            except ParameterError as error:
                raise error.at(self.file) from None
        whole = whole and (not len(lines) or lines[-1] - lines[0] == len(lines) - 1)
        words, sets = fields.pop("text_labels", None), fields.pop("text_sets", None)
        native = _core.make_block(**fields, first_line=int(lines[0]) if len(lines) else 1)
        kept = None if whole else lines
        return Block(native, self.file, end, words, kept, sets=sets, cells=cells)

    def _fields(
        self,
        table: Any,
        columns: TableColumns,
        labels: tuple[str, ...],
        dtype: str,
        names: NamesWanted,
        kinds: ColumnKinds,
    ) -> dict[str, Any]:
        """Return rows, labels and weights: arguments of `_core.make_block`, and of `Block`."""
        fields: dict[str, Any] = {}
        features, marks = self._first_features(table), dict[str, Any]()
        for name in table.column_names:
            weight = name == columns.weight or (self.numbered and name == "weight")
            if name in columns.ignore or (self.numbered and name in ("keys", "values")):
                continue
            if (name in labels or weight) and not columns.label_needed:
                continue
            column = single(table.column(name))
            if labels == (name,) and columns.multilabel and not is_number(column.type):
                separator = kinds.separator or ","
                fields.update(labels_of(name, column, separator, kinds.found.get(name)))
                continue
            column = typed(name, column, self._kind(name, columns, kinds))
            if labels == (name,):
                fields.update(labels_of(name, column, None, None))
            elif name in labels:
                marks[name] = column
            elif weight:
                fields["weights"] = weights_of(name, column)
            else:
                text = name in columns.text or kinds.found.get(name) == "text"
                categorical = name in columns.categorical
                features += entries_of_column(
                    name, column, text, columns.ngrams, categorical, columns.missing, columns.dates
                )
        if marks:
            fields.update(columns_as_labels(marks))
        if not labels or not columns.label_needed:
            fields["labels"] = np.full(table.num_rows, np.nan)
        return {**fields, **rows_of_entries(features, table.num_rows, dtype, self.bits, names)}

    def _first_features(self, table: Any) -> list[FeatureEntries]:
        """Return the features that are not in columns of their own."""
        return [_numbered(table)] if self.numbered else []

    def _kind(self, name: str, columns: TableColumns, kinds: ColumnKinds) -> str | None:
        """Return the kind of a column; None: its type decides."""
        default = "string" if self.format == "csv" else None
        kind = kinds.found.get(name, default)
        if name in columns.text or name in columns.categorical or kind == "text":
            return default
        return "number" if name == columns.weight else kind


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
