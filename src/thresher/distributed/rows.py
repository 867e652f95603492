"""Where the rows of a task are, by parts."""

from __future__ import annotations

from typing import Protocol

from thresher.data.source import Source


class PartitionedRows(Protocol):
    """Rows in parts. A worker has only its name: rows are read where they are needed."""

    @property
    def parts(self) -> int:
        """Number of parts."""

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        """Return the rows of a part; of `pieces` pieces into which it is cut, the one of number."""
