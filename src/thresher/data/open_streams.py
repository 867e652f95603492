"""Opens files, standard input and URLs as streams of decompressed bytes."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import Any

from thresher.data import paths
from thresher.data.byte_stream import BinaryStream
from thresher.errors import ParameterError

__all__ = ["open_bytes", "open_seekable", "peek_bytes", "stored_size"]

# Streams that were peeked at and cannot be opened again (pipes and standard input), by path.
_peeked: dict[str, BinaryStream] = {}


def open_bytes(
    path: str, waiting: Callable[[], None] | None = None, limit: int | None = None
) -> BinaryStream:
    """Open a file, `-` or a URL as a stream of decompressed bytes.

    The first bytes decide the compression, not the name: gzip, bzip2, xz, or Zstandard (with the
    extra `zstd`). Compressed files that were concatenated are read as one.

    Parameters
    ----------
    path : str
        A path that `expand` returned.
    waiting : callable, optional
        As the attribute of the stream.
    limit : int, optional
        Stored bytes to read of a regular file; by default as many as it has now.

    Examples
    --------
    >>> import bz2, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.vw"
    >>> _ = path.write_bytes(bz2.compress(b"1 |f x"))
    >>> with open_bytes(str(path)) as stream:
    ...     stream.read(), stream.compression, stream.seekable_plain
    (b'1 |f x', 'bzip2', False)
    """
    if path in _peeked:
        stream = _peeked.pop(path)
        stream.waiting = waiting or stream.waiting
        return stream
    if paths.is_remote(path):
        system, inner = paths.file_system(path)
        return BinaryStream(
            system.open(inner, "rb"), path, system.size(inner), local=False, rereadable=True
        )
    raw: Any
    if path == paths.STANDARD_INPUT:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed", "standard input")
        raw = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        try:
            status = os.fstat(raw.fileno())
        except (OSError, AttributeError):  # sys.stdin was replaced by an object in memory
            return BinaryStream(raw, path, None, local=False, rereadable=False)
    else:
        raw = open(path, "rb", buffering=0)  # noqa: SIM115 - the stream closes it
        status = os.fstat(raw.fileno())
    regular = stat.S_ISREG(status.st_mode)
    rereadable = regular and path != paths.STANDARD_INPUT
    size = status.st_size if regular else None
    if rereadable and limit is not None:
        size = min(status.st_size, limit)
    return BinaryStream(raw, path, size, local=True, rereadable=rereadable, waiting=waiting)


def stored_size(path: str) -> int | None:
    """Return the stored size of a file in bytes; None if it is not known."""
    if path == paths.STANDARD_INPUT or path in _peeked:
        return None
    if paths.is_remote(path):
        system, inner = paths.file_system(path)
        size = system.size(inner)
        return None if size is None else int(size)
    status = os.stat(path)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def peek_bytes(path: str, size: int, waiting: Callable[[], None] | None = None) -> bytes:
    """Return the first decompressed bytes; `open_bytes` returns those of a pipe again.

    `waiting` is called from time to time while a pipe has nothing to read.
    """
    stream = open_bytes(path, waiting)
    try:
        return stream.peek(size)
    finally:
        if stream.rereadable:
            stream.close()
        else:
            _peeked[path] = stream


def open_seekable(path: str) -> Any:
    """Return the path of a local file, or an open remote file, for a reader that seeks.

    Raises
    ------
    ParameterError
        The path is a pipe or a compressed file, in which the reader cannot seek.
    """
    with open_bytes(path) as stream:
        if not stream.rereadable:
            raise ParameterError(
                f"{path}: this format cannot be read from a pipe; write it to a file first"
            )
        if stream.compression:
            raise ParameterError(
                f"{path}: this format cannot be read while it is compressed with"
                f" {stream.compression}; decompress it first"
            )
    if paths.is_remote(path):
        system, inner = paths.file_system(path)
        return system.open(inner, "rb")
    return path
