"""Kind, owner and permissions of files."""

from __future__ import annotations

import os
import stat


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
