"""Reads rows of a source into memory for a race: all, or a random sample if there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from thresher.data.in_memory import InMemoryRows
from thresher.data.label_checks import tidy
from thresher.errors import DataError

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.source import Source

MOST_VALUES = 1 << 25  # stored values in memory: half a gigabyte


@dataclass(frozen=True)
class SampledRows:
    """Rows of a source in memory.

    Attributes
    ----------
    rows : InMemoryRows
        If rows have lists of labels, its labels are 0.
    total : int
        Number of rows of the source.
    sets : list of arrays or None
        The labels of each row, if rows have lists of labels.
    """

    rows: InMemoryRows
    total: int
    sets: list[NDArray[Any]] | None

    def labels(self) -> tuple[Any, NDArray[Any] | None]:
        """Return the labels: an array, or a CSR matrix of 0 and 1 and the label of each column."""
        if self.sets is None:
            return tidy(self.rows.labels), None
        starts = np.cumsum([0, *map(len, self.sets)])
        every = tidy(np.concatenate([np.zeros(0), *self.sets]))
        classes, columns = np.unique(every, return_inverse=True)
        shape = (len(self.sets), len(classes))
        table = sp.csr_matrix((np.ones(len(columns)), columns, starts), shape=shape)
        table.sum_duplicates()
        table.data[:] = 1.0
        return table, classes


@dataclass
class _Piece:
    """The rows of a block that are in the sample so far."""

    ranks: NDArray[np.float64]  # random numbers; a row is in the sample if its number is small
    counts: NDArray[np.int64]  # of values
    keys: NDArray[np.uint64]
    values: NDArray[np.float64]
    labels: NDArray[Any]
    weights: NDArray[np.float64]
    sets: list[NDArray[Any]] | None

    def below(self, limit: float) -> _Piece:
        """Return only the rows whose random number is below a limit."""
        rows = self.ranks < limit
        values = np.repeat(rows, self.counts)
        sets = None
        if self.sets is not None:
            sets = [labels for labels, kept in zip(self.sets, rows, strict=True) if kept]
        return _Piece(
            self.ranks[rows], self.counts[rows], self.keys[values], self.values[values],
            self.labels[rows], self.weights[rows], sets,
        )  # fmt: skip


def read_sample(
    source: Source, seed: int, check: Callable[[Block], Any], most: int | None = None
) -> SampledRows:
    """Read a source once, and keep all rows or a random sample.

    Each row gets a random number. Whenever the rows kept have more than `most` values, the rows
    whose number is in the upper half of the range are dropped, and the range is halved.

    Parameters
    ----------
    source : Source
    seed : int
    check : callable
        Called with each block of rows that have one label.
    most : int, optional
        Most values in memory; by default ``MOST_VALUES``.
    """
    most = MOST_VALUES if most is None else most
    pieces: list[_Piece] = []
    rng, limit, total, width, weighted = np.random.default_rng(seed), 1.0, 0, 0, False
    for block in source.blocks(dtype="float64"):
        if not source.multilabel:
            check(block)
        total += block.rows
        weighted |= block.weights is not None
        width = max(width, block.width or 2**64)
        pieces.append(_piece(block, rng.random(block.rows), source.multilabel).below(limit))
        while sum(len(piece.values) for piece in pieces) > most:
            limit /= 2
            pieces = [piece.below(limit) for piece in pieces]
    if not any(len(piece.labels) for piece in pieces):
        raise DataError(f"{source}: no rows to learn from")
    counts = np.concatenate([piece.counts for piece in pieces])
    rows = InMemoryRows(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.concatenate([piece.keys for piece in pieces]),
        np.concatenate([piece.values for piece in pieces]),
        np.concatenate([piece.labels for piece in pieces]),
        np.concatenate([piece.weights for piece in pieces]) if weighted else None,
        width if source.bits is None else 1 << source.bits,
    )
    sets = [labels for piece in pieces for labels in piece.sets or ()]
    return SampledRows(rows, total, sets if source.multilabel else None)


def _piece(block: Block, ranks: NDArray[np.float64], multilabel: bool) -> _Piece:
    native, count = block.native, block.rows
    starts: NDArray[np.int64] = np.asarray(native.starts, np.int64)
    labels, sets = np.zeros(count), None
    if multilabel:
        sets = list(_sets(block))
    elif block.labels is None:
        raise DataError(f"{block.place(0)}: rows have lists of labels")
    else:
        labels = np.array(block.labels)
    return _Piece(
        ranks,
        starts[1:] - starts[:-1],
        np.asarray(native.keys).astype(np.int64).view(np.uint64),
        np.array(native.values),
        labels,
        np.ones(count) if block.weights is None else np.array(block.weights),
        sets,
    )


def _sets(block: Block) -> Iterator[NDArray[Any]]:
    starts, labels = block.label_sets()
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield np.array(labels[first:last])
