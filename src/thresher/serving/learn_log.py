"""A log of learned requests: append-only, durable, and checked when it is read.

The first line describes the log. Each further line is a group of requests that were written
together: the CRC-32 of the rest in hexadecimal, a space, and a JSON array. A group counts only if
its line is complete; so a process or a machine that stops at any point leaves whole groups, and at
most one incomplete line at the end, which nobody was told is stored.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from typing import Any

from thresher.atomic import write_whole
from thresher.errors import ModelFileError
from thresher.file_access import naming

FORMAT = 1


class LearnLog:
    """A log, open for appending.

    Parameters
    ----------
    path : str
        It was made by `create`.
    size : int
        Bytes that count; what follows is cut off.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "log.jsonl")
    >>> log = LearnLog(path, LearnLog.create(path, {"rows": 0}))
    >>> log.append([{"rows": [{"age": 31}], "labels": [1]}])
    >>> log.close()
    >>> [group for group, _ in read_log(path)[1]]
    [[{'rows': [{'age': 31}], 'labels': [1]}]]
    """

    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size
        with naming(path):
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                os.ftruncate(self._handle, size)
            except OSError:
                self.close()
                raise

    @classmethod
    def create(cls, path: str, about: dict[str, Any]) -> int:
        """Make an empty log, atomically; return its size.

        Parameters
        ----------
        path : str
        about : dict
            Facts, as JSON types.
        """
        head = json.dumps({"thresher_log": FORMAT, **about}).encode() + b"\n"
        write_whole(path, head)
        return len(head)

    def append(self, group: list[Any]) -> None:
        """Write a group of requests; it is on the disk when this returns.

        Raises
        ------
        OSError
            It may or may not be on the disk: nothing more can be appended.
        """
        line = encoded_group(group)
        with naming(self.path):
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            os.fdatasync(self._handle)
        self.size += len(line)

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            os.close(self._handle)


def encoded_group(group: list[Any]) -> bytes:
    """Return the line of a group."""
    text = json.dumps(group, separators=(",", ":"), allow_nan=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_log(path: str) -> tuple[dict[str, Any], Iterator[tuple[list[Any], int]]]:
    """Return what a log says about itself, and its groups, each with the position after it.

    Parameters
    ----------
    path : str

    Raises
    ------
    ModelFileError
        The file is no log, or a line is damaged that is not the last one.
    """
    with open(path, "rb") as file:
        head = file.readline()
    try:
        about = json.loads(head)
        if not head.endswith(b"\n") or about["thresher_log"] != FORMAT:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise ModelFileError("not a log of learned rows, or damaged", place=path) from None
    return about, _groups(path, len(head))


def _groups(path: str, begin: int) -> Iterator[tuple[list[Any], int]]:
    with open(path, "rb") as file:
        file.read(begin)
        at = begin
        for number, line in enumerate(file, 2):
            group = _group_of(line)
            if group is None:
                if file.read(1):
                    raise ModelFileError(
                        f"line {number} is damaged, and more lines follow", place=path,
                        hint="the rows after it would be learned without it; restore the file",
                    )  # fmt: skip
                return
            at += len(line)
            yield group, at


def _group_of(line: bytes) -> list[Any] | None:
    """Return the group of a line; None if the line is not complete."""
    if not line.endswith(b"\n"):
        return None
    try:
        if int(line[:8], 16) != zlib.crc32(line[9:-1]) or line[8:9] != b" ":
            return None
        found = json.loads(line[9:-1])
    except ValueError:
        return None
    return found if isinstance(found, list) else None
