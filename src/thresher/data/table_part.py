"""The part of a source that is a table: a CSV, Parquet or Arrow file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from thresher.data.bad_lines import BadLines, BadRow
from thresher.data.block import Block, Position
from thresher.data.csv_layout import CsvOptions
from thresher.data.parts import BlockRequest, FilePart
from thresher.data.read_options import ColumnKinds, ReadOptions
from thresher.data.spans import Span
from thresher.data.table_columns import USUAL_LABELS, TableColumns
from thresher.data.tables import TableSource

__all__ = ["TablePart"]


class TablePart(FilePart):
    """A CSV, Parquet or Arrow file; or a span of the rows of a Parquet file."""

    def __init__(
        self,
        name: str,
        format: str,
        reading: ReadOptions,
        kinds: ColumnKinds,
        span: Span | None = None,
    ) -> None:
        super().__init__(name, span, lines=format == "csv")
        columns = TableColumns(
            label=reading.label,
            weight=reading.weight,
            text=reading.text,
            ngrams=reading.ngrams,
            ignore=reading.ignore,
            label_needed=reading.labelled,
            multilabel=reading.multilabel,
            missing=reading.missing,
            dates=reading.dates,
        )
        kinds.separator = kinds.separator or reading.label_separator
        optional = (*(reading.label or "label").split(","), reading.weight or "")
        csv = CsvOptions(
            reading.delimiter, reading.header, reading.columns, reading.encoding, reading.quotes,
            () if reading.labelled else optional,
        )  # fmt: skip
        self.table = TableSource(
            name, format, columns, reading.bits, kinds=kinds, span=span, csv=csv
        )
        self.table.waiting = self._wait
        self.named = not self.table.numbered

    def _wait(self) -> None:
        if self.waiting is not None:
            self.waiting()

    def kinds(self) -> dict[str, str]:
        """Return the kinds of columns; all parts of a source share them."""
        self.table.find_kinds()
        return self.table.kinds.found

    def settled(self, reading: ReadOptions) -> ReadOptions:
        """Return the options with what the table decided: names, no header, a separator."""
        self.table.find_kinds()
        names, layout = self.table.names, self.table.layout
        if names is None:
            return reading
        columns, labels = self.table.use(names)
        label = reading.label
        if label is not None or (labels and not set(labels) <= set(USUAL_LABELS)):
            label = ",".join(labels) or label
        known = replace(
            reading,
            label=label,
            weight=columns.weight,
            text=tuple(columns.text),
            ignore=tuple(columns.ignore),
            label_separator=self.table.kinds.separator,
        )
        if layout is None or layout.header or layout.empty:
            return known
        return replace(
            known, header=False, columns=reading.columns or layout.names, delimiter=layout.delimiter
        )

    @property
    def notes(self) -> list[str]:
        """Return what the user should know about the file."""
        layout = self.table.layout
        return [layout.note] if layout is not None and layout.note else []

    def label_words(self) -> tuple[str, ...]:
        """Return some labels, if each row has one label and it is a word."""
        self.table.find_kinds()
        layout = self.table.layout
        if self.table.words or self.rereadable or layout is None or self.table.columns.multilabel:
            return self.table.words
        labels = self.table.use(list(layout.names))[1]
        return layout.words(labels[0]) if len(labels) == 1 else ()

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Read batches of the table."""

        def leave_out(row: BadRow) -> None:
            bad_lines.add(number, row.line, str(row), row.text.encode())

        begin = None if after is None else replace(after, file=0)
        kinds = ColumnKinds(wanted.kinds, fixed=True) if wanted.kinds else None
        on_bad = leave_out if reading.keeps_going else None
        table = self.table
        table.limit = self.watch.size
        labelled = wanted.labelled and not reading.multilabel
        for block in table.blocks(begin, wanted.dtype, wanted.keys, on_bad, kinds, labelled):
            yield replace(block, end=replace(block.end, file=number), raw=self.table.read)
