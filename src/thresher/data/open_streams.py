"""Opens files, standard input and URLs as streams of decompressed bytes."""

from __future__ import annotations

import os
import stat
import sys
from typing import Any

from thresher.data import paths
from thresher.data.byte_stream import BinaryStream
from thresher.errors import ParameterError

__all__ = ["open_bytes", "open_seekable", "peek_bytes", "stored_size"]

# Streams that were looked at and cannot be opened again: pipes and standard input, by path.
_peeked: dict[str, BinaryStream] = {}


def open_bytes(path: str) -> BinaryStream:
    """Open a file, `-` or a URL to read its bytes, unpacked if they are packed.

    Packing is found by the first bytes, whatever the file is called: gzip, bzip2, xz, zstandard
    (with the extra `zstd`); several packed files one after another are one.

    Parameters
    ----------
    path : str
        One of those that `expand` returned.

    Examples
    --------
    >>> import bz2, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.vw"
    >>> _ = path.write_bytes(bz2.compress(b"1 |f x"))
    >>> with open_bytes(str(path)) as stream:
    ...     stream.read(), stream.packing, stream.seekable_plain
    (b'1 |f x', 'bzip2', False)
    """
    if path in _peeked:
        return _peeked.pop(path)
    if paths.is_remote(path):
        system, inner = paths.file_system(path)
        return BinaryStream(
            system.open(inner, "rb"), path, system.size(inner), local=False, rereadable=True
        )
    raw: Any
    if path == paths.STANDARD_INPUT:
        raw = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        try:
            status = os.fstat(raw.fileno())
        except (OSError, AttributeError):  # it was replaced by something in memory
            return BinaryStream(raw, path, None, local=False, rereadable=False)
    else:
        raw = open(path, "rb", buffering=0)  # noqa: SIM115 - the stream closes it
        status = os.fstat(raw.fileno())
    regular = stat.S_ISREG(status.st_mode)
    rereadable = regular and path != paths.STANDARD_INPUT
    size = status.st_size if regular else None
    return BinaryStream(raw, path, size, local=True, rereadable=rereadable)


def stored_size(path: str) -> int | None:
    """Return the bytes of a file as they are stored, or None if that is not known."""
    if path == paths.STANDARD_INPUT or path in _peeked:
        return None
    if paths.is_remote(path):
        system, inner = paths.file_system(path)
        size = system.size(inner)
        return None if size is None else int(size)
    status = os.stat(path)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def peek_bytes(path: str, size: int) -> bytes:
    """Return the first unpacked bytes; a pipe's are there again when it is opened."""
    stream = open_bytes(path)
    try:
        return stream.peek(size)
    finally:
        if stream.rereadable:
            stream.close()
        else:
            _peeked[path] = stream


def open_seekable(path: str) -> Any:
    """Return what a reader of a columnar format takes: the path, or an open remote file.

    Raises
    ------
    ParameterError
        The path is a pipe, or packed as a whole, so that one cannot jump about in it.
    """
    with open_bytes(path) as stream:
        if not stream.rereadable:
            raise ParameterError(
                f"{path}: this format is read from files, not from a pipe; write it to one first"
            )
        if stream.packing:
            raise ParameterError(
                f"{path}: this format cannot be read while it is packed with {stream.packing};"
                " unpack it first"
            )
    if paths.is_remote(path):
        system, inner = paths.file_system(path)
        return system.open(inner, "rb")
    return path
