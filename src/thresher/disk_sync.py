"""Files and names that survive a power cut: what was written is on the disk after a sync."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from os import PathLike

from thresher.file_access import mode_of, naming, target_of


def sync_name(path: str) -> None:
    """Write a new name to disk, so that it survives a power cut.

    It is not an error if that fails: the file is complete, and has replaced the one before.
    """
    with contextlib.suppress(OSError):
        sync_folder(os.path.dirname(path))


def sync_folder(path: str | PathLike[str]) -> None:
    """Write the names in a folder to disk, so that they survive a power cut.

    Nothing is done on a file system that cannot do that, or in a folder that may not be read.

    Parameters
    ----------
    path : path

    Raises
    ------
    OSError
        A name that is new may not be on the disk.
    """
    try:
        folder = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        os.close(folder)


def opened_in_any_way(path: str) -> int:
    """Open a file for reading, or for writing if its mode lets nobody read it."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except PermissionError:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)


def sync_file(path: str | PathLike[str]) -> None:
    """Write a file and its name to disk; do nothing if it is a device or a pipe, or is missing.

    Call it before the removal of another file that is needed if this one is lost.

    Parameters
    ----------
    path : path

    Raises
    ------
    OSError
        The file or its name may not be on the disk.
    """
    path = target_of(os.fspath(path))
    mode = mode_of(path)  # os.path.isfile would hide an error of the disk
    if mode is None or not stat.S_ISREG(mode):
        return
    handle = opened_in_any_way(path)
    try:
        with naming(path):
            os.fsync(handle)
    finally:
        os.close(handle)
    sync_folder(os.path.dirname(path))


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
    sync_name(path)
