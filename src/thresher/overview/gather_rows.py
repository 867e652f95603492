"""Reads sparse rows once, and gathers the facts about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.row_folds import mixed
from thresher.errors import DataError
from thresher.overview.distinct import DistinctCount
from thresher.overview.facts import DataFacts, RowCount, names_of
from thresher.overview.features import FeatureCounter
from thresher.overview.label_choice import LabelChoice
from thresher.overview.labels import LabelCounter, add_given, are_sets
from thresher.overview.limits import Limits
from thresher.overview.sniff import Sniffed
from thresher.overview.table_batches import BATCH_ROWS, BadLineCount

__all__ = ["gather_blocks", "gather_matrix"]

_MOST_HASHES = 1 << 20  # rows whose copies are counted exactly
_MOST_NAMES = 1 << 20


def gather_blocks(
    source: Any,
    files: Sequence[Sniffed],
    limits: Limits,
    again: Callable[[], Any] | None = None,
    first_bad: str | None = None,
) -> DataFacts:
    """Return the facts about the rows of a source.

    Parameters
    ----------
    source : Source
        Made with ``on_bad_line="skip"``.
    files : sequence of Sniffed
    limits : Limits
    again : callable, optional
        Returns the source with features that are numbered from 0, if the first rows need it.
    first_bad : str, optional
        What was wrong with the numbering from 1.
    """
    features = FeatureCounter(source.first, source.named)
    names: dict[int, str] = {}
    sets = LabelCounter(LabelChoice(), True)
    alone = LabelCounter(LabelChoice(), False)
    hashes = DistinctCount(_MOST_HASHES)
    rows = read = 0
    several = False
    ended = True
    problems: list[str] = []
    last_file = source.parts[-1].name
    try:
        for block in source.blocks(names=source.named):
            native = block.native
            own = features.add(native.starts, native.keys, native.values)
            if source.named and len(names) < _MOST_NAMES:
                names.update(block.names)
            several = _add_block_labels(alone, sets, block, several)
            hashes.add(own ^ _label_hashes(block))
            if not rows and "--zero-based" in (source.bad_lines.first or "") and again is not None:
                return gather_blocks(again(), files, limits, first_bad=source.bad_lines.first)
            rows, read = rows + block.rows, block.raw
            limits.on_progress(rows, read)
            if limits.reached(rows):
                ended = block.file == last_file and limits.size is not None and read >= limits.size
                break
    except DataError as error:
        problems.append(f"reading ended after row {rows:,}: {error}")
    bad = BadLineCount(source.bad_lines.count, source.bad_lines.first or "")
    if first_bad is not None:
        bad = BadLineCount(max(bad.lines, 1), first_bad)
    facts = features.facts(names)
    return DataFacts(
        tuple(files),
        names_of(files) or str(source),
        limits.total(rows, ended, read),
        features=facts,
        label=(sets if several else alone).facts(),
        duplicates=max(rows - hashes.count, 0),
        duplicates_exact=hashes.exact,
        bad=bad,
        problems=tuple(problems),
    )


def _add_block_labels(alone: LabelCounter, sets: LabelCounter, block: Any, several: bool) -> bool:
    """Add the labels of a block; return whether rows have several labels."""
    try:
        starts, values = block.label_sets()
    except DataError:
        alone.missing += block.rows
        return several
    lengths = np.diff(starts)
    cells = values.tolist()
    if not several and bool((lengths > 1).any()):
        several = True
        sets.add_counted(alone)
    if several:
        sets.add_sets([set(cells[starts[r] : starts[r + 1]]) for r in range(len(lengths))])
    else:
        if values.dtype.kind == "f":
            labels = np.full(len(lengths), np.nan)
            labels[lengths == 1] = values
            alone.add(labels)
        else:
            found = iter(cells)
            alone.add([next(found) if length else None for length in lengths])
    return several


def _label_hashes(block: Any) -> NDArray[np.uint64]:
    """Return a hash of the labels of each row."""
    try:
        starts, values = block.label_sets()
    except DataError:
        return np.zeros(block.rows, np.uint64)
    if values.dtype.kind != "f":
        words = np.array([hash(value) & (2**64 - 1) for value in values.tolist()], np.uint64)
    else:
        words = (values.astype(np.float64) + 0.0).view(np.uint64)
    with np.errstate(over="ignore"):
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(words), dtype=np.uint64)])
        return np.asarray(mixed(sums[starts[1:]] - sums[starts[:-1]]))


def gather_matrix(
    X: Any, y: Any, name: str, limits: Limits, columns: Iterable[str] | None = None
) -> DataFacts:
    """Return the facts about a matrix or array in memory, and its labels if they are given."""
    import scipy.sparse as sp

    rows = X.shape[0]
    features = FeatureCounter()
    hashes = DistinctCount(_MOST_HASHES)
    labels = LabelCounter(LabelChoice(reason="given as y"), y is not None and are_sets(y))
    step = max((1 << 20) // max(X.shape[1], 1), 1) if not sp.issparse(X) else BATCH_ROWS
    for begin in range(0, rows, step):
        part = sp.csr_matrix(X[begin : begin + step])
        own = features.add(part.indptr, part.indices, part.data)
        hashes.add(own)
        if y is not None:
            add_given(labels, y, begin, begin + step)
        limits.on_progress(begin + part.shape[0], 0)
    facts = features.facts({}, list(columns) if columns is not None else None)
    return DataFacts(
        (),
        name,
        RowCount(rows, rows, True),
        features=facts,
        label=labels.facts() if y is not None else LabelCounter(LabelChoice(), False).facts(),
        duplicates=max(rows - hashes.count, 0),
        duplicates_exact=hashes.exact,
    )
