"""A shuffle buffer for rows that can be read only once: a pipe, or an iterator."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.parts import BlockRequest
from thresher.data.read_options import ReadOptions
from thresher.data.row_arrays import LabelWords, MovedBlock, RowArrays, joined
from thresher.data.row_folds import mixed
from thresher.data.source import Source
from thresher.data.source_part import SourcePart
from thresher.data.visits import Visit

BYTES = 1 << 26  # of the rows in a buffer; it has fewer rows than asked for, if rows are long


class BufferedSource(Source):
    """The rows of a source that can be read only once, shuffled by a buffer.

    The buffer is filled with the first rows. Then each further row takes the place of a random row
    of the buffer, which is learned. At the end, the rest of the buffer is learned in random order.
    So rows that are much further apart than the buffer is long stay apart.

    Parameters
    ----------
    source : Source
    rows : int
        Rows in the buffer. It has fewer if they take more than 64 MiB.
    seed : int
        Seed of `blocks`.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import scan
    >>> rows = scan(iter([(np.eye(6), np.arange(6))]))
    >>> [block.labels.tolist() for block in BufferedSource(rows, 3, 0).blocks()]
    [[2.0], [3.0], [4.0], [5.0, 0.0, 1.0]]
    """

    def __init__(self, source: Source, rows: int, seed: int) -> None:
        super().__init__([_BufferedPart(source, rows, seed)], source.reading)
        self.given, self.inner, self.bad_lines = source.given, source, source.bad_lines
        self.buffer = rows

    @property
    def distinct(self) -> int | None:
        """Estimated number of different features read so far."""
        return self.inner.distinct

    @property
    def reading_state(self) -> dict[str, Any]:
        """State of reading, for a checkpoint: that of the source."""
        return self.inner.reading_state

    @reading_state.setter
    def reading_state(self, saved: Mapping[str, Any]) -> None:
        self.inner.reading_state = saved

    def visits(
        self,
        number: int,
        shuffle: str | bool,
        seed: int,
        after: Position | None = None,
        blocks_before: int = 0,
        **reading: Any,
    ) -> Iterator[Visit]:
        """Yield the rows of the only pass; see `Source.visits`."""
        for block in self.blocks(after, order=(seed, number), **reading):
            yield Visit(block, None, 0, block.rows, block.end)


class _BufferedPart(SourcePart):
    """The rows of a source, shuffled by a buffer."""

    rereadable = False

    def __init__(self, source: Source, rows: int, seed: int) -> None:
        self.buffer, self.seed = rows, seed
        super().__init__(source)

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield the rows; those up to a position are read again, and left out."""
        seed = self.seed if wanted.order is None else wanted.order[0]
        buffer, origins = _Buffer(self.buffer, seed), _Origins()
        names = None if wanted.names is False else _Names()
        raw = 0

        def made(rows: RowArrays, numbers: NDArray[np.int64]) -> Iterator[Block]:
            if after is not None and buffer.sent <= after.line:
                return
            labels, words = rows.labels, None
            if origins.words.known and labels is not None:
                rows, words = replace(rows, labels=None), origins.words.words(labels)
            native = rows.native(
                wanted.dtype, self.source.bits, first_line=buffer.sent - rows.rows + 1,
                names=None if names is None else names.of(rows),
            )  # fmt: skip
            end = Position(0, buffer.sent, buffer.sent)
            yield _BufferedBlock(
                native,
                self.name,
                end,
                words,
                raw=raw,
                lists=origins.words,
                numbers=numbers,
                origins=origins,
            )

        named = "blocks" if names is not None else False
        for block in self.source.blocks(dtype=wanted.dtype, names=named, kinds=wanted.kinds):
            raw = block.raw
            if names is not None:
                names.add(block)
            for rows, numbers in buffer.add(origins.rows_of(block)):
                yield from made(rows, numbers)
            if names is not None:
                names.prune(buffer)
        for rows, numbers in buffer.rest():
            yield from made(rows, numbers)


