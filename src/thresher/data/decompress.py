"""Decompression: gzip, bzip2, xz and Zstandard, detected by the first bytes.

Decoders get small pieces and return a limited number of bytes. So a file of a few KiB that
decompresses to gigabytes needs little memory, and most bytes before damage can be read.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from thresher.data import zstd

__all__ = ["LONGEST_MAGIC", "Compression", "compression_of"]

LONGEST_MAGIC = 10  # bytes that `compression_of` needs
_XZ_MEMORY = 1 << 30  # memory limit of the decoder, in bytes


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
class Compression:
    """A compression format."""

    name: str
    begins: Callable[[bytes], bool]
    decoder: Callable[[], Decoder]
    errors: Callable[[], tuple[type[Exception], ...]]
    padded: bool = False  # whether zeros may follow a member


class _GzipMember:
    """Decoder of one member of a gzip file; zlib checks its trailer."""

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
            output: bytes = self._decoder.decompress(data, max_length)
            self._left = self._decoder.unconsumed_tail
        except zlib.error:
            output = self._up_to_damage(before, data, max_length)
        # If the output has the full length, the decoder may hold more of it.
        self.needs_input = not self._left and len(output) < max_length
        return output

    def _up_to_damage(self, decoder: Any, data: bytes, max_length: int) -> bytes:
        """Decompress in smaller and smaller steps: zlib returns nothing of a damaged piece."""
        output = bytearray()
        self._decoder, self._left = decoder, data
        for step in (1024, 32, 1):
            while self._left and len(output) < max_length:
                trial = self._decoder.copy()
                try:
                    output += trial.decompress(self._left[:step], max_length)
                except zlib.error:
                    if step == 1 and not output:
                        raise
                    break
                self._decoder, self._left = trial, trial.unconsumed_tail + self._left[step:]
        return bytes(output)


def _zstd_errors() -> tuple[type[Exception], ...]:
    return (zstd.package().ZstdError,)


COMPRESSIONS = (
    Compression(
        "gzip",
        lambda head: head.startswith(b"\x1f\x8b"),
        _GzipMember,
        lambda: (zlib.error,),
        padded=True,
    ),
    Compression(
        "bzip2",
        lambda head: head[:3] == b"BZh" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"),
        bz2.BZ2Decompressor,
        lambda: (OSError, ValueError),
    ),
    Compression(
        "xz",
        lambda head: head.startswith(b"\xfd7zXZ\x00"),
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY),
        lambda: (lzma.LZMAError,),
        padded=True,
    ),
    Compression("zstandard", zstd.is_frame, zstd.Frame, _zstd_errors),
)


def compression_of(head: bytes) -> Compression | None:
    """Return the compression of a file with these first bytes; None for plain bytes.

    Examples
    --------
    >>> import gzip
    >>> compression_of(gzip.compress(b"1 |f x")).name
    'gzip'
    """
    return next((each for each in COMPRESSIONS if each.begins(head)), None)
