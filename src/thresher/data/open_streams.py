"""Files, globs, standard input and remote paths -> streams of unpacked bytes."""

from __future__ import annotations

import glob
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable
from typing import Any

from thresher.atomic import naming
from thresher.data.decompress import LONGEST_MAGIC, Decoder, packing_of
from thresher.errors import DataError, ParameterError

__all__ = [
    "STANDARD_INPUT",
    "BinaryStream",
    "can_reopen",
    "expand",
    "is_remote",
    "open_bytes",
    "open_seekable",
    "peek_bytes",
    "stored_size",
]

STANDARD_INPUT = "-"
_PIECE = 1 << 16  # packed bytes that are read and handed to a decoder at a time

_PATIENCE = 100  # milliseconds that a pipe is waited for before `waiting` is asked again

_UNPACKED = 1 << 17  # bytes that a decoder is asked for at a time; damage may cost so many

# Streams that were looked at and cannot be opened again: pipes and standard input, by path.
_waiting: dict[str, BinaryStream] = {}


def is_remote(path: str) -> bool:
    """Tell whether a path is a URL."""
    return "://" in path


def expand(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files that are meant.

    Parameters
    ----------
    paths : path or paths
        Files, globs (their matches in sorted order; `**` is any number of folders), `-` for
        standard input, and URLs for fsspec.

    Raises
    ------
    FileNotFoundError
        A file is not there, or a glob matches none.
    ParameterError
        A folder is named, standard input is named twice, or fsspec is needed and not installed.

    Examples
    --------
    >>> expand("-")
    ['-']
    >>> expand("no-such-folder/*.vw")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no file matches no-such-folder/*.vw
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files = [file for path in paths for file in _expand_one(os.fspath(path))]
    if files.count(STANDARD_INPUT) > 1:
        raise ParameterError("standard input (-) is named more than once; it can be read only once")
    return files


def _expand_one(path: str) -> list[str]:
    if path == STANDARD_INPUT:
        return [path]
    if is_remote(path):
        return _expand_remote(path)
    if os.path.isdir(path):
        pattern = os.path.join(path, "*")
        raise ParameterError(f"{path} is a folder; name its files, for example with '{pattern}'")
    if os.path.exists(path):
        return [path]
    if not glob.has_magic(path):
        raise FileNotFoundError(f"{path}: no such file")
    files = sorted(file for file in glob.glob(path, recursive=True) if not os.path.isdir(file))
    if not files:
        raise FileNotFoundError(f"no file matches {path}")
    return files


def _expand_remote(path: str) -> list[str]:
    system, inner = _file_system(path)
    if not glob.has_magic(inner):
        if not system.exists(inner):
            raise FileNotFoundError(f"{path}: no such file")
        if system.isdir(inner):
            raise ParameterError(
                f"{path} is a folder; name its files, for example with '{path.rstrip('/')}/*'"
            )
        return [path]
    files = sorted(file for file in system.glob(inner) if not system.isdir(file))
    if not files:
        raise FileNotFoundError(f"no file matches {path}")
    return [system.unstrip_protocol(file) for file in files]


def _file_system(path: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise ParameterError(
            f"{path}: remote paths need the package fsspec: pip install fsspec"
        ) from None
    try:
        system, inner = fsspec.core.url_to_fs(path)
    except (ImportError, ValueError) as error:  # the protocol's own package, or no such protocol
        raise ParameterError(f"{path}: {error}") from error
    return system, inner


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
    if path in _waiting:
        return _waiting.pop(path)
    if is_remote(path):
        system, inner = _file_system(path)
        return BinaryStream(
            system.open(inner, "rb"), path, system.size(inner), local=False, rereadable=True
        )
    raw: Any
    if path == STANDARD_INPUT:
        raw = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        try:
            status = os.fstat(raw.fileno())
        except (OSError, AttributeError):  # it was replaced by something in memory
            return BinaryStream(raw, path, None, local=False, rereadable=False)
    else:
        raw = open(path, "rb", buffering=0)  # noqa: SIM115 - the stream closes it
        status = os.fstat(raw.fileno())
    regular = stat.S_ISREG(status.st_mode)
    rereadable = regular and path != STANDARD_INPUT
    size = status.st_size if regular else None
    return BinaryStream(raw, path, size, local=True, rereadable=rereadable)


def stored_size(path: str) -> int | None:
    """Return the bytes of a file as they are stored, or None if that is not known."""
    if path == STANDARD_INPUT or path in _waiting:
        return None
    if is_remote(path):
        system, inner = _file_system(path)
        size = system.size(inner)
        return None if size is None else int(size)
    status = os.stat(path)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def can_reopen(path: str) -> bool:
    """Tell whether a path can be read more than once: not a pipe, nor standard input."""
    return path != STANDARD_INPUT and (is_remote(path) or stat.S_ISREG(os.stat(path).st_mode))


def peek_bytes(path: str, size: int) -> bytes:
    """Return the first unpacked bytes; a pipe's are there again when it is opened."""
    stream = open_bytes(path)
    try:
        return stream.peek(size)
    finally:
        if stream.rereadable:
            stream.close()
        else:
            _waiting[path] = stream


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
    if is_remote(path):
        system, inner = _file_system(path)
        return system.open(inner, "rb")
    return path
