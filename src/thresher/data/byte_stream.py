"""A stream of bytes: a file, a pipe or a remote object, decompressed while it is read."""

from __future__ import annotations

import io
import select
from collections.abc import Callable
from typing import Any

from thresher.atomic import naming
from thresher.data.decompress import LONGEST_MAGIC, Decoder, packing_of
from thresher.data.paths import STANDARD_INPUT
from thresher.errors import DataError

__all__ = ["BinaryStream"]

_PIECE = 1 << 16  # packed bytes that are read and handed to a decoder at a time
_PATIENCE = 100  # milliseconds that a pipe is waited for before `waiting` is asked again
_UNPACKED = 1 << 17  # bytes that a decoder is asked for at a time; damage may cost so many


class BinaryStream(io.RawIOBase):
    """The unpacked bytes of a file, a pipe or a remote object.

    Bytes before damage are delivered before it is reported.

    Attributes
    ----------
    path : str
        As messages show it.
    size : int or None
        Bytes as they are stored, packed or not; None for a pipe.
    raw_position : int
        Of these, how many were read.
    packing : str or None
        "gzip", "bzip2", "xz", "zstandard", or None for plain bytes.
    rereadable : bool
        Whether the path can be opened again.
    seekable_plain : bool
        A local file that is not packed: it can be mapped, or read by a native reader.
    local : bool
        A file or a pipe of this machine.
    waiting : callable
        Is called now and then while a pipe has nothing to read; what it raises ends the reading.
    """

    def __init__(self, raw: Any, path: str, size: int | None, local: bool, rereadable: bool):
        super().__init__()
        self._raw = raw
        self.local = local
        self.waiting: Callable[[], None] = _go_on
        self._poll = None if rereadable or not local else select.poll()
        if self._poll is not None:
            self._poll.register(raw.fileno(), select.POLLIN)
        self.path = path
        self.size = size
        self.rereadable = rereadable
        self.raw_position = 0
        self._stored = b""  # read and not yet given to a decoder
        self._ahead = b""  # unpacked and not yet delivered
        self._ahead_at = 0
        self._delivered = 0  # of what was unpacked
        self._decoder: Decoder | None = None
        self._error: DataError | None = None
        self._packing = packing_of(self._look_at_stored(LONGEST_MAGIC))
        self.packing = self._packing.name if self._packing else None
        self.seekable_plain = local and rereadable and self._packing is None
        if self._packing is None:
            self._ahead, self._stored = self._stored, b""

    def readable(self) -> bool:
        """Return True: it is for reading."""
        return True

    def close(self) -> None:
        """Close the file, not standard input."""
        if not self.closed and self.path != STANDARD_INPUT:
            self._raw.close()
        super().close()

    def abandon(self) -> None:
        """End, by an error, the reading of a pipe by other threads, so that they can be joined."""
        self.waiting = _end

    def _wait(self) -> None:
        """Return when a read of the pipe will not block: no signal ends one that does."""
        while self._poll is not None and not self._poll.poll(_PATIENCE):
            self.waiting()

    def peek(self, size: int) -> bytes:
        """Return the next bytes, `size` or more if so many are left, and stay before them."""
        while len(self._ahead) - self._ahead_at < size:
            try:
                more = self._next(size)
            except DataError:
                break  # reported after what is good was delivered
            if not more:
                break
            self._ahead = self._ahead[self._ahead_at :] + more
            self._ahead_at = 0
        return self._ahead[self._ahead_at :]

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as there are bytes; 0 at the end."""
        room = memoryview(buffer).cast("B")
        filled = self._from_ahead(room)
        if self._packing is None:
            if not filled and len(room):
                self._wait()
                with naming(self.path):
                    filled = self._raw.readinto(room) or 0
                self.raw_position += filled
                self._delivered += filled
        else:
            while filled < len(room):
                try:
                    unpacked = self._next(len(room) - filled)
                except DataError:
                    if filled:
                        break
                    raise
                if not unpacked:
                    break
                self._ahead, self._ahead_at = unpacked, 0
                filled += self._from_ahead(room[filled:])
        return filled

    def _from_ahead(self, room: memoryview) -> int:
        size = min(len(room), len(self._ahead) - self._ahead_at)
        room[:size] = memoryview(self._ahead)[self._ahead_at : self._ahead_at + size]
        self._ahead_at += size
        self._delivered += size
        if self._ahead_at == len(self._ahead):
            self._ahead, self._ahead_at = b"", 0
        return size

    def _look_at_stored(self, size: int) -> bytes:
        while len(self._stored) < size:
            self._wait()
            with naming(self.path):
                piece = self._raw.read(max(size, _PIECE))
            if not piece:
                break
            self.raw_position += len(piece)
            self._stored += piece
        return self._stored[:size]

    def _next(self, limit: int) -> bytes:
        """Return some more bytes, about as many as `limit` at most; none at the end."""
        if self._packing is None:
            self._wait()
            with naming(self.path):
                piece: bytes = self._raw.read(min(limit, _PIECE)) or b""
            self.raw_position += len(piece)
            return piece
        if self._error:
            raise self._error
        try:
            return self._unpack(limit)
        except DataError:
            raise
        except self._packing.errors() as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # it could not be read at all
            raise self._damage(f"is damaged ({error})") from error

    def _unpack(self, limit: int) -> bytes:
        assert self._packing
        while True:
            if self._decoder is None and not self._next_member():
                return b""
            decoder = self._decoder
            assert decoder
            piece = b""
            if decoder.needs_input:
                self._look_at_stored(1)
                piece, self._stored = self._stored, b""
                if not piece:
                    raise self._damage("is cut off")
            unpacked = decoder.decompress(piece, min(limit, _UNPACKED))
            if decoder.eof:
                self._stored = decoder.unused_data + self._stored
                self._decoder = None
            if unpacked:
                return unpacked

    def _next_member(self) -> bool:
        """Begin with the member, stream or frame that follows, if there is one."""
        assert self._packing
        head = self._look_at_stored(LONGEST_MAGIC)
        if self._packing.padded:
            while head and not head.strip(b"\0"):
                self._stored = self._stored.lstrip(b"\0")
                head = self._look_at_stored(LONGEST_MAGIC)
            self._stored = self._stored.lstrip(b"\0")
            head = self._look_at_stored(LONGEST_MAGIC)
        if not head:
            return False
        if not self._packing.begins(head):
            raise self._damage("is followed by bytes that do not belong to it")
        self._decoder = self._packing.decoder()
        return True

    def _damage(self, what: str) -> DataError:
        unread = len(self._stored) + (len(self._decoder.unused_data) if self._decoder else 0)
        good = self._delivered + len(self._ahead) - self._ahead_at
        self._error = DataError(
            f"{self.path}: the {self.packing} data {what} near byte {self.raw_position - unread}"
            f" of the packed file; {good} bytes were unpacked before it"
        )
        return self._error


def _go_on() -> None:
    pass


def _end() -> None:
    raise DataError("nobody waits for these bytes any more")
