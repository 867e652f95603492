"""The part of a source that is text: svmlight or VW, plain or compressed."""

from __future__ import annotations

import atexit
from collections.abc import Iterator

from thresher import _core
from thresher.data import open_streams
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block, Position
from thresher.data.byte_stream import BinaryStream
from thresher.data.detect import is_row
from thresher.data.formats import FORMATS
from thresher.data.parts import BlockRequest, FilePart
from thresher.data.read_options import ReadOptions
from thresher.data.spans import Span, line_start
from thresher.errors import DataError, InputError, ParameterError

__all__ = ["TextPart"]

_BOM = b"\xef\xbb\xbf"  # of UTF-8; it is no part of the text
_HEAD = 1 << 16
_SKIP = 1 << 20  # bytes skipped at a time

# Open readers whose threads call Python. Their threads must end before the interpreter does.
_open_readers: set[tuple[BinaryStream, _core.Reader]] = set()


@atexit.register
def _close_readers() -> None:
    """End the threads of readers that were not closed, for example after an error."""
    for stream, reader in list(_open_readers):
        stream.abandon()
        reader.close()
    _open_readers.clear()


class TextPart(FilePart):
    """A text file, plain or compressed; or the lines that begin in a span of a plain text file."""

    def __init__(
        self, name: str, format: str, reading: ReadOptions, span: Span | None = None
    ) -> None:
        super().__init__(name, span, lines=True)
        self.format, self.named = format, FORMATS[format].named
        self.first = 0 if reading.zero_based or self.named else 1

    def blocks(
        self,
        number: int,
        after: Position | None,
        reading: ReadOptions,
        bad_lines: BadLines,
        wanted: BlockRequest,
    ) -> Iterator[Block]:
        """Parse the file in threads."""
        known = wanted.names if isinstance(wanted.names, _core.WantedNames) else None
        first = wanted.names if isinstance(wanted.names, _core.FirstNames) else None
        stream = open_streams.open_bytes(self.name, self.waiting, self.watch.size)
        head = stream.peek(_HEAD if stream.rereadable else len(_BOM))
        span = Span(0, 0) if self.span is None else self._lines(stream, self.span)
        mark = len(_BOM) if head.startswith(_BOM) and span.begin == 0 else 0
        begin = after or Position(offset=span.begin + mark)
        limit = None if self.span is None else span.end
        if self.span is None and stream.seekable_plain:  # other streams end there by themselves
            limit = self.watch.size
        reader = None
        try:
            self._check_ends_of_lines(head)
            if not stream.seekable_plain:
                _skip(stream, begin.offset, self.name)
            reader = _core.Reader(
                None if stream.seekable_plain else stream,
                self.format,
                path=self.name if stream.seekable_plain else None,
                dtype=wanted.dtype,
                bits=reading.bits or 0,
                zero_based=reading.zero_based,
                multilabel=reading.multilabel,
                interactions=[pair.encode() for pair in reading.interactions],
                names=wanted.names is True,
                names_again=wanted.names == "blocks",
                wanted=known,
                first=first,
                sketch=known is None and (reading.bits is not None or self.named),
                keep_going=reading.keeps_going,
                threads=reading.workers,
                offset=begin.offset,
                first_line=begin.line + 1,
                waiting=self.waiting,
                end=limit,
            )
            if not stream.seekable_plain:
                _open_readers.add((stream, reader))
            while (native := reader.next()) is not None:
                offset = native.offset + native.bytes
                end = Position(number, offset, native.first_line + native.line_count - 1)
                raw = offset - span.begin if stream.seekable_plain else stream.raw_position
                yield Block(native, self.name, end, raw=raw, counted=span.begin)
            _open_readers.discard((stream, reader))
        finally:
            # Close the reader of a pipe first, so that its threads end before the stream closes.
            # Do not wait for threads that read a slow disk or network: after an interrupt, a
            # checkpoint must be written soon.
            stream.abandon()
            if reader is not None and stream.local and not stream.seekable_plain:
                reader.close()
                _open_readers.discard((stream, reader))
            stream.close()

    def _check_ends_of_lines(self, head: bytes) -> None:
        """Raise InputError if lines end with CR only: the whole file would be one line.

        VW text may also have a CR within a row. So what comes after it must be a row, with a label
        if the first row has one.
        """
        if b"\n" in head or b"\r" not in head:
            return
        if len(head) >= _HEAD:
            head = head[: head.rfind(b" ")]  # without what may be a part of a number
        pieces = [piece.strip() for piece in head.removeprefix(_BOM).split(b"\r")]
        lines = [piece for piece in pieces if piece]
        if self.named and lines and not lines[0].startswith(b"|"):
            lines = [line for line in lines if not line.startswith(b"|")]
        if any(map(is_row, lines if pieces[0] == b"" else lines[1:])):
            raise InputError(
                "its lines end with CR alone, and not with LF",
                place=self.name,
                hint="change their ends, for example with: tr '\\r' '\\n' < FILE > NEW_FILE",
            )

    @property
    def collects_names(self) -> bool:
        """Whether names can be collected while rows are read."""
        return self.named

    @property
    def size(self) -> int | None:
        """Bytes on disk of the span, or of the whole file."""
        return super().size if self.span is None else self.span.size

    def _lines(self, stream: BinaryStream, span: Span) -> Span:
        """Return the span of the complete lines that begin in a span."""
        if not stream.seekable_plain:
            stream.close()
            raise ParameterError(f"{self.name}: compressed text cannot be read in spans")
        try:
            span.within(self.name, stream.size or 0, "bytes")
        except DataError:
            stream.close()
            raise
        return Span(line_start(self.name, span.begin), line_start(self.name, span.end))


def _skip(stream: BinaryStream, count: int, name: str) -> None:
    """Read and discard `count` bytes."""
    buffer = memoryview(bytearray(_SKIP))
    while count > 0:
        stream.waiting()
        got = stream.readinto(buffer[: min(count, _SKIP)])
        if not got:
            raise DataError(f"{name}: the input has changed: it is shorter than it was")
        count -= got
