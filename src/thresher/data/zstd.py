"""Zstandard frames, block by block.

The package `zstandard` has no decoder that both bounds what it returns and tells a frame that was
cut off from a complete one. A block of a frame unpacks to 128 KiB at most and says how long it
is, so walking over the headers of the blocks (RFC 8878, section 3.1.1) gives both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thresher.errors import ParameterError

__all__ = ["Frame", "is_frame", "package"]

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # after a byte 0x50 to 0x5f
_MAX_WINDOW = 1 << 27  # as `zstd -d` has it
_CHUNK = 1 << 16


def package() -> Any:
    """Import `zstandard`, or say how to install it."""
    try:
        import zstandard
    except ImportError:
        raise ParameterError(
            "reading .zst needs the package zstandard: pip install 'thresher[zstd]'"
        ) from None
    return zstandard


def is_frame(head: bytes) -> bool:
    """Tell whether a frame begins so, be it one to skip."""
    return head.startswith(_MAGIC) or (head[1:4] == _SKIPPABLE and head[0] >> 4 == 5)


class Frame:
    """One frame, with the interface of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._decoder = package().ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
        self._pending = bytearray()
        self._parts = self._walk()
        self._part: tuple[int, str] | None = next(self._parts)
        self._damage: Exception | None = None
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the frame is complete."""
        return self._part is None

    @property
    def unused_data(self) -> bytes:
        """What was given and not yet unpacked; after the end, what does not belong to the frame."""
        return bytes(self._pending)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Unpack blocks until there are max_length bytes, or no more whole blocks."""
        if self._damage is not None:
            raise self._damage
        self._pending += data
        unpacked: list[bytes] = []
        length = 0
        self.needs_input = False
        while self._part is not None and length < max_length:
            size, use = self._part
            if size > len(self._pending):
                self.needs_input = True
                break
            if use != "look":
                part = bytes(self._pending[:size])
                del self._pending[:size]
                if use == "decode":
                    try:
                        unpacked.append(self._decoder.decompress(part))
                    except Exception as error:
                        if not unpacked:
                            raise
                        self._pending[:0] = part
                        self._damage = error  # for the next call
                        return b"".join(unpacked)
                    length += len(unpacked[-1])
            self._part = next(self._parts, None)
        return b"".join(unpacked)

    def _walk(self) -> Iterator[tuple[int, str]]:
        """Yield how many bytes are needed, and what for: to look at, to skip or to decode."""
        pending = self._pending
        yield 5, "look"
        if pending[:4] != _MAGIC:
            yield 8, "look"
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
            yield 3, "look"
            header = int.from_bytes(pending[:3], "little")
            last, repeated, size = header & 1, header >> 1 & 3 == 1, header >> 3
            yield 3 + (1 if repeated else size), "decode"
        if descriptor >> 2 & 1:
            yield 4, "decode"
