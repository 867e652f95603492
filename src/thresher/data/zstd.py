"""Decoder of Zstandard frames, block by block.

No decoder of the package `zstandard` both limits its output and detects a frame that is cut off.
A block of a frame holds its own length and decompresses to 128 KiB at most. So this decoder reads
the headers of the blocks (RFC 8878, section 3.1.1) and passes on one block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thresher.errors import ParameterError

__all__ = ["Frame", "is_frame", "package"]

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte 0x50 to 0x5f
_MAX_WINDOW = 1 << 27  # the limit of `zstd -d`
_CHUNK = 1 << 16


def package() -> Any:
    """Import `zstandard`; if it is missing, raise an error that says how to install it."""
    try:
        import zstandard
    except ImportError:
        raise ParameterError(
            "reading .zst needs the package zstandard: pip install 'thresher[zstd]'"
        ) from None
    return zstandard


def is_frame(head: bytes) -> bool:
    """Tell whether a frame, also a skippable one, begins with these bytes."""
    return head.startswith(_MAGIC) or (head[1:4] == _SKIPPABLE and head[0] >> 4 == 5)


class Frame:
    """One frame, with the interface of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._decoder = package().ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
        self._pending = bytearray()
        self._steps = self._walk()
        self._step: tuple[int, str] | None = next(self._steps)
        self._damage: Exception | None = None
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the frame is complete."""
        return self._step is None

    @property
    def unused_data(self) -> bytes:
        """Input that was not used yet; after the end, input that is not part of the frame."""
        return bytes(self._pending)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Decompress blocks until there are max_length bytes, or no more complete blocks."""
        if self._damage is not None:
            raise self._damage
        self._pending += data
        output: list[bytes] = []
        length = 0
        self.needs_input = False
        while self._step is not None and length < max_length:
            size, use = self._step
            if size > len(self._pending):
                self.needs_input = True
                break
            if use != "peek":
                piece = bytes(self._pending[:size])
                del self._pending[:size]
                if use == "decode":
                    try:
                        output.append(self._decoder.decompress(piece))
                    except Exception as error:
                        # If there is output, return it now and raise in the next call. The decoder
                        # must not get these bytes again: after an error it may accept them.
                        self._damage = error
                        self._pending[:0] = piece
                        if not length:
                            raise
                        return b"".join(output)
                    length += len(output[-1])
            self._step = next(self._steps, None)
        return b"".join(output)

    def _walk(self) -> Iterator[tuple[int, str]]:
        """Yield how many bytes are needed next, and their use: "peek", "skip" or "decode"."""
        pending = self._pending
        yield 5, "peek"
        if pending[:4] != _MAGIC:
            yield 8, "peek"
            left = int.from_bytes(pending[4:8], "little")
            yield 8, "skip"
            while left > 0:
                yield min(left, _CHUNK), "skip"
                left -= _CHUNK
            return
        descriptor = pending[4]
        single = descriptor >> 5 & 1
        size_of_size = (single, 2, 4, 8)[descriptor >> 6]
        yield 6 - single + (0, 1, 2, 4)[descriptor & 3] + size_of_size, "decode"
        last = 0
        while not last:
            yield 3, "peek"
            header = int.from_bytes(pending[:3], "little")
            last, repeated, size = header & 1, header >> 1 & 3 == 1, header >> 3
            yield 3 + (1 if repeated else size), "decode"
        if descriptor >> 2 & 1:
            yield 4, "decode"
