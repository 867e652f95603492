"""Rows of a source in random order: they are held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.in_memory import InMemoryRows, gather
from thresher.data.parts import BlockRequest, Part
from thresher.data.read_options import ReadOptions
from thresher.data.source import Source

_ROWS = 1 << 14  # of a block


class ShuffledSource(Source):
    """The rows of a source in random order.

    The source is read into memory when rows are first needed. Names of features are read from the
    source itself.

    Parameters
    ----------
    source : Source
        Can be read more than once.
    seed : int
        Seed of the order.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import scan
    >>> from thresher.data.shuffled import ShuffledSource
    >>> rows = scan(lambda: [(np.eye(6), np.repeat([0, 1], 3))])
    >>> [block.labels.tolist() for block in ShuffledSource(rows, 1).blocks()]
    [[1.0, 0.0, 0.0, 0.0, 1.0, 1.0]]
    """

    traced = False  # rows in memory do not change

    def __init__(self, source: Source, seed: int) -> None:
        part = _ShuffledPart(source, seed)
        super().__init__([part], replace(source.reading, on_bad_line="skip"))
        self.given, self.inner = source.given, source

    @property
    def distinct(self) -> int | None:
        """Estimated number of different features, after the rows were read."""
        return self.inner.distinct


@dataclass
class _Shuffled:
    """Rows in memory, their order, and the file (its place in `paths`) and line of each row."""

    rows: InMemoryRows
    order: NDArray[np.int64]
    paths: list[str]
    files: NDArray[np.int32]
    lines: NDArray[np.int64]


@dataclass(frozen=True)
class _ShuffledBlock(Block):
    """A block whose rows may come from different files."""

    paths: list[str] = field(default_factory=list)
    files: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        assert self.lines is not None
        return f"{self.paths[self.files[row]]}:{self.lines[row]}"


class _ShuffledPart(Part):
    """All rows of a source, in random order."""

    def __init__(self, source: Source, seed: int) -> None:
        self.source, self.seed = source, seed
        self.name, self.named, self.first = str(source), source.named, source.first
        self._kept: _Shuffled | None = None

    @property
    def size(self) -> int | None:
        """Bytes on disk, if known."""
        return self.source.size

    def facts(self) -> Any:
        """Return facts to detect a change of the source."""
        return self.source.facts()

    def is_file(self, path: str) -> bool:
        """Tell whether this file is a part of the source."""
        return any(part.is_file(path) for part in self.source.parts)

    def kinds(self) -> dict[str, str]:
        """Return the kinds of the columns of the source."""
        return self.source.kinds

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield the rows in random order; in stored order, if names are wanted."""
        if wanted.names is not False:
            yield from self.source.blocks(
                dtype=wanted.dtype, names=wanted.names, kinds=wanted.kinds
            )
            return
        kept = self._kept = self._kept or self._read()
        for first in range(0 if after is None else after.line, len(kept.order), _ROWS):
            yield self._block(kept, kept.order[first : first + _ROWS], first, wanted.dtype)

    def _read(self) -> _Shuffled:
        lines: list[NDArray[np.int64]] = []
        files: list[NDArray[np.int32]] = []
        names: dict[str, int] = {}

        def count(block: Block) -> None:
            if self.waiting is not None:
                self.waiting()
            numbers: Any = block.lines
            if numbers is None:
                numbers = [block.native.line(row) for row in range(block.rows)]
            lines.append(np.array(numbers, np.int64))
            file = names.setdefault(block.file, len(names))
            files.append(np.full(block.rows, file, np.int32))

        rows = gather(self.source, count)
        order = np.random.default_rng(self.seed).permutation(len(rows.labels))
        return _Shuffled(rows, order, list(names), np.concatenate(files), np.concatenate(lines))

    def _block(self, kept: _Shuffled, at: NDArray[np.int64], first: int, dtype: str) -> Block:
        rows = kept.rows
        sizes = np.diff(rows.starts)[at]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(rows.starts[at] - starts[:-1], sizes) + np.arange(starts[-1])
        labels = rows.labels[at]
        words = None if labels.dtype.kind in "fiub" else labels
        native = _core.make_block(
            starts=starts,
            keys=np.ascontiguousarray(rows.keys[places]).view(np.int64),
            values=np.ascontiguousarray(rows.values[places].astype(dtype)),
            labels=None if words is not None else np.ascontiguousarray(labels, np.float64),
            weights=None if rows.weights is None else np.ascontiguousarray(rows.weights[at]),
            columns=0 if self.source.bits is None else 1 << self.source.bits,
            first_line=first + 1,
        )
        end = Position(0, first // _ROWS + 1, first + len(at))
        return _ShuffledBlock(
            native, self.name, end, words, kept.lines[at], paths=kept.paths, files=kept.files[at]
        )
