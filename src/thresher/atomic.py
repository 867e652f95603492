"""Changes to an estimator or a file that happen completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import IO, Any


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
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}", path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"the folder {folder} cannot be written to", path)
    real = os.path.realpath(path)
    if os.path.exists(real) and not os.path.isfile(real):
        return  # a device or a pipe
    temporary = f"{real}.{os.urandom(8).hex()}.part"
    try:
        os.close(_opened(real, temporary)[0])
    except OSError as error:
        raise type(error)(error.errno, f"cannot be written here: {error.strerror}", path) from None
    _remove(temporary)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Add the path to an OSError of reading or writing an open file.

    Parameters
    ----------
    path : str
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, path) from None


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a temporary file in the same folder, and rename it to the path at the end.

    If the body fails, the temporary file is removed and an existing file at the path is unchanged.
    The new file has the mode and the owner of the file that it replaces; without one, the mode is
    as the umask says.

    Parameters
    ----------
    path : path
    """
    given = os.fspath(path)
    path = os.path.realpath(path)  # for a symbolic link: replace its target, and keep the link
    if os.path.exists(path) and not os.path.isfile(path):
        with naming(given), open(path, "wb") as device:  # or a pipe; a folder raises an error
            yield device
        return
    temporary = f"{path}.{os.urandom(8).hex()}.part"
    try:
        handle, unnamed = _opened(path, temporary)
        with os.fdopen(handle, "wb") as file:
            _keep_access(file.fileno(), path)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if unnamed:
                _name(file.fileno(), temporary)
        os.replace(temporary, path)
        _sync_folder(path)
    except OSError as error:
        _remove(temporary)
        if error.errno is not None and error.filename in (None, temporary):
            raise type(error)(error.errno, error.strerror, given) from None
        raise
    except BaseException:
        _remove(temporary)
        raise


def clear_leftovers(path: str | PathLike[str]) -> None:
    """Remove temporary files of processes that were killed just before `written_whole` renames.

    Parameters
    ----------
    path : path
        No other process may be writing it.
    """
    for left in glob.glob(f"{glob.escape(os.path.realpath(path))}.{'[0-9a-f]' * 16}.part"):
        _remove(left)


def _opened(path: str, temporary: str) -> tuple[int, bool]:
    """Open a temporary file; return its handle, and whether it has no name yet.

    If the process is killed, the system removes a file without a name. Not all file systems allow
    such files.
    """
    folder = os.path.dirname(path) or "."
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666), True
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise type(error)(error.errno, error.strerror, temporary) from None
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), False


def _keep_access(handle: int, path: str) -> None:
    """Give an open file the owner, the group and the mode of the file at a path, if there is one.

    Only the superuser can keep the owner, and only members can keep a group. If the group is not
    kept, the new group may do no more than others.
    """
    try:
        old = os.stat(path)
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(old.st_mode)
    new = os.fstat(handle)
    if new.st_gid != old.st_gid:
        try:
            os.fchown(handle, -1, old.st_gid)
        except OSError:
            mode &= ~0o070 | (mode & 0o007) << 3
    if new.st_uid != old.st_uid:
        try:
            os.fchown(handle, old.st_uid, -1)
        except OSError:
            mode &= ~stat.S_ISUID
    new_mode = stat.S_IMODE(os.fstat(handle).st_mode)  # a change of the owner clears bits
    if new_mode != mode:
        try:
            os.fchmod(handle, mode)
        except OSError:  # some file systems have no modes
            if new_mode & ~mode:  # others could do more than before
                raise


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


def _sync_folder(path: str) -> None:
    """Write the new name to disk, if the file system can, so that it survives a power cut.

    It is not an error if that fails: the file is complete, and has replaced the one before.
    """
    with contextlib.suppress(OSError):
        sync_folder(os.path.dirname(path))


def sync_folder(path: str | PathLike[str]) -> None:
    """Write the names in a folder to disk, so that they survive a power cut.

    Parameters
    ----------
    path : path

    Raises
    ------
    OSError
        A name that is new may not be on the disk.
    """
    folder = os.open(path, os.O_RDONLY)
    try:
        with naming(os.fspath(path)):
            os.fsync(folder)
    finally:
        os.close(folder)


def _remove(temporary: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def make_folder(path: str | PathLike[str]) -> None:
    """Make a folder and those above it, if they are missing; they survive a power cut.

    Parameters
    ----------
    path : path
    """
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return
    make_folder(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    _sync_folder(path)


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all.

    Parameters
    ----------
    path : path
    content : bytes
    """
    with written_whole(path) as file:
        file.write(content)
