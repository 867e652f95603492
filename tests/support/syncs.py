"""Calls of `os.fsync`: what is synced, and syncs that fail."""

import os


def watched(monkeypatch, error=lambda path: 0):
    """Return a list that gets the path of each file and folder that is synced from now on.

    `error` returns the number of the error with which a call fails; 0: it does not fail.
    """
    found, sync = [], os.fsync

    def sync_watched(handle):
        path = os.readlink(f"/proc/self/fd/{handle}")
        found.append(path)
        code = error(path)
        if code:
            raise OSError(code, os.strerror(code))
        sync(handle)

    monkeypatch.setattr(os, "fsync", sync_watched)
    return found


def of_folders(code):
    """Return a function for `watched`: each sync of a folder fails with an error."""
    return lambda path: code if os.path.isdir(path) else 0
