"""Detects files that change while they are read, or between two readings."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

from thresher.data.block import Block
from thresher.data.decompress import LONGEST_MAGIC, compression_of
from thresher.data.input_digests import InputDigests
from thresher.errors import DataError, InputError

__all__ = ["FileWatch"]

_MOST = 64  # digests of each file


class FileWatch:
    """Compares each reading of a file with the first complete one.

    A file may grow: each reading ends where the file ended when it was first opened. Other changes
    are errors.

    Parameters
    ----------
    path : str
    local : bool
        Whether it is a regular file of this machine.
    lines : bool
        Whether the file has lines, unless it is compressed.

    Attributes
    ----------
    size : int or None
        Bytes of the file when it was first opened, if it is local. More are not read.
    """

    def __init__(self, path: str, local: bool, lines: bool) -> None:
        self.path, self.local, self.lines = path, local, lines
        self.size: int | None = None
        self._first: tuple[int, ...] | None = None  # the status when it was first opened
        self._digests: InputDigests | None = None  # of the first complete reading

    def end_at(self, size: int | None) -> None:
        """Read only as many bytes from now on, as the run that is resumed did.

        Parameters
        ----------
        size : int or None
            None: it is not known.
        """
        if size != self.size:
            self.size = size
            self._digests = None  # readings so far had more lines

    def watched(
        self,
        read: Callable[[], Iterator[Block]],
        again: Callable[[], Iterator[Block]],
        whole: bool,
    ) -> Iterator[Block]:
        """Yield the blocks of a reading; raise DataError if the file changes.

        If the file was written to during its first reading, it is read again, to compare.

        Parameters
        ----------
        read : callable
            Returns the blocks.
        again : callable
            Returns them once more, without effects such as counting bad lines.
        whole : bool
            Whether the reading begins at the beginning.
        """
        before = self.status()
        if self.size is None and before is not None:
            self.size, self._first = before[0] or None, before  # files of /proc have size 0
        self._check_growth(before)
        known = self._digests if whole else None
        digests = InputDigests(_MOST) if known is None else known.again()
        try:
            for block in read():
                digests.add(block, cells=True)
                yield block
        except InputError as error:  # for example a CSV file that is empty now
            if known is None or self.status() == self._first:
                raise
            raise DataError(
                f"{self.path}: the input has changed since it was last read: {error}"
            ) from None
        digests.end()
        now = self.status()
        self._check_growth(now)
        if now != before and now is not None and known is None:
            second = digests.again()
            for block in again():
                second.add(block, cells=True)
            second.end()
            self._check_size(now, digests)
        if whole and known is None:
            self._digests = digests

    def _check_size(self, status: tuple[int, ...], digests: InputDigests) -> None:
        """Raise DataError if the file is shorter than it was when it was first opened."""
        if self.size is not None and status[0] < self.size:
            line = 0 if digests.total is None else digests.total.line
            raise DataError(
                f"{self.path}: the input has changed while it was read: it had {self.size:,} bytes "
                f"and has {status[0]:,} now; what was after line {line:,} is missing"
            )

    def status(self) -> tuple[int, ...] | None:
        """Return what changes when the file is written to or replaced; None if it is not known."""
        if not self.local:
            return None
        try:
            found = os.stat(self.path)
        except FileNotFoundError:  # while it is open, its rows can still be read
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev

    def written_since(self, before: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Return the status if the same file has another one than before; else None.

        If the path leads to another file now, an open file is still the one before.
        """
        now = self.status()
        if now is None or before is None or now == before or now[-2:] != before[-2:]:
            return None
        return now

    def _check_growth(self, status: tuple[int, ...] | None) -> None:
        """Raise DataError if the file has grown since its last line was only partly written."""
        if not self.lines or not self.size or status is None or status[0] <= self.size:
            return
        with open(self.path, "rb") as file:
            if compression_of(file.read(LONGEST_MAGIC)) is not None:
                return
            file.seek(self.size - 1)
            if file.read(1) not in (b"\n", b"\r", b"\0"):  # of UTF-16, "\n" ends with a zero
                raise DataError(
                    f"{self.path}: the input has changed since it was first opened: its last line "
                    f"was not complete then, and is longer now; copy the file, or read it from a "
                    f"pipe"
                )
