"""Packed bytes -> bytes, for each kind of packing, found by the first bytes.

Decoders are given small pieces and asked for a bounded number of bytes, so that a file of a few KiB
that unpacks to gigabytes costs no memory, and that little is lost before damage.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from thresher.data import zstd

__all__ = ["LONGEST_MAGIC", "Packing", "packing_of"]

LONGEST_MAGIC = 10  # bytes that `packing_of` looks at
_XZ_MEMORY = 1 << 30  # the largest dictionary that is accepted


class Decoder(Protocol):
    """One member, stream or frame: the interface of `bz2.BZ2Decompressor`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


@dataclass(frozen=True)
class Packing:
    """A kind of packing."""

    name: str
    begins: Callable[[bytes], bool]
    decoder: Callable[[], Decoder]
    errors: Callable[[], tuple[type[Exception], ...]]
    padded: bool = False  # zeros may follow a member


class _GzipMember:
    """One member of a gzip file; the checks of its trailer are zlib's."""

    def __init__(self) -> None:
        self._decoder: Any = zlib.decompressobj(wbits=31)
        self._left = b""
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._decoder.unused_data) if self.eof else self._left

    def decompress(self, data: bytes, max_length: int) -> bytes:
        data = self._left + data if self._left else data
        before = self._decoder.copy()
        try:
            unpacked: bytes = self._decoder.decompress(data, max_length)
            self._left = self._decoder.unconsumed_tail
        except zlib.error:
            unpacked = self._up_to_damage(before, data, max_length)
        # When output fills all the room, the decoder may hold more of it.
        self.needs_input = not self._left and len(unpacked) < max_length
        return unpacked

    def _up_to_damage(self, decoder: Any, data: bytes, max_length: int) -> bytes:
        """Unpack in ever smaller steps: zlib gives nothing of a piece in which there is damage."""
        unpacked = bytearray()
        self._decoder, self._left = decoder, data
        for step in (1024, 32, 1):
            while self._left and len(unpacked) < max_length:
                trial = self._decoder.copy()
                try:
                    unpacked += trial.decompress(self._left[:step], max_length)
                except zlib.error:
                    if step == 1 and not unpacked:
                        raise
                    break
                self._decoder, self._left = trial, trial.unconsumed_tail + self._left[step:]
        return bytes(unpacked)


def _zstd_errors() -> tuple[type[Exception], ...]:
    return (zstd.package().ZstdError,)


PACKINGS = (
    Packing(
        "gzip",
        lambda head: head.startswith(b"\x1f\x8b"),
        _GzipMember,
        lambda: (zlib.error,),
        padded=True,
    ),
    Packing(
        "bzip2",
        lambda head: head[:3] == b"BZh" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"),
        bz2.BZ2Decompressor,
        lambda: (OSError, ValueError),
    ),
    Packing(
        "xz",
        lambda head: head.startswith(b"\xfd7zXZ\x00"),
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY),
        lambda: (lzma.LZMAError,),
        padded=True,
    ),
    Packing("zstandard", zstd.is_frame, zstd.Frame, _zstd_errors),
)


def packing_of(head: bytes) -> Packing | None:
    """Return how the bytes that begin so are packed; None for plain bytes.

    Examples
    --------
    >>> import gzip
    >>> packing_of(gzip.compress(b"1 |f x")).name
    'gzip'
    """
    return next((packing for packing in PACKINGS if packing.begins(head)), None)
