"""Spans of files: ranges of lines, rows or blocks that can be read separately.

The unit of a span depends on the format: bytes of plain text, rows of Parquet, blocks of a cache.
A line belongs to the span that contains its first byte. So spans that cover a file contain each of
its lines once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from thresher.data import open_streams, paths
from thresher.data.formats import FORMATS
from thresher.errors import DataError, ParameterError

__all__ = ["Span", "extent", "line_start", "lines_before"]

"""Formats that can be read in spans; text only if it is a local file without compression."""

_PIECE = 1 << 16  # bytes per read, to find the beginning of a line
_LARGE = 1 << 20  # bytes per read, to count lines


@dataclass(frozen=True)
class Span:
    """A range of a file: from `begin` to `end`, without `end`.

    Attributes
    ----------
    begin, end : int
        Bytes of text, rows of Parquet, blocks of a cache.
    """

    begin: int
    end: int

    def __post_init__(self) -> None:
        """Raise ParameterError if the end is before the beginning."""
        if not 0 <= self.begin <= self.end:
            raise ParameterError(
                f"a span must begin at 0 or later, and must not end before it begins; got "
                f"{self.begin} to {self.end}"
            )

    @property
    def size(self) -> int:
        """Number of units."""
        return self.end - self.begin

    def within(self, name: str, count: int, unit: str) -> Span:
        """Return the span; raise DataError if the file has fewer units."""
        if self.end > count:
            raise DataError(
                f"{name}: has {count} {unit}, but {unit} up to {self.end} are needed; the file has "
                f"changed, or it is another file"
            )
        return self


def extent(name: str, format: str) -> int | None:
    """Return the number of units of a file; None if it can only be read as a whole."""
    if not FORMATS[format].cuttable or paths.is_remote(name) or not paths.can_reopen(name):
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
    r"""Return where the first line begins at or after a byte; the file size if there is none.

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
        at = min(offset, size) - 1  # a newline directly before the offset ends the previous line
        file.seek(max(at, 0))
        while piece := file.read(_PIECE):
            found = piece.find(b"\n")
            if found >= 0:
                return at + found + 1
            at += len(piece)
    return size


def lines_before(name: str, offset: int) -> int:
    """Return how many lines end before a byte of a plain local file; reads all bytes before it."""
    count = 0
    with open(name, "rb", buffering=0) as file:
        while offset > 0 and (piece := file.read(min(_LARGE, offset))):
            count += piece.count(b"\n")
            offset -= len(piece)
    return count
