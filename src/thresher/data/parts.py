"""The parts of a source: text files, caches, tables and iterators; each yields blocks."""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data import paths
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.cached_words import worded, words_in
from thresher.data.detect import detect_format
from thresher.data.file_watch import FileWatch
from thresher.data.formats import FORMATS
from thresher.data.read_options import ColumnKinds, ReadOptions
from thresher.data.spans import Span
from thresher.errors import ParameterError


@dataclass(frozen=True)
class BlockRequest:
    """Options of blocks; see `Source.blocks`."""

    dtype: str = "float64"
    names: bool | str | _core.WantedNames | _core.FirstNames = False
    order: tuple[int, int] | None = None
    kinds: Mapping[str, str] | None = None
    labelled: bool = False

    @property
    def keys(self) -> bool | NDArray[np.uint64]:
        """The features that need names: False for none, True for all, or an array of keys."""
        names = self.names
        return names.keys if isinstance(names, _core.WantedNames) else bool(names)


class Part(ABC):
    """One file or iterator of a source.

    Attributes
    ----------
    name : str
        Its name in errors.
    rereadable : bool
        Whether it can be read more than once.
    named : bool
        Whether features have names.
    shuffles : bool
        Whether its blocks can be read in any order.
    first : int
        The number in the file of feature 0, if features are numbered.
    sketch : bytes
        Sketch of all its features, if it is known before reading.
    waiting : callable or None
        Called from time to time while waiting for rows; an error that it raises ends the reading.
    columns, labels_given : tuple of str, bool
        For a frame: the columns of features, and whether labels are an array beside it.
    collector : _core.FirstNames or None
        Takes names when rows are first read, if the part keeps the rows then.
    """

    name: str
    rereadable: bool = True
    named: bool = False
    shuffles: bool = False
    first: int = 0
    sketch: bytes = b""
    waiting: Callable[[], None] | None = None
    columns: tuple[str, ...] = ()
    labels_given: bool = False
    collector: _core.FirstNames | None = None

    @property
    def size(self) -> int | None:
        """Bytes on disk, if known."""
        return None

    def facts(self) -> Any:
        """Return facts to detect a change later; None if changes cannot be detected."""
        return None

    def is_file(self, path: str) -> bool:
        """Tell whether the part is this file."""
        return False

    def kinds(self) -> dict[str, str]:
        """Return the kinds of the columns of this part and the parts before it."""
        return {}

    def settled(self, reading: ReadOptions) -> ReadOptions:
        """Return the options of reading with what the input decided, as far as it is known."""
        return reading

    @property
    def notes(self) -> list[str]:
        """What the user should know about the input."""
        return []

    @property
    def collects_names(self) -> bool:
        """Whether names can be collected in `_core.FirstNames` while rows are read."""
        return False

    def label_words(self) -> tuple[str, ...]:
        """Return some labels, if they are known to be words before reading."""
        return ()

    @abstractmethod
    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield blocks; `number` is the number of the part in its source. See `Source.blocks`."""

    def watched(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield `blocks`; raise DataError if it is a file and has changed."""
        return self.blocks(number, after, reading, bad_lines, wanted)


