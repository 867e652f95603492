"""Reads tables once, and gathers the facts about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.data.columns import is_number, plain, single
from thresher.data.csv_layout import CsvLayout
from thresher.data.paths import can_reopen
from thresher.data.row_folds import mixed
from thresher.data.table_files import row_groups
from thresher.errors import DataError
from thresher.overview.columns import MISSING, ColumnCounter, filled, shown
from thresher.overview.distinct import DistinctCount
from thresher.overview.facts import DataFacts, RowCount, names_of
from thresher.overview.kinds import ColumnFacts, column_facts, with_ratios
from thresher.overview.label_choice import LabelChoice, choose_label
from thresher.overview.labels import LabelCounter, LabelFacts, add_given, are_sets
from thresher.overview.limits import Limits
from thresher.overview.sniff import Sniffed
from thresher.overview.table_batches import (
    BATCH_ROWS,
    BadLineCount,
    PlainQuotesError,
    read_batches,
)

__all__ = ["gather_frame", "gather_tables"]

_MOST_HASHES = 1 << 20  # rows whose copies are counted exactly
_ODD = np.uint64(0x9E3779B97F4A7C15)


class _TableRows:
    """What the rows of tables hold."""

    def __init__(
        self,
        label: str | None,
        header: bool,
        labelled: bool = True,
        layout: CsvLayout | None = None,
    ) -> None:
        self.given, self.header, self.labelled, self.layout = label, header, labelled, layout
        self.counters: dict[str, ColumnCounter] = {}
        self.labels: LabelCounter | None = None
        self.choice = LabelChoice()
        self._late = False  # whether rows came before the label was chosen
        self.rows = 0
        self.hashes = DistinctCount(_MOST_HASHES)

    def add(self, batch: Any) -> None:
        """Add the next rows."""
        names = batch.schema.names
        whole = np.zeros(batch.num_rows, np.uint64)
        for at, name in enumerate(names):
            if name not in self.counters:
                self.counters[name] = ColumnCounter(name, at, len(names))
            hashes = self.counters[name].add(single(batch.column(at)))
            with np.errstate(over="ignore"):
                whole = (whole + hashes) * _ODD
        self.hashes.add(mixed(whole))
        self.rows += batch.num_rows
        if self.labels is None and self.labelled:
            self._begin(self._chosen())
            self._late = self.rows > batch.num_rows
        self.add_labels(batch)

    def add_labels(self, batch: Any) -> None:
        """Add only the labels of rows."""
        if self.labels is not None:
            _add_labels(self.labels, self.choice, self.counters, batch)

    def _chosen(self) -> LabelChoice:
        samples = {name: one.sample for name, one in self.counters.items()}
        found = choose_label(self._facts(), samples, self.given, self.header)
        if self.layout is not None and self.layout.tagged:
            several = any(" " in cell for cell in samples["label"])
            found = replace(found, separator=" " if several else "")
        return found

    def _facts(self) -> list[ColumnFacts]:
        text = None if self.layout is None else self.layout.text
        found = [column_facts(one) for one in self.counters.values()]
        return [replace(one, kind="text") if one.name == text else one for one in found]

    def _begin(self, choice: LabelChoice) -> None:
        self.choice = choice
        if choice.columns:
            lists = self.counters[choice.columns[0]].lists > 0
            several = len(choice.columns) > 1 or bool(choice.separator)
            self.labels = LabelCounter(choice, several or lists)

    def choose_again(self, can_reread: bool) -> bool:
        """Choose the label by all rows.

        If it is another one than that of the first rows, or was not known then, its labels must be
        read from the beginning: return True.
        """
        if not self.labelled or not self.counters:
            return False
        new, old = self._chosen(), self.choice
        if (new.columns, new.separator) != (old.columns, old.separator) or self._late:
            if can_reread and new.columns:
                self._begin(new)
                return True
            return False
        if self.labels is not None:
            self.choice = self.labels.choice = new
        return False

    def label_facts(self) -> LabelFacts:
        """Return the facts about the labels; without labels, which columns could be labels."""
        if self.labels is None:
            return LabelFacts(reason=self.choice.reason, candidates=self.choice.candidates)
        return self.labels.facts()

    def columns(self) -> list[ColumnFacts]:
        """Return the facts about the columns."""
        found = self._facts()
        for name in self.choice.columns:
            found = with_ratios(found, name)
        return found if self.choice.columns else with_ratios(found, None)


def _add_labels(
    labels: LabelCounter, choice: LabelChoice, counters: dict[str, ColumnCounter], batch: Any
) -> None:
    """Add the labels of a batch."""
    names = batch.schema.names
    if any(name not in names for name in choice.columns):
        labels.missing += batch.num_rows
        return
    columns = [single(batch.column(names.index(name))) for name in choice.columns]
    if len(columns) > 1:
        rows: list[set[Any]] = [set() for _ in range(batch.num_rows)]
        for name, column in zip(choice.columns, columns, strict=True):
            for row, cell in enumerate(_cells(column)):
                if cell not in (None, 0.0, "False", "false", "FALSE"):
                    rows[row].add(name)
        labels.add_sets(rows)
    elif labels.multilabel and choice.separator:
        labels.add_sets(
            [
                {part.strip() for part in str(cell or "").split(choice.separator) if part.strip()}
                for cell in columns[0].to_pylist()
            ]
        )
    elif labels.multilabel:
        labels.add_sets([set(cell or ()) for cell in columns[0].to_pylist()])
    else:
        counter = counters[choice.columns[0]]
        # In a column of words, 7 is a word, too.
        _add_column(labels, columns[0], numbers=counter.numbers >= counter.words)


def _add_column(labels: LabelCounter, column: Any, numbers: bool) -> None:
    """Add the labels of a column; its different values are looked at once."""
    if is_number(column.type):
        labels.add(_cells(column))
        return
    encoded = single(shown(column).cast("large_string").dictionary_encode())
    places = plain(filled(encoded.indices), np.int64).copy()
    places[plain(encoded.indices.is_null(), np.int64).astype(bool)] = len(encoded.dictionary)
    words = encoded.dictionary.to_pylist()
    labels.add_encoded([*(_cell(word) if numbers else _word(word) for word in words), None], places)


def _cells(column: Any) -> Any:
    """Return cells as numbers where they are numbers, else as strings, missing ones as None."""
    if is_number(column.type):
        values = plain(filled(column), np.float64).copy()
        values[plain(column.is_null(), np.int64).astype(bool)] = np.nan
        return values
    return [None if cell is None else _cell(str(cell)) for cell in column.to_pylist()]


def _word(value: str) -> str | None:
    word = value.strip()
    return None if word in MISSING else word


def _cell(value: str) -> Any:
    word = _word(value)
    try:
        return None if word is None else float(word)
    except ValueError:
        return word


def gather_tables(files: Sequence[Sniffed], limits: Limits, label: str | None = None) -> DataFacts:
    """Return the facts about files of tables.

    Parameters
    ----------
    files : sequence of Sniffed
    limits : Limits
    label : str, optional
        Name or position of the column of labels.
    """
    while True:
        try:
            return _gathered(files, limits, label)
        except PlainQuotesError as found:  # also the rows so far were read with quotes
            files = [one.with_plain_quotes() if one == found.file else one for one in files]


def _gathered(files: Sequence[Sniffed], limits: Limits, label: str | None) -> DataFacts:
    """Return the facts; raise PlainQuotesError if a file must be read without quotes."""
    layout = next((one.layout for one in files if one.layout is not None), None)
    table = _TableRows(label, all(one.is_named for one in files), layout=layout)
    reading = _Reading(files, limits)
    for batch in reading.batches(table):
        table.add(batch)
        limits.on_progress(table.rows, reading.read)
    rows = limits.total(table.rows, reading.ended, reading.read, reading.whole_rows)
    if not reading.ended:
        rows = _stored_rows(files, rows)
    if table.choose_again(all(can_reopen(one.path) for one in files)):
        for batch in _Reading(files, limits).batches(None):
            table.add_labels(batch)
    if not table.counters and files and files[0].layout is not None:
        empty = (ColumnFacts(name, at, "empty") for at, name in enumerate(files[0].layout.names))
        columns = tuple(empty)
    else:
        columns = tuple(table.columns())
    facts = DataFacts(
        tuple(files),
        names_of(files),
        rows,
        columns,
        duplicates=max(table.rows - table.hashes.count, 0),
        duplicates_exact=table.hashes.exact,
        bad=reading.bad,
        problems=tuple(reading.problems),
    )
    return replace(facts, label=table.label_facts())


class _Reading:
    """One reading of the files, up to the limit.

    Attributes
    ----------
    read : int
        Stored bytes that were read.
    whole_rows : int
        Rows in these bytes: a few more than `rows`, those that were used.
    ended : bool
        Whether all files were read to their end.
    """

    def __init__(self, files: Sequence[Sniffed], limits: Limits) -> None:
        self.files, self.limits = files, limits
        self.bad = BadLineCount()
        self.problems: list[str] = []
        self.read = self.rows = self.whole_rows = self._before = 0
        self.ended = True

    def batches(self, table: _TableRows | None) -> Iterator[Any]:
        """Yield the rows; note how columns differ from those of the table so far."""
        for one in self.files:
            if not one.is_table:
                self.problems.append(f"{one.path}: {one.about or 'not a table'}; it is left out")
                continue
            try:
                for number, batch in enumerate(read_batches(one, self.bad, self._keep)):
                    if number == 0 and table is not None:
                        self.problems += _differences(table, one, batch)
                    self.whole_rows = self.rows + batch.num_rows
                    if self.limits.rows is not None:
                        batch = batch.slice(0, self.limits.rows - self.rows)
                    self.rows += batch.num_rows
                    yield batch
                    if self.limits.reached(self.rows):
                        self.ended = False
                        return
            except DataError as error:
                self.problems.append(f"reading ended after row {self.rows:,}: {error}")
            self._before += one.size or 0

    def _keep(self, read: int) -> None:
        self.read = self._before + read


def _differences(table: _TableRows, file: Sniffed, batch: Any) -> list[str]:
    """Return how the columns of a file differ from those before."""
    if not table.counters:
        return []
    names = set(batch.schema.names)
    new, lost = names - set(table.counters), set(table.counters) - names
    found = []
    if new:
        found.append(f"{file.path}: new columns {', '.join(sorted(new)[:5])}")
    if lost:
        found.append(f"{file.path}: lacks columns {', '.join(sorted(lost)[:5])}")
    return found


def _stored_rows(files: Sequence[Sniffed], rows: RowCount) -> RowCount:
    """Return the exact number of rows, if the files store it."""
    if all(one.format == "parquet" for one in files):
        return RowCount(rows.read, sum(row_groups(one.path)[-1] for one in files), True)
    return rows


def gather_frame(
    table: Any, name: str, label: str | None, y: Sequence[Any] | None, limits: Limits
) -> DataFacts:
    """Return the facts about an Arrow table in memory; `y` holds its labels, if they are apart."""
    found = _TableRows(label, header=True, labelled=y is None)
    at = 0
    apart = None if y is None else LabelCounter(LabelChoice(reason="given as y"), are_sets(y))
    for batch in table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
        found.add(batch)
        if apart is not None:
            add_given(apart, y, at, at + batch.num_rows)
        at += batch.num_rows
        limits.on_progress(found.rows, 0)
    if apart is None and found.choose_again(True):
        for batch in table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
            found.add_labels(batch)
    facts = DataFacts(
        (),
        name,
        RowCount(found.rows, found.rows, True),
        tuple(found.columns()),
        duplicates=max(found.rows - found.hashes.count, 0),
        duplicates_exact=found.hashes.exact,
    )
    return replace(facts, label=found.label_facts() if apart is None else apart.facts())
