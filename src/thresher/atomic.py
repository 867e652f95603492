"""Changes to an estimator or a file that happen completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from typing import IO, Any

from thresher.disk_sync import opened_in_any_way, sync_name
from thresher.file_access import (
    is_stream,
    keep_access,
    may_replace,
    mode_of,
    open_stream,
    stream_of,
    target_of,
)


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the body fails or is interrupted.

    Objects that the attributes refer to are not copied: the body must not change them in place.

    Parameters
    ----------
    estimator : object
        Keeps its attributes in ``__dict__``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from thresher.atomic import all_or_nothing
    >>> learner = SimpleNamespace(weight=1.0)
    >>> try:
    ...     with all_or_nothing(learner):
    ...         learner.weight = 2.0
    ...         learner.rows = 1 / 0
    ... except ZeroDivisionError:
    ...     print(learner)
    namespace(weight=1.0)
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def check_place(path: str | PathLike[str]) -> None:
    """Raise OSError if `written_whole` could not write to a path; call it before long work.

    Parameters
    ----------
    path : path
    """
    path = os.fspath(path)
    _check_named(path)
    folder = os.path.dirname(path) or "."
    mode, of_folder = mode_of(path), mode_of(folder)
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if of_folder is None or not stat.S_ISDIR(of_folder):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}", path)
    if is_stream(path):  # its folder is not written to
        handle = stream_of(path)
        if handle is not None and fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "it is open for reading, not for writing", path)
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"the folder {folder} cannot be written to", path)
    if not may_replace(target_of(path)):
        why = "the file is of another user, and its folder lets only its owner replace it"
        raise PermissionError(errno.EPERM, why, path)
    try:
        NewFile(path).discard()
    except OSError as error:
        raise type(error)(error.errno, f"cannot be written here: {error.strerror}", path) from None


def _check_named(path: str) -> None:
    if not path:
        raise FileNotFoundError(errno.ENOENT, "the name of an output file is empty")


class NewFile:
    """A file that is written under another name; `put_in_place` gives it its path.

    Until then, an existing file at the path is unchanged. The new file has the mode and the owner
    of the file that it replaces; without one, the mode is as the umask says. The link stays if the
    path is a symbolic link. A device, a pipe, and an open file such as /dev/stdout are written to
    directly.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    path : str
        The target, if the path is a symbolic link.
    handle : int
        The open file; `put_in_place` and `discard` close it.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.handle, self._temporary, self._named = -1, "", True
        self._given, self._process = os.fspath(path), os.getpid()
        self.path = self._given
        try:
            with self.naming():
                self._open()
        except BaseException:
            self.discard()
            raise

    def _open(self) -> None:
        if is_stream(self._given):
            self.handle = open_stream(self._given)
            return
        _check_named(self._given)
        mode = mode_of(self._given)
        self.path = target_of(self._given)
        self._temporary = f"{self.path}.{os.urandom(8).hex()}.part"
        self.handle, self._named = _opened(self.path, self._temporary, mode is not None)
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # see clear_leftovers
        keep_access(self.handle, self.path)

    @property
    def is_temporary(self) -> bool:
        """Whether it still needs its path; a device or a pipe has it from the beginning."""
        return bool(self._temporary)

    def complete(self) -> None:
        """Write it to the disk. It has a name then, but not yet its path."""
        with self.naming():
            if not self._temporary:
                self._close()
                return
            os.fsync(self.handle)
            if not self._named:
                _name(self.handle, self._temporary)

    def rename(self) -> None:
        """Give it its path, and close it: until then it is locked."""
        if self._temporary:
            with self.naming():
                os.replace(self._temporary, self.path)
            self._temporary = ""
            with contextlib.suppress(OSError):  # all bytes are on the disk
                self._close()

    def discard(self) -> None:
        """Close it, and remove it if it does not have its path; a forked process only closes it."""
        if self._temporary and os.getpid() == self._process:
            _remove(self._temporary)
        self._temporary = ""
        with contextlib.suppress(OSError):
            self._close()

    def _close(self) -> None:
        if self.handle >= 0:
            handle, self.handle = self.handle, -1
            os.close(handle)

    def __del__(self) -> None:
        self.discard()

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Add the path, as it was given, to an OSError of writing the file."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename not in (None, self._temporary, self.path):
                raise
            raise type(error)(error.errno, error.strerror, self._given) from None


def put_in_place(files: Sequence[NewFile]) -> None:
    """Give files their paths: all files, or none if one of them cannot be completed.

    All files are complete and on the disk before the first one is renamed. So only if a file cannot
    be renamed, or the process ends between two renames, some of them are new and others are not.

    Parameters
    ----------
    files : sequence of NewFile
    """
    with _discarded_on_error(files):
        for file in files:
            file.complete()
        for file in files:
            file.rename()
    for file in files:
        sync_name(file.path)


@contextmanager
def _discarded_on_error(files: Sequence[NewFile]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for file in files:
            file.discard()
        raise


_together: ContextVar[list[NewFile] | None] = ContextVar("_together", default=None)


@contextmanager
def written_together() -> Iterator[None]:
    """Files that `written_whole` writes in the body are put in place together at its end.

    If the body fails, none of them is; see `put_in_place`. A device or a pipe is closed at once: a
    program may wait for the end of one pipe before it opens the next.
    """
    files: list[NewFile] = []
    token = _together.set(files)
    try:
        with _discarded_on_error(files):
            yield
    finally:
        _together.reset(token)
    put_in_place(files)


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a temporary file in the same folder, and rename it to the path at the end.

    If the body fails, the temporary file is removed; see `NewFile`.

    Parameters
    ----------
    path : path
    """
    new = NewFile(path)
    with _discarded_on_error([new]):
        with new.naming(), os.fdopen(new.handle, "wb", closefd=False) as file:
            yield file
        together = _together.get()
        if together is None or not new.is_temporary:
            put_in_place([new])
        else:
            together.append(new)


def clear_leftovers(path: str | PathLike[str]) -> None:
    """Remove temporary files of processes that were killed just before `written_whole` renames.

    Those of processes that go on are locked, and stay. So do those on a file system without locks.

    Parameters
    ----------
    path : path
    """
    for left in glob.glob(f"{glob.escape(os.path.realpath(path))}.{'[0-9a-f]' * 16}.part"):
        with contextlib.suppress(OSError):
            handle = opened_in_any_way(left)
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                os.unlink(left)
            finally:
                os.close(handle)


def _opened(path: str, temporary: str, replaces: bool) -> tuple[int, bool]:
    """Open a temporary file; return its handle, and whether it has a name.

    If the process is killed, the system removes a file without a name. Not all file systems allow
    such files. Others may not open a file that replaces one: `keep_access` says who may.
    """
    folder, mode = os.path.dirname(path) or ".", 0o600 if replaces else 0o666
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_WRONLY | os.O_TMPFILE, mode), False
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise type(error)(error.errno, error.strerror, temporary) from None
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), True


def _name(handle: int, temporary: str) -> None:
    """Give an open file without a name this name."""
    try:
        folder = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)  # os.link follows its links
        try:
            os.link(str(handle), temporary, src_dir_fd=folder, follow_symlinks=True)
        finally:
            os.close(folder)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, temporary) from None


def _remove(temporary: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all.

    Parameters
    ----------
    path : path
    content : bytes
    """
    with written_whole(path) as file:
        file.write(content)
