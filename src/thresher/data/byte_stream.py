"""A stream of bytes: a file, a pipe or a remote object, decompressed while it is read."""

from __future__ import annotations

import io
import select
from collections.abc import Callable
from typing import Any

from thresher.data.decompress import LONGEST_MAGIC, Decoder, compression_of
from thresher.data.paths import STANDARD_INPUT
from thresher.errors import DataError
from thresher.file_access import naming

__all__ = ["BinaryStream"]

_PIECE = 1 << 16  # stored bytes that are read and given to a decoder at a time
_WAIT = 100  # milliseconds to wait for a pipe before `waiting` is called
_OUTPUT = 1 << 17  # bytes that a decoder returns at most; damage may lose this many


class BinaryStream(io.RawIOBase):
    """The decompressed bytes of a file, a pipe or a remote object.

    If compressed data are damaged, the bytes before the damage are read first; then an error is
    raised.

    Attributes
    ----------
    path : str
        Its name in messages.
    size : int or None
        Stored bytes, compressed or not; None for a pipe. Of a local file, more are not read.
    raw_position : int
        Number of stored bytes that were read.
    compression : str or None
        "gzip", "bzip2", "xz", "zstandard", or None for plain bytes.
    rereadable : bool
        Whether the path can be opened again.
    seekable_plain : bool
        Whether it is a local file without compression, which the core can read itself: one whose
        name is UTF-8.
    local : bool
        Whether it is a file or a pipe of this machine.
    waiting : callable
        Called every 0.1 s while a pipe has nothing to read; an error that it raises ends the
        reading.
    """

    def __init__(
        self,
        raw: Any,
        path: str,
        size: int | None,
        local: bool,
        rereadable: bool,
        waiting: Callable[[], None] | None = None,
    ):
        super().__init__()
        self._raw = raw
        self.local = local
        self.waiting: Callable[[], None] = waiting or _do_nothing
        self._poll = None if rereadable or not local else select.poll()
        if self._poll is not None:
            self._poll.register(raw.fileno(), select.POLLIN)
        self.path = path
        self.size = size
        self.rereadable = rereadable
        self.raw_position = 0
        self._stored = b""  # bytes read and not yet given to a decoder
        self._ahead = b""  # decompressed bytes; those from `_ahead_at` on were not returned yet
        self._ahead_at = 0
        self._returned = 0  # number of decompressed bytes returned
        self._decoder: Decoder | None = None
        self._error: DataError | None = None
        self._compression = compression_of(self._peek_stored(LONGEST_MAGIC))
        self.compression = self._compression.name if self._compression else None
        plain = rereadable and self._compression is None
        self.seekable_plain = local and plain and _is_utf8(path)
        if self._compression is None:
            self._ahead, self._stored = self._stored, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self.closed and self.path != STANDARD_INPUT:
            self._raw.close()
        super().close()

    def abandon(self) -> None:
        """Raise an error in threads that wait for this pipe, so that they end."""
        self.waiting = _abandoned

    def _wait(self) -> None:
        """Wait until a read of the pipe does not block: no signal can end a blocked read."""
        while self._poll is not None and not self._poll.poll(_WAIT):
            self.waiting()

    def peek(self, size: int) -> bytes:
        """Return the next bytes without moving forward: `size` or more, unless fewer are left."""
        while len(self._ahead) - self._ahead_at < size:
            try:
                more = self._next(size)
            except DataError:
                break  # raised again when the bytes before it were read
            if not more:
                break
            self._ahead = self._ahead[self._ahead_at :] + more
            self._ahead_at = 0
        return self._ahead[self._ahead_at :]

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return the number of bytes, 0 at the end of the file."""
        room = memoryview(buffer).cast("B")
        filled = self._from_ahead(room)
        if self._compression is None:
            if not filled and len(room):
                self._wait()
                with naming(self.path):
                    filled = self._raw.readinto(room[: self._left(len(room))]) or 0
                self.raw_position += filled
                self._returned += filled
        else:
            while filled < len(room):
                try:
                    output = self._next(len(room) - filled)
                except DataError:
                    if filled:
                        break
                    raise
                if not output:
                    break
                self._ahead, self._ahead_at = output, 0
                filled += self._from_ahead(room[filled:])
        return filled

    def _left(self, size: int) -> int:
        """Return how many of the next `size` stored bytes may be read."""
        if not self.size or not (self.local and self.rereadable):  # files of /proc have size 0
            return size
        return max(0, min(size, self.size - self.raw_position))

    def _from_ahead(self, room: memoryview) -> int:
        size = min(len(room), len(self._ahead) - self._ahead_at)
        room[:size] = memoryview(self._ahead)[self._ahead_at : self._ahead_at + size]
        self._ahead_at += size
        self._returned += size
        if self._ahead_at == len(self._ahead):
            self._ahead, self._ahead_at = b"", 0
        return size

    def _peek_stored(self, size: int) -> bytes:
        while len(self._stored) < size:
            self._wait()
            with naming(self.path):
                piece = self._raw.read(self._left(max(size, _PIECE)))
            if not piece:
                break
            self.raw_position += len(piece)
            self._stored += piece
        return self._stored[:size]

    def _next(self, limit: int) -> bytes:
        """Return more bytes, about `limit` at most; none at the end."""
        if self._compression is None:
            self._wait()
            with naming(self.path):
                piece: bytes = self._raw.read(self._left(min(limit, _PIECE))) or b""
            self.raw_position += len(piece)
            return piece
        if self._error:
            raise self._error
        try:
            return self._decompress(limit)
        except DataError:
            raise
        except self._compression.errors() as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # an error of reading, not of decompressing
            raise self._damage(f"is damaged ({error})") from error

    def _decompress(self, limit: int) -> bytes:
        assert self._compression
        while True:
            if self._decoder is None and not self._next_member():
                return b""
            decoder = self._decoder
            assert decoder
            piece = b""
            if decoder.needs_input:
                self._peek_stored(1)
                piece, self._stored = self._stored, b""
                if not piece:
                    raise self._damage("is cut off")
            output = decoder.decompress(piece, min(limit, _OUTPUT))
            if decoder.eof:
                self._stored = decoder.unused_data + self._stored
                self._decoder = None
            if output:
                return output

    def _next_member(self) -> bool:
        """Make a decoder of the next member, stream or frame; return False if there is none."""
        assert self._compression
        head = self._peek_stored(LONGEST_MAGIC)
        if self._compression.padded:
            while head and not head.strip(b"\0"):
                self._stored = self._stored.lstrip(b"\0")
                head = self._peek_stored(LONGEST_MAGIC)
            self._stored = self._stored.lstrip(b"\0")
            head = self._peek_stored(LONGEST_MAGIC)
        if not head:
            return False
        if not self._compression.begins(head):
            raise self._damage("is followed by bytes that do not belong to it")
        self._decoder = self._compression.decoder()
        return True

    def _damage(self, what: str) -> DataError:
        unread = len(self._stored) + (len(self._decoder.unused_data) if self._decoder else 0)
        good = self._returned + len(self._ahead) - self._ahead_at
        self._error = DataError(
            f"{self.path}: the {self.compression} data {what} near byte"
            f" {self.raw_position - unread} of the compressed file; {good} bytes were"
            f" decompressed before it"
        )
        return self._error


def _do_nothing() -> None:
    pass


def _abandoned() -> None:
    raise DataError("the reading was ended")


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:  # bytes that are not, from the system
        return False
    return True