class _Buffer:
    """The rows of the buffer, and those that wait to take their places.

    The result does not depend on how the rows are cut into blocks.
    """

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.seed = most, seed
        self.size = 0  # rows of the buffer, when it is full
        self.sent = 0  # rows that have left
        self.rows: RowArrays | None = None  # in the buffer
        self.numbers = np.zeros(0, np.int64)  # of these rows in the source
        self._waiting: list[RowArrays] = []
        self._count, self._bytes, self._seen = 0, 0.0, 0
        self._salt = mixed(np.array([seed], np.uint64))[0]

    def add(self, rows: RowArrays) -> Iterator[tuple[RowArrays, NDArray[np.int64]]]:
        """Add the next rows; yield those that leave, with their numbers."""
        if not rows.rows:
            return
        if not self.size:
            self._fill(rows)
        self._waiting.append(rows)
        self._count += rows.rows
        if self.rows is None and self.size and self._count >= self.size:
            waiting = joined(self._waiting)
            self.rows, self.numbers = waiting.part(0, self.size), np.arange(self.size)
            self._waiting = [waiting.part(self.size, waiting.rows)]
            self._count, self._seen = self._count - self.size, self.size
        step = max(1, self.size // 2)
        if self.rows is not None and self._count >= step:
            waiting, at = joined(self._waiting), 0
            while self._count - at >= step:
                yield self._replace(waiting.part(at, at + step))
                at += step
            self._waiting, self._count = [waiting.part(at, waiting.rows)], self._count - at

    def _fill(self, rows: RowArrays) -> None:
        """Fix the size of the buffer, if these rows fill it: by rows, or by about 12 bytes each."""
        sizes = self._bytes + np.cumsum(12.0 * np.diff(rows.starts) + 24.0)
        fits = int(np.searchsorted(sizes, BYTES, side="right"))
        self._bytes = float(sizes[-1])
        if fits < rows.rows or self._count + rows.rows >= self.most:
            self.size = max(1, min(self.most, self._count + fits))

    def _replace(self, new: RowArrays) -> tuple[RowArrays, NDArray[np.int64]]:
        """Put each row at a random place of the buffer; return the rows that were there."""
        assert self.rows is not None
        numbers = np.arange(self._seen, self._seen + new.rows)
        salted = mixed(numbers.astype(np.uint64) ^ self._salt)
        slots = (salted % np.uint64(self.size)).astype(np.int64)
        by_slot = np.argsort(slots, kind="stable")
        same = slots[by_slot[1:]] == slots[by_slot[:-1]]  # as the row before it
        leaves = slots.copy()
        leaves[by_slot[1:][same]] = self.size + by_slot[:-1][same]
        stays = np.arange(self.size)
        last = by_slot[np.append(~same, True)]
        stays[slots[last]] = self.size + last
        together = joined([self.rows, new])
        numbers = np.concatenate([self.numbers, numbers])
        self.rows, self.numbers = together.take(stays), numbers[stays]
        self._seen, self.sent = self._seen + new.rows, self.sent + new.rows
        return together.take(leaves), numbers[leaves]

    def rest(self) -> Iterator[tuple[RowArrays, NDArray[np.int64]]]:
        """Yield all rows that remain."""
        if self.rows is not None and self._count:
            yield self._replace(joined(self._waiting))
        elif self.rows is None and self._count:
            self.rows, self.numbers = joined(self._waiting), np.arange(self._count)
        if self.rows is not None:
            order = np.random.default_rng(self.seed).permutation(self.rows.rows)
            self.sent += self.rows.rows
            yield self.rows.take(order), self.numbers[order]

    def keys(self) -> NDArray[np.uint64]:
        """Return the features of all rows here."""
        held = [*self._waiting, *([] if self.rows is None else [self.rows])]
        return np.unique(
            np.concatenate([_unsigned(np.zeros(0)), *(_unsigned(r.keys) for r in held)])
        )


def _unsigned(keys: NDArray[Any]) -> NDArray[np.uint64]:
    return keys.astype(np.int64).view(np.uint64)


class _Names:
    """The names of the features of the rows in a buffer."""

    def __init__(self) -> None:
        self.known: dict[int, bytes] = {}
        self._most = 1 << 18

    def add(self, block: Block) -> None:
        """Add the names of a block."""
        self.known.update(block.native.names)

    def of(self, rows: RowArrays) -> list[tuple[int, bytes]]:
        """Return the names of the features of some rows."""
        keys = np.unique(_unsigned(rows.keys)).tolist()
        return [(key, self.known[key]) for key in keys if key in self.known]

    def prune(self, buffer: _Buffer) -> None:
        """Forget the names of features that no row in the buffer has, if there are too many."""
        if len(self.known) > self._most:
            held = buffer.keys().tolist()
            self.known = {key: self.known[key] for key in held if key in self.known}
            self._most = max(1 << 18, 2 * len(self.known))


class _Origins:
    """Where rows come from, for errors: a few numbers for each block."""

    def __init__(self) -> None:
        self.words, self.rows = LabelWords(), 0
        self._marks: list[tuple[int, str, Any, bool]] = []

    def rows_of(self, block: Block) -> RowArrays:
        """Return the rows of a block, and remember where it is."""
        if block.rows:
            lines: Any = block.lines
            if lines is None:
                lines = int(block.native.line(0))
                if block.native.line(block.rows - 1) != lines + block.rows - 1:
                    lines = np.array([block.native.line(row) for row in range(block.rows)])
            self._marks.append((self.rows, block.file, lines, block.native.bytes > 0))
            self.rows += block.rows
        return RowArrays.of(block, self.words)

    def place(self, number: int) -> tuple[str, bool]:
        """Return file and line of a row, and whether the file is text."""
        at = bisect_right(self._marks, number, key=lambda mark: mark[0]) - 1
        first, file, lines, text = self._marks[at]
        line = lines + number - first if isinstance(lines, int) else lines[number - first]
        return f"{file}:{line}", text


@dataclass(frozen=True)
class _BufferedBlock(MovedBlock):
    """A block whose rows come from several blocks."""

    numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    origins: _Origins = field(default_factory=_Origins, repr=False)

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        return self.origins.place(int(self.numbers[row]))[0] if self.rows else self.file

    def label_place(self, row: int) -> str:
        """Return the place of a row's label."""
        place, text = self.origins.place(int(self.numbers[row]))
        return place + ":1" * text