class FilePart(Part):
    """A part that is a local or remote file, standard input, or a span of a local file."""

    def __init__(self, name: str, span: Span | None = None, lines: bool = False) -> None:
        self.name, self.span = name, span
        self.rereadable = paths.can_reopen(name)
        self.local = self.rereadable and "://" not in name
        if span is not None and not self.local:
            raise ParameterError(f"{name}: only a local file can be read in spans")
        self.watch = FileWatch(name, self.local, lines)

    def watched(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield `blocks`; raise DataError if the file has changed."""
        if not self.rereadable:
            return self.blocks(number, after, reading, bad_lines, wanted)

        def again() -> Iterator[Block]:
            plain = replace(wanted, names=False)
            return self.blocks(number, after, reading, BadLines("skip"), plain)

        return self.watch.watched(
            lambda: self.blocks(number, after, reading, bad_lines, wanted),
            again,
            whole=after is None,
        )

    @property
    def size(self) -> int | None:
        """Bytes of a local file that are read, or its bytes on disk if it was not read yet."""
        if self.watch.size is not None:
            return self.watch.size
        return os.path.getsize(self.name) if self.local and os.path.isfile(self.name) else None

    def facts(self) -> Any:
        """Return name, size, time of last change and span of a local file."""
        if not self.local:
            return None
        try:  # os.path.isfile would hide an error of the disk
            status = os.stat(self.name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        span = [] if self.span is None else [self.span.begin, self.span.end]
        return [self.name, status.st_size, status.st_mtime_ns, *span]

    def is_file(self, path: str) -> bool:
        """Tell whether the part is this file; paths may differ."""
        return self.local and os.path.exists(path) and os.path.samefile(path, self.name)


class CachePart(FilePart):
    """A cache of parsed rows, or a span of its blocks."""

    shuffles = True

    def __init__(self, name: str, span: Span | None = None) -> None:
        super().__init__(name, span)
        if not self.local:
            raise ParameterError(f"{name}: a cache must be a local file")
        self._opened = self.watch.status()
        self.reader = _core.CacheReader(name)
        if span is None or span.size == self.reader.blocks:  # the sketch is of all blocks
            self.sketch = bytes(self.reader.sketch)
        self._blocks = (span or Span(0, self.reader.blocks)).within(
            name, self.reader.blocks, "blocks"
        )
        self._words = words_in(self.reader.about)
        options = self._options()
        self.named = self.reader.named or bool(options.get("named"))
        self.first = 1 if options.get("first") == 1 else 0
        kinds = options.get("kinds")
        self._kinds = kinds if isinstance(kinds, dict) else {}

    def kinds(self) -> dict[str, str]:
        """Return the kinds of columns, if the cache was made from tables."""
        return self._kinds

    def watched(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Yield `blocks`; raise CacheError if the cache was written to.

        The reader compares each block with its first reading. If the cache was written to, all
        blocks are read again to compare, because some may have been read before and some after.
        """
        yield from self.blocks(number, after, reading, bad_lines, wanted)
        now = self.watch.written_since(self._opened)
        if now is not None:
            self._compare_with_file(wanted)
            self._opened = now

    def _compare_with_file(self, wanted: BlockRequest) -> None:
        """Raise CacheError if the file has other contents than those that were read."""
        if _totals_of(_core.CacheReader(self.name)) != _totals_of(self.reader):
            raise _core.CacheError(
                f"{self.name}: the cache has changed while it is in use; create the cache again"
            )
        for at in range(self._blocks.begin, self._blocks.end):
            self.reader.block(at, wanted.dtype, False)

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Read the blocks of the cache, in the requested order or as stored."""
        first, count = self._blocks.begin, self._blocks.size
        named = wanted.names is not False
        places = None if wanted.order is None else _core.path_order(*wanted.order, 0, count)
        for at in range(0 if after is None else after.offset, count):
            native = self.reader.block(
                first + (at if places is None else int(places[at])), wanted.dtype, named
            )
            end = Position(number, at + 1, native.first_line + native.line_count - 1)
            raw = self.size * (at + 1) // count
            if places is not None and at + 1 < count:  # in stored order, the reader prefetches
                self.reader.prefetch(first + int(places[at + 1]), wanted.dtype, named)
            yield Block(native, self.name, end, raw=raw, **worded(native, self._words))

    def label_words(self) -> tuple[str, ...]:
        """Return some labels, if they are words."""
        return () if self._words is None else tuple(self._words[:100].tolist())

    @property
    def size(self) -> int:
        """Bytes on disk when it was opened; approximate for a span."""
        return self.reader.file_bytes * self._blocks.size // max(self.reader.blocks, 1)

    def _options(self) -> dict[str, Any]:
        """Return the options with which the cached files were read."""
        try:
            return dict(json.loads(self.reader.about)["options"])
        except (ValueError, KeyError, TypeError):
            return {}


def _totals_of(reader: _core.CacheReader) -> tuple[Any, ...]:
    """Return what a cache stores besides its blocks."""
    totals = reader.blocks, reader.rows, reader.nonzeros, reader.width, reader.named
    return *totals, reader.file_bytes, reader.about, bytes(reader.sketch)


class IteratorPart(Part):
    """An iterator of batches or of examples, or a function that returns one."""

    def __init__(self, items: Any, reading: ReadOptions, name: str = "iterator") -> None:
        from thresher.data.iterators import IteratorSource

        self.items = IteratorSource(items, reading.bits, name)
        self.name, self.rereadable = self.items.name, self.items.rereadable
        self.named = self.items.named

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Read the items of the iterator."""
        return self.items.blocks(after, wanted.dtype, wanted.keys)


def parts_of(files: Any, reading: ReadOptions) -> list[Part]:
    """Return the parts that files, globs or an iterator stand for."""
    if not isinstance(files, str | os.PathLike) and (callable(files) or not _is_paths(files)):
        return [IteratorPart(files, reading)]
    given = [files] if isinstance(files, str | os.PathLike) else list(files)
    kinds = ColumnKinds(dict(reading.kinds), fixed=bool(reading.kinds) and not reading.labelled)
    return [part_of(name, reading, kinds) for name in paths.expand(given)]


def _is_paths(files: Any) -> bool:
    return isinstance(files, list | tuple) and all(isinstance(f, str | os.PathLike) for f in files)


def part_of(name: str, reading: ReadOptions, kinds: ColumnKinds, span: Span | None = None) -> Part:
    """Return the part of a file or a span of it; the format is given, or else detected."""
    format = reading.format or detect_format(name, "csv" if reading.columns else None)
    if FORMATS[format].kind == "text":
        from thresher.data.text_part import TextPart

        return TextPart(name, format, reading, span)
    if FORMATS[format].kind == "cache":
        return CachePart(name, span)
    from thresher.data.table_part import TablePart

    return TablePart(name, format, reading, kinds, span)
