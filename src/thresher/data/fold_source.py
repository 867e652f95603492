"""The rows of a source inside or outside of a fold; they are not copied to disk or memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.parts import BlockRequest
from thresher.data.read_options import ReadOptions
from thresher.data.row_folds import fold_numbers
from thresher.data.source import Source
from thresher.data.source_part import SourcePart


class FoldSource(Source):
    """The rows of a source in one fold, or in all other folds, in their order.

    A hash of the row's number decides the fold of a row; see `fold_numbers`. Blocks are not read in
    random order. Names of features are read from the source itself.

    Parameters
    ----------
    source : Source
        Can be read more than once.
    fold, folds : int
        Number of the fold, and of all folds.
    outside : bool
        Whether to read the rows of all other folds, instead of those of the fold.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import scan
    >>> from thresher.data.fold_source import FoldSource
    >>> rows = scan(lambda: [(np.eye(6), np.arange(6.0))])
    >>> [block.labels.tolist() for block in FoldSource(rows, 0, 2).blocks()]
    [[1.0, 3.0, 5.0]]
    >>> [block.labels.tolist() for block in FoldSource(rows, 0, 2, outside=True).blocks()]
    [[0.0, 2.0, 4.0]]
    """

    traced = False  # the source itself is traced

    def __init__(self, source: Source, fold: int, folds: int, outside: bool = False) -> None:
        part = _FoldPart(source, fold, folds, outside)
        policy = "skip" if source.reading.keeps_going else "error"  # the source has reported them
        super().__init__([part], replace(source.reading, on_bad_line=policy))
        self.given, self.inner = source.given, source

    @property
    def distinct(self) -> int | None:
        """Estimated number of different features, after the rows were read."""
        return self.inner.distinct


@dataclass(frozen=True)
class _SomeRows(Block):
    """Some rows of a block.

    Attributes
    ----------
    origin : Block
        The whole block.
    chosen : array of int
        The numbers of the rows in it.
    sets : pair of arrays, optional
        The labels of rows with any number of labels, as `label_sets` returns them.
    """

    origin: Block | None = None
    chosen: NDArray[np.int64] | None = None
    sets: tuple[NDArray[np.int64], NDArray[Any]] | None = None

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        assert self.origin is not None
        assert self.chosen is not None
        return self.origin.place(int(self.chosen[row]))

    def label_place(self, row: int) -> str:
        """Return the place of a row's label."""
        assert self.origin is not None
        assert self.chosen is not None
        return self.origin.label_place(int(self.chosen[row]))

    @property
    def labels(self) -> NDArray[Any] | None:
        """One label per row; None if rows have lists of labels."""
        return super().labels if self.sets is None else None

    def label_sets(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the labels of all rows in one array, and where each row's labels begin in it."""
        return super().label_sets() if self.sets is None else self.sets


class _FoldPart(SourcePart):
    """Rows of a source inside or outside of a fold."""

    def __init__(self, source: Source, fold: int, folds: int, outside: bool) -> None:
        self.fold, self.folds, self.outside = fold, folds, outside
        super().__init__(source)

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield the rows of the fold; all rows, if names are wanted.

        The fold of a row depends on its number, so the source is read from its beginning, and the
        blocks before the position are left out. Positions count the blocks and rows of the source.
        """
        first, before = 0, 0 if after is None else after.offset
        blocks = self.source.blocks(dtype=wanted.dtype, names=wanted.names, kinds=wanted.kinds)
        for count, block in enumerate(blocks, 1):
            row, first = first, first + block.rows
            if count <= before:
                continue
            end = Position(number, count, first)
            if wanted.names is not False:
                yield replace(block, end=end)
                continue
            inside = fold_numbers(row, block.rows, self.folds) == self.fold
            rows = np.flatnonzero(inside != self.outside)
            if len(rows):
                yield _some_rows(block, rows, self.source.bits, end)


def _some_rows(block: Block, rows: NDArray[np.int64], bits: int | None, end: Position) -> Block:
    """Return a block of some rows; its end is that of the whole block."""
    native = block.native
    starts, places = _taken(np.asarray(native.starts).astype(np.int64), rows)
    labels, weights, words, sets = block.labels, block.weights, block.words, None
    if labels is None:
        own, values = block.label_sets()
        label_starts, label_places = _taken(own, rows)
        sets = label_starts, values[label_places]
    numbers = None if labels is None or words is not None else labels[rows]
    made = _core.make_block(
        starts=starts,
        keys=np.ascontiguousarray(np.asarray(native.keys)[places]),
        values=np.ascontiguousarray(np.asarray(native.values)[places]),
        labels=None if numbers is None else np.ascontiguousarray(numbers, np.float64),
        weights=None if weights is None else np.ascontiguousarray(weights[rows]),
        columns=0 if bits is None else 1 << bits,
    )
    words = None if words is None else words[rows]
    return _SomeRows(
        made, block.file, end, words, raw=block.raw, origin=block, chosen=rows, sets=sets
    )


def _taken(
    starts: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the values of some rows begin, and the places of these values."""
    sizes = np.diff(starts)[rows]
    own = np.concatenate([[0], np.cumsum(sizes)])
    return own, np.repeat(starts[rows] - own[:-1], sizes) + np.arange(own[-1])
