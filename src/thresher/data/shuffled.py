"""A source in random order: small ones in memory, larger ones in buckets on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from thresher import _core
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.buckets import (
    BATCH,
    Buckets,
    BucketWriter,
    FileBuckets,
    MemoryBucket,
    Numbers,
    PassOrder,
    TemporaryBuckets,
    bucket_count,
)
from thresher.data.cached_words import words_in, words_of
from thresher.data.parts import BlockRequest
from thresher.data.read_options import ReadOptions
from thresher.data.row_arrays import LabelWords, MovedBlock, RowArrays, joined
from thresher.data.source import Source
from thresher.data.source_part import SourcePart
from thresher.data.visits import Visit
from thresher.errors import DataError

LIMIT = 1 << 28  # bytes of rows that are held in memory; more are dealt into buckets on disk
TRUE_SHUFFLES = ("each", "once", "replace")  # values of the parameter `shuffle`


class ShuffledSource(Source):
    """The rows of a source in random order.

    The source is read when rows are first needed. Up to 256 MiB of rows are kept in memory. More
    rows are dealt at random into buckets of a temporary file, and each bucket is shuffled in memory
    when it is visited. Each pass has its own order of the buckets, and of the rows within each.
    Names of features are read from the source itself.

    Parameters
    ----------
    source : Source
        Can be read more than once, unless `path` is given.
    seed : int
        Seed of the order of `blocks`.
    path : str, optional
        A cache to keep the rows in, for later runs; by default none is kept.
    dtype : {"float32", "float64"}
        Number type in which the rows are read.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import scan
    >>> from thresher.data.shuffled import ShuffledSource
    >>> rows = scan(lambda: [(np.eye(6), np.repeat([0, 1], 3))])
    >>> [block.labels.tolist() for block in ShuffledSource(rows, 1).blocks()]
    [[1.0, 0.0, 0.0, 0.0, 1.0, 1.0]]
    """

    traced = False  # the rows that are kept do not change

    def __init__(
        self, source: Source, seed: int, path: str | None = None, dtype: str = "float64"
    ) -> None:
        self.part = _ShuffledPart(source, seed, path, dtype)
        policy = "skip" if source.reading.keeps_going else "error"  # the source has reported them
        super().__init__([self.part], replace(source.reading, on_bad_line=policy))
        self.given, self.inner, self.bad_lines = source.given, source, source.bad_lines

    @property
    def distinct(self) -> int | None:
        """Estimated number of different features, after the rows were read."""
        kept = self.part.opened
        if self.inner.distinct is None and isinstance(kept, FileBuckets):
            sketch = bytes(kept.reader.sketch)
            return round(_core.sketch_estimate(sketch)) if sketch else None
        return self.inner.distinct

    def read(self) -> None:
        """Read the source now, if it was not read before."""
        self.part.waiting = self._check_stop
        self.part.kept()

    def why_read(self) -> str | None:
        """Return why the source must be read; None if the cache has its rows."""
        return self.part.current()

    def visits(
        self,
        number: int,
        shuffle: str | bool,
        seed: int,
        after: Position | None = None,
        blocks_before: int = 0,
        **reading: Any,
    ) -> Iterator[Visit]:
        """Yield the blocks of a pass; see `Source.visits`.

        Parameters
        ----------
        number : int
        shuffle : bool or str
            "each": each pass has its own order; "once": all have that of the first; "replace":
            rows are drawn with replacement, from each bucket as many as it has. Otherwise rows are
            in the order of `blocks`, and shuffled within blocks unless it is False.
        seed : int
        after : Position, optional
        blocks_before : int
        **reading
        """
        if shuffle not in TRUE_SHUFFLES:
            yield from super().visits(number, shuffle, seed, after, blocks_before, **reading)
            return
        number = 0 if shuffle == "once" else number
        order = seed, ~number if shuffle == "replace" else number
        for block in self.blocks(after, order=order, **reading):
            yield Visit(block, None, 0, block.rows, block.end)

    def facts(self) -> list[Any]:
        """Return facts about the source, and a digest of its rows, if they were read."""
        return [self.inner.facts(), self.part.digest]

    def is_unchanged(self, facts: Sequence[Any]) -> bool:
        """Tell whether the rows are those of `facts`; reads them if files are not the same."""
        if len(facts) and self.inner.is_unchanged(facts[0]):
            return True
        if len(facts) < 2 or facts[1] is None:
            return False
        self.read()
        return facts[1] in (self.part.digest, self.part.stored_digest)


@dataclass(frozen=True)
class ShuffledBlock(MovedBlock):
    """A block whose rows may come from different places of a source."""

    numbers: Numbers | None = None
    origin: _Places | None = field(default=None, repr=False)

    def place(self, row: int) -> str:
        """Return the place of a row for an error."""
        block, at = self._found(row)
        return self.file if block is None else block.place(at)

    def label_place(self, row: int) -> str:
        """Return the place of a row's label."""
        block, at = self._found(row)
        return self.file if block is None else block.label_place(at)

    def _found(self, row: int) -> tuple[Block | None, int]:
        if self.origin is None or self.numbers is None or not self.rows:
            return None, 0
        return self.origin.found(self.numbers.number(row))


