"""Kind, owner and permissions of files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike


def mode_of(path: str) -> int | None:
    """Return kind and permissions of a file; None if there is none. Other errors are raised."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def keep_access(handle: int, path: str) -> None:
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


def may_replace(path: str) -> bool:
    """Tell whether a file at a path may be replaced: in a folder such as /tmp, only by owners."""
    try:
        of_file, of_folder = os.stat(path), os.stat(os.path.dirname(path) or ".")
    except OSError:
        return True  # it is new, or the error comes when it is written
    owners = (0, of_file.st_uid, of_folder.st_uid)
    return not of_folder.st_mode & stat.S_ISVTX or os.geteuid() in owners


_HANDLE = re.compile(r"/+(?:dev|proc/(?:self|thread-self|([0-9]+)))/fd/([0-9]{1,9})")


def stream_of(path: str) -> int | None:
    """Return the number of the open file that a path names, such as /dev/stdout; None: it does not.

    The shell may have opened it to add to its end, and others may write to it: it is not replaced.
    """
    for _ in range(40):  # links, as many as Linux follows
        found = _HANDLE.fullmatch(path)
        if found and found[1] in (None, str(os.getpid())):
            return int(found[2])
        try:
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        except OSError:  # no link
            return None
    return None


def is_stream(path: str | PathLike[str]) -> bool:
    """Return whether a path is a device, a pipe or an open file, which is written to directly.

    Parameters
    ----------
    path : path
    """
    path = os.fspath(path)
    mode = mode_of(path)
    return mode is not None and (not stat.S_ISREG(mode) or stream_of(path) is not None)


def target_of(path: str) -> str:
    """Return where a path leads, which may be a new file. `os.path.realpath` hides other errors."""
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.realpath(path)


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


def open_stream(path: str) -> int:
    """Return a handle to write to a device, a pipe or an open file; it is not emptied.

    Parameters
    ----------
    path : str
    """
    stream = stream_of(path)
    return os.open(path, os.O_WRONLY) if stream is None else os.dup(stream)
