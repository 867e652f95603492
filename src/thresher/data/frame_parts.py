"""A frame as part of a source: the same features, blocks and order as in a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import is_sparse
from thresher.data.bad_lines import BadCells, BadLines, BadRow, report
from thresher.data.block import Block, Position
from thresher.data.columns import integers
from thresher.data.features import FeatureEntries, NamesWanted, key_of
from thresher.data.frames import (
    arrow_table,
    columns_of,
    has_words,
    is_frame,
    matrix_of,
    opened,
    select,
    sparse_columns,
    unique_names,
)
from thresher.data.iterators import checked_targets
from thresher.data.label_columns import refuse_missing
from thresher.data.parts import BlockRequest, Part
from thresher.data.read_options import ColumnKinds, ReadOptions
from thresher.data.source import Source
from thresher.data.tables import BATCH_ROWS, TableColumns, TableSource
from thresher.errors import ParameterError

__all__ = ["FrameBlock", "FramePart", "frame_source", "scan_frame"]

_KEPT = 1 << 23  # entries of rows in kept blocks, at most: 96 or 128 MiB


@dataclass(frozen=True)
class FrameBlock(Block):
    """Rows of a frame; a place is the number of the row, from 0."""

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        return f"row {self.native.line(row) - 1 if self.lines is None else self.lines[row] - 1}"


@dataclass(frozen=True)
class _BadFrameRow(BadRow):
    """A bad row of a frame."""

    def __str__(self) -> str:
        return f"row {self.line - 1}, {self.what}"


class FrameTable(TableSource):
    """Rows of an Arrow table in memory.

    Parameters
    ----------
    table : pyarrow.Table
    columns : TableColumns
    bits : int or None
    kinds : ColumnKinds
    y : array of shape (rows,), or CSR matrix of shape (rows, labels), optional
        Labels, if the table has none.
    weights : array of shape (rows,), optional
    sparse : pair, optional
        Names of sparse columns, and a CSR matrix of their cells.
    """

    def __init__(
        self,
        table: Any,
        columns: TableColumns,
        bits: int | None,
        kinds: ColumnKinds,
        y: Any = None,
        weights: NDArray[np.float64] | None = None,
        sparse: tuple[Sequence[str], Any] | None = None,
    ) -> None:
        super().__init__("frame", "arrow", columns, bits, kinds=kinds)
        self.table, self.y, self.weights = table, y, weights
        self._reading: Any = None  # how the blocks below were read
        self._kept: dict[int, Block] = {}
        self._seen: set[int] = set()
        self._entries = 0  # in the kept blocks
        self.trains = columns.label_needed or y is not None
        self.sparse = None
        if sparse is not None:
            keys = np.array([key_of(name.encode()) for name in sparse[0]], np.uint64)
            self.sparse = [name.encode() for name in sparse[0]], keys, sparse[1]

    def find_kinds(self) -> None:
        """Add the columns of this table to `kinds`."""
        if not self._kinds_known and not self.kinds.fixed:
            self._learn_kinds(self.table.slice(0, BATCH_ROWS))
            if self.sparse is not None:
                self.kinds.add({name.decode(): "number" for name in self.sparse[0]})

    def blocks(
        self,
        after: Position | None = None,
        dtype: str = "float32",
        names: NamesWanted = False,
        on_bad: Callable[[BadRow], None] | None = None,
        kinds: ColumnKinds | None = None,
        labelled: bool = False,
    ) -> Iterator[Block]:
        """Yield the rows, as many per block as from a file; see `TableSource.blocks`."""
        self.find_kinds()
        first = 0 if after is None else after.offset
        reading = dtype, labelled, None if kinds is None else tuple(kinds.found.items())
        if self._reading != reading:
            self._reading, self._kept, self._seen, self._entries = reading, {}, set(), 0
        for batch in range(first, -(-self.table.num_rows // BATCH_ROWS)):
            if names is False and batch in self._kept:
                yield self._kept[batch]
                continue
            table = self.table.slice(batch * BATCH_ROWS, BATCH_ROWS)
            rows = np.arange(table.num_rows) + batch * BATCH_ROWS
            bad: list[BadRow] = []
            known = self._given_kinds(kinds) or self.kinds
            if self.columns.multilabel and self.columns.label_needed:
                self._find_separator(self.table.slice(0, BATCH_ROWS), known)
            block = self._frame_block(table, rows, batch, dtype, names, known, bad, labelled)
            report(bad, on_bad)
            if names is False and not bad:
                self._keep(batch, block)
            yield block

    def _keep(self, batch: int, block: Block) -> None:
        """Keep a block that was read before: it will be read in each pass."""
        if batch not in self._seen:
            self._seen.add(batch)
        elif self._entries + block.native.nonzeros <= _KEPT:
            self._kept[batch] = block
            self._entries += block.native.nonzeros

    def _frame_block(
        self,
        table: Any,
        rows: NDArray[np.int64],
        batch: int,
        dtype: str,
        names: NamesWanted,
        kinds: ColumnKinds,
        bad_rows: list[BadRow],
        labelled: bool,
    ) -> Block:
        columns, labels = self.use(self.table.column_names)
        end, whole = Position(0, batch + 1, int(rows[-1]) + 1), len(rows)
        while True:
            try:
                self._rows = rows
                fields = self._fields(table, columns, labels, dtype, names, kinds)
                if labelled and self.y is None:
                    refuse_missing(labels, fields)
                break
            except BadCells as bad:
                for i, row in enumerate(bad.rows.tolist()):
                    bad_rows.append(_BadFrameRow("frame", int(rows[row]) + 1, str(bad.error(i))))
                keep = np.delete(np.arange(len(rows)), bad.rows)
                table, rows = table.take(integers(keep)), rows[keep]
        words, text_sets = fields.pop("text_labels", None), fields.pop("text_sets", None)
        if self.weights is not None:
            fields["weights"] = np.ascontiguousarray(self.weights[rows])
        if is_sparse(self.y):
            sets = self.y[rows]
            fields |= {"labels": None, "label_starts": sets.indptr.astype(np.int64)}
            fields["label_values"] = sets.indices.astype(np.float64)
        elif self.y is not None:
            words = self.y[rows]
        first = int(rows[0]) + 1 if len(rows) else 1
        native = _core.make_block(**fields, first_line=first)
        lines = None if len(rows) == whole else rows + 1
        return FrameBlock(native, "frame", end, words, lines, sets=text_sets)

    def _first_features(self, table: Any) -> list[FeatureEntries]:
        if self.sparse is None:
            return []
        names, keys, matrix = self.sparse
        part = matrix[self._rows]
        at = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)).astype(np.int64)
        places, values = part.indices, np.asarray(part.data, np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            name = names[places[bad[0]]].decode()
            here = bad[places[bad] == places[bad[0]]]
            raise BadCells(at[here], name, lambda i: f"{values[here[i]]} is not a finite number")
        return [FeatureEntries(at, keys[places], values, lambda i: [names[k] for k in places[i]])]


class FramePart(Part):
    """A frame, with labels in a column or given as an array.

    Parameters
    ----------
    frame : frame
    reading : ReadOptions
    y, weights
        As for `FrameTable`.
    """

    named = True
    name = "frame"

    def __init__(
        self,
        frame: Any,
        reading: ReadOptions,
        y: Any = None,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        frame = opened(frame)
        label = reading.label
        if y is not None:
            label = label or ""
            used = [name for name in columns_of(frame) if str(name) != label]
            frame = frame if len(used) == len(columns_of(frame)) else select(frame, used)
        columns = TableColumns(
            label=label,
            weight=reading.weight,
            text=reading.text,
            ngrams=reading.ngrams,
            ignore=reading.ignore,
            label_needed=reading.labelled and y is None,
            multilabel=reading.multilabel and y is None,
            missing=reading.missing or "error",
            dates=reading.dates,
        )
        sparse = _sparse_part(frame, reading)
        if sparse is not None:
            frame = select(frame, [c for c in columns_of(frame) if str(c) not in sparse[0]])
        table = arrow_table(frame, reading.ignore)
        if not table.column_names:
            raise ParameterError(
                "the frame has no columns" + " that are not sparse" * (sparse is not None),
                hint="fit takes a frame of sparse columns" if sparse else None,
            )
        fixed = bool(reading.kinds) and not reading.labelled
        kinds = ColumnKinds(dict(reading.kinds), fixed)
        kinds.separator = reading.label_separator
        self.table = FrameTable(table, columns, reading.bits, kinds, y, weights, sparse)
        use, labels = self.table.use(table.column_names)
        left_out = (*use.ignore, use.weight, *labels)
        known = [*table.column_names, *(sparse[0] if sparse else ())]
        self.labels_given = y is not None
        self.columns = tuple(name for name in known if name not in left_out)

    def kinds(self) -> dict[str, str]:
        """Return the kinds of columns."""
        self.table.find_kinds()
        return self.table.kinds.found

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Make blocks of rows."""

        def leave_out(row: BadRow) -> None:
            bad_lines.add(number, row.line, str(row), row.text.encode())

        kinds = ColumnKinds(wanted.kinds, fixed=True) if wanted.kinds else None
        on_bad = leave_out if reading.keeps_going else None
        for block in self.table.blocks(after, wanted.dtype, wanted.keys, on_bad, kinds):
            yield replace(block, end=replace(block.end, file=number))


