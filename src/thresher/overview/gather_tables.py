"""Reads tables once, and gathers the facts about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from thresher.data.columns import is_number, plain, single
from thresher.data.row_folds import mixed
from thresher.data.table_files import row_groups
from thresher.errors import DataError
from thresher.overview.columns import MISSING, ColumnCounter, filled
from thresher.overview.distinct import DistinctCount
from thresher.overview.facts import DataFacts, RowCount, names_of
from thresher.overview.kinds import ColumnFacts, column_facts, with_ratios
from thresher.overview.label_choice import LabelChoice, choose_label
from thresher.overview.labels import LabelCounter, add_given, are_sets
from thresher.overview.limits import Limits
from thresher.overview.sniff import Sniffed
from thresher.overview.table_batches import BATCH_ROWS, BadLineCount, read_batches

__all__ = ["gather_frame", "gather_tables"]

_MOST_HASHES = 1 << 20  # rows whose copies are counted exactly
_ODD = np.uint64(0x9E3779B97F4A7C15)


class _TableRows:
    """What the rows of tables hold."""

    def __init__(self, label: str | None, header: bool, labelled: bool = True) -> None:
        self.given, self.header, self.labelled = label, header, labelled
        self.counters: dict[str, ColumnCounter] = {}
        self.labels: LabelCounter | None = None
        self.choice = LabelChoice()
        self.rows = 0
        self.hashes = DistinctCount(_MOST_HASHES)

    def add(self, batch: Any) -> None:
        """Add the next rows."""
        names = batch.schema.names
        whole = np.zeros(batch.num_rows, np.uint64)
        for at, name in enumerate(names):
            if name not in self.counters:
                self.counters[name] = ColumnCounter(name, at)
            hashes = self.counters[name].add(single(batch.column(at)))
            with np.errstate(over="ignore"):
                whole = (whole + hashes) * _ODD
        self.hashes.add(mixed(whole))
        self.rows += batch.num_rows
        if self.labels is None and self.labelled:
            self._choose()
        if self.labels is not None:
            _add_labels(self.labels, self.choice, self.counters, batch)

    def _choose(self) -> None:
        found = [column_facts(one) for one in self.counters.values()]
        samples = {name: one.sample for name, one in self.counters.items()}
        self.choice = choose_label(found, samples, self.given, self.header)
        if not self.choice.columns:
            return
        first = self.counters[self.choice.columns[0]]
        several = len(self.choice.columns) > 1 or bool(self.choice.separator)
        self.labels = LabelCounter(self.choice, several or first.lists > 0)

    def columns(self) -> list[ColumnFacts]:
        """Return the facts about the columns."""
        found = [column_facts(one) for one in self.counters.values()]
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
    encoded = single(column.cast("large_string").dictionary_encode())
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
    header = all(one.layout is None or one.layout.header for one in files)
    table = _TableRows(label, header)
    bad = BadLineCount()
    problems: list[str] = []
    read = before = 0
    ended = True
    for one in files:
        if not one.is_table:
            problems.append(f"{one.path}: {one.about or 'not a table'}; it is left out")
            continue
        here = [0]
        try:
            for number, batch in enumerate(read_batches(one, bad, _keeper(here))):
                if number == 0:
                    problems += _differences(table, one, batch)
                table.add(batch)
                read = before + here[0]
                limits.on_progress(table.rows, read)
                if limits.reached(table.rows):
                    ended = False
                    break
        except DataError as error:
            problems.append(f"reading ended after row {table.rows:,}: {error}")
        if not ended:
            break
        before += one.size or here[0]
    rows = limits.total(table.rows, ended, read)
    if not ended:
        rows = _stored_rows(files, rows)
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
        bad=bad,
        problems=tuple(problems),
    )
    if table.labels is not None:
        return replace(facts, label=table.labels.facts())
    return facts


def _keeper(here: list[int]) -> Callable[[int], None]:
    def keep(read: int) -> None:
        here[0] = read

    return keep


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
    facts = DataFacts(
        (),
        name,
        RowCount(found.rows, found.rows, True),
        tuple(found.columns()),
        duplicates=max(found.rows - found.hashes.count, 0),
        duplicates_exact=found.hashes.exact,
    )
    counted = apart or found.labels
    return facts if counted is None else replace(facts, label=counted.facts())
