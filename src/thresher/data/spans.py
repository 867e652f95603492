"""Spans of files: which lines, rows or blocks of one are meant.

A span is in the unit in which its format can be entered: bytes of plain text, rows of Parquet,
blocks of a cache. A line belongs to the span in which its first byte lies, so spans that cover a
file have each of its lines once, wherever they are cut.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from thresher.data import open_streams, paths
from thresher.errors import DataError, ParameterError

__all__ = ["CUTTABLE", "Span", "extent", "line_start", "lines_before"]

CUTTABLE = ("svmlight", "vw", "parquet", "cache")
"""Formats of which a span can be read; text only where it is plain and local."""

_PIECE = 1 << 16  # bytes that are read at a time, to find where a line begins
_LARGE = 1 << 20  # and to count lines


@dataclass(frozen=True)
class Span:
    """What lies from `begin` on, and before `end`, in a file.

    Attributes
    ----------
    begin, end : int
        Bytes of text, rows of Parquet, blocks of a cache.
    """

    begin: int
    end: int

    def __post_init__(self) -> None:
        """Raise ParameterError where it ends before it begins."""
        if not 0 <= self.begin <= self.end:
            raise ParameterError(
                f"a span must begin at 0 or later, and end no earlier than that; got {self.begin} "
                f"to {self.end}"
            )

    @property
    def size(self) -> int:
        """Of the unit, how many there are."""
        return self.end - self.begin

    def within(self, name: str, count: int, unit: str) -> Span:
        """Return it; raises DataError where the file has too few of the unit."""
        if self.end > count:
            raise DataError(
                f"{name}: has {count} {unit}, and those up to {self.end} were to be read; it has "
                f"changed, or is another file"
            )
        return self


def extent(name: str, format: str) -> int | None:
    """Return how much of its unit a file has; None where it can only be read as a whole."""
    if format not in CUTTABLE or paths.is_remote(name) or not paths.can_reopen(name):
        return None
    if format == "cache":
        from thresher import _core

        return int(_core.CacheReader(name).blocks)
    if format == "parquet":
        from thresher.data.table_files import row_groups

        return row_groups(name)[-1]
    with open_streams.open_bytes(name) as stream:
        return stream.size if stream.seekable_plain else None


def line_start(name: str, offset: int) -> int:
    r"""Return where the first line begins that does so at a byte or behind it; or the size.

    Parameters
    ----------
    name : str
        A plain local file.
    offset : int

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "lines"
    >>> _ = path.write_bytes(b"ab\ncd\n")
    >>> [line_start(str(path), offset) for offset in range(8)]
    [0, 3, 3, 3, 6, 6, 6, 6]
    """
    if offset <= 0:
        return 0
    with open(name, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        at = min(offset, size) - 1  # a newline just before is the end of the line before
        file.seek(max(at, 0))
        while piece := file.read(_PIECE):
            found = piece.find(b"\n")
            if found >= 0:
                return at + found + 1
            at += len(piece)
    return size


def lines_before(name: str, offset: int) -> int:
    """Return how many lines end before a byte of a plain local file, by reading all before it."""
    count = 0
    with open(name, "rb", buffering=0) as file:
        while offset > 0 and (piece := file.read(min(_LARGE, offset))):
            count += piece.count(b"\n")
            offset -= len(piece)
    return count