def _sparse_part(frame: Any, reading: ReadOptions) -> tuple[list[str], Any] | None:
    """Return the names and the cells of sparse columns that make features."""
    names = columns_of(frame)
    left_out = (*reading.ignore, reading.weight, reading.label)
    chosen = [names[k] for k in sparse_columns(frame) if str(names[k]) not in left_out]
    if not chosen:
        return None
    return unique_names(chosen), matrix_of(select(frame, chosen))


def scan_frame(given: Any, reading: ReadOptions) -> Source:
    """Return a frame, or a tuple (frame, y) or (frame, y, weights), as a source."""
    if not isinstance(given, tuple):
        return frame_source(given, reading)
    frame, y, weights = (*given, None)[:3]
    frame = opened(frame)
    found = checked_targets(y, weights, int(frame.shape[0]))
    labels = found["labels"] if found["text_labels"] is None else found["text_labels"]
    return frame_source(frame, reading, labels, found["weights"])


def words_as_source(X: Any, y: Any, given: dict[str, Any], owner: str) -> tuple[Any, Any]:
    """Return a frame with words as a source, and None for its labels; anything else as it is.

    Parameters
    ----------
    X, y
        As for `fit`.
    given : dict
        More arguments of `fit`; `sample_weight` is taken out if X becomes a source.
    owner : str
        The class that has the method, for messages.
    """
    if not is_frame(X) or not has_words(X := opened(X)):
        return X, y
    if given.get("groups") is not None:
        raise ParameterError("groups are for frames of numbers; this one has words", owner=owner)
    weights = given.pop("sample_weight", None)
    return scan_frame((X, y, weights), ReadOptions()), None


def frame_source(
    frame: Any,
    reading: ReadOptions,
    y: Any = None,
    weights: NDArray[np.float64] | None = None,
) -> Source:
    """Return a frame as a source.

    Parameters
    ----------
    frame : frame
    reading : ReadOptions
    y : array of shape (rows,), or CSR matrix of shape (rows, labels), optional
        Labels; by default a column holds them.
    weights : array of shape (rows,), optional
    """
    if reading.format is not None:
        raise ParameterError("a frame has no format", parameter="format", value=reading.format)
    part = FramePart(frame, reading, y, weights)
    used = replace(reading, missing=reading.missing or "error")
    if y is not None:
        used = replace(used, label=reading.label or "", multilabel=is_sparse(y))
    return Source([part], used)