class _Places:
    """Where the rows of a source are. Few numbers are kept; for a place, a block is read again."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.marks: list[tuple[int, Position | None]] = []  # rows before a block, and its position

    def found(self, number: int) -> tuple[Block | None, int]:
        """Return a block that has the row of this number, and the row's place in it."""
        if not self.source.rereadable:
            return None, 0
        marks = [mark for mark in self.marks if mark[0] <= number]
        first, after = marks[-1] if marks else (0, None)
        for block in self.source.blocks(after):
            if number < first + block.rows:
                return block, number - first
            first += block.rows
        return None, 0


class _ShuffledPart(SourcePart):
    """All rows of a source, in random order."""

    def __init__(self, source: Source, seed: int, path: str | None, dtype: str) -> None:
        self.seed, self.path, self.dtype = seed, path, dtype
        super().__init__(source)
        self.rereadable = source.rereadable or path is not None
        self.words, self.places = LabelWords(), _Places(source)
        self.digest: int | None = None  # of all rows
        self.stored_digest: int | None = None  # as in checkpoints of earlier versions
        self.opened: Buckets | None = None  # None: the rows were not read yet

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield the rows in random order; in stored order, if names are wanted."""
        if wanted.names is not False and not isinstance(wanted.names, _core.FirstNames):
            yield from self._named(wanted)
            return
        kept = self.kept(wanted)
        seed, pass_number = wanted.order or (self.seed, 0)
        replaces = pass_number < 0
        order = PassOrder(seed, ~pass_number if replaces else pass_number, replaces)
        size, total = self.size or 0, max(kept.rows, 1)
        for chunk in kept.chunks(order, 0 if after is None else after.line, wanted.dtype):
            last = chunk.first + chunk.rows.rows
            labels, words = chunk.rows.labels, None
            rows = chunk.rows
            if self.words.known and labels is not None:
                rows, words = replace(rows, labels=None), self.words.words(labels)
            native = rows.native(wanted.dtype, self.source.bits, first_line=chunk.first + 1)
            yield ShuffledBlock(
                native, self.name, Position(0, last, last), words, raw=size * last // total,
                numbers=chunk.numbers, origin=self.places,
                lists=self.words,
            )  # fmt: skip

    def _named(self, wanted: BlockRequest) -> Iterator[Block]:
        """Yield the rows in stored order, with names of features."""
        if self.source.rereadable:
            names, kinds = wanted.names, wanted.kinds
            yield from self.source.blocks(dtype=wanted.dtype, names=names, kinds=kinds)
            return
        kept = self.kept(wanted)
        assert isinstance(kept, FileBuckets)
        for native in kept.names(wanted.dtype):
            yield Block(native, self.name, Position())

    # ---- reading -------------------------------------------------------------------------------

    @property
    def collects_names(self) -> bool:
        """Whether names can be collected while rows are read: they were not read yet."""
        return self.path is None and self.opened is None and self.source.collects_names

    def kept(self, wanted: BlockRequest | None = None) -> Buckets:
        """Return all rows; read them if they were not read before."""
        if self.opened is None and self.current() is not None:
            self.opened = self._read(wanted or BlockRequest())
        assert self.opened is not None
        return self.opened

    def current(self) -> str | None:
        """Open the cache, if it has the rows of this source; else return why not."""
        from thresher.data.writing import why_not_current

        if self.opened is not None or self.path is None:
            return None if self.opened is not None else "there is no cache"
        try:
            count = json.loads(_core.CacheReader(self.path).about)["options"]["shuffled"]
        except (OSError, ValueError, KeyError, TypeError, _core.CacheError):
            count = bucket_count(self.source.size)
        reason = why_not_current(self.path, self.source, self.dtype, shuffled=count)
        if reason is None:
            self.opened = FileBuckets(self.path, count)
            self.words.set(words_in(self.opened.reader.about))
        return reason

    def _read(self, wanted: BlockRequest) -> Buckets:
        source, digest, stored, before = self.source, 0, 0, None
        names: bool | _core.FirstNames = self.path is not None and source.named
        if self.path is None and self.collector is not None:
            names = self.collector
        if self.path is not None:  # the header of the cache has the words
            self.words.set(words_of(source))
        dealer = _Dealer(self)
        try:
            for block in source.blocks(dtype=self.dtype, names=names, kinds=wanted.kinds):
                if self.waiting is not None:
                    self.waiting()
                digest = _core.mix_keys(digest, block.digest)
                stored = _core.mix_keys(stored, block.stored_digest)
                if block.rows:
                    self.places.marks.append((dealer.rows, before))
                    dealer.add(RowArrays.of(block, self.words), block)
                before = block.end
            if not dealer.rows:
                raise DataError(f"{source}: no rows to learn from")
            kept = dealer.finish()
        except BaseException:
            dealer.abandon()
            raise
        self.digest, self.stored_digest = digest, stored
        return kept

    def writer(self, count: int) -> BucketWriter:
        """Return a writer for a number of buckets."""
        from thresher.data.writing import cache_about

        if self.path is None:
            return TemporaryBuckets(count)
        words = [str(word) for word in self.words.known] or None
        about = cache_about(self.source, self.dtype, words, shuffled=count)
        return BucketWriter(self.path, about, count)


class _Dealer:
    """Collects rows in memory; if there are too many, deals them into buckets on disk."""

    def __init__(self, part: _ShuffledPart) -> None:
        self.part, self.rows = part, 0
        self._some: list[RowArrays] = []
        self._bytes = 0  # of these rows
        self._names: list[tuple[int, bytes]] = []
        self._writer: BucketWriter | None = None

    def add(self, rows: RowArrays, block: Block) -> None:
        """Add the next rows."""
        if self.part.path is not None:
            if (block.words is not None or block.sets is not None) and not self.part.words.known:
                raise DataError(f"{block.place(0)}: labels are words; a cache needs numbers")
            self._names += block.native.names
        self._some.append(rows)
        self.rows, self._bytes = self.rows + rows.rows, self._bytes + rows.usual_bytes
        if self._writer is None and self._bytes > LIMIT:
            self._writer = self.part.writer(bucket_count(self.part.source.size))
        if self._writer is not None and self._bytes > BATCH:
            self._deal(self._writer)

    def finish(self) -> Buckets:
        """Return all rows."""
        if self._writer is None and self.part.path is None:
            return MemoryBucket(joined(self._some))
        if self._writer is None:
            self._writer = self.part.writer(1)
        self._deal(self._writer)
        return self._writer.finish(self.part.source.sketch)

    def _deal(self, writer: BucketWriter) -> None:
        while self._some:
            batch: list[RowArrays] = []
            size = 0
            while self._some and (not batch or size + self._some[0].usual_bytes <= BATCH):
                size += self._some[0].usual_bytes
                batch.append(self._some.pop(0))
            writer.deal(joined(batch), self._names or None)
            self._names = []
        self._bytes = 0

    def abandon(self) -> None:
        """Remove files that are not complete."""
        if self._writer is not None:
            self._writer.abandon()
