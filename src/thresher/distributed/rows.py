"""The rows of a job, by parts."""

from __future__ import annotations

from typing import Protocol

from thresher.data.source import Source


class PartitionedRows(Protocol):
    """Rows in parts. It has names of files only, and is sent to workers, which read the rows."""

    @property
    def parts(self) -> int:
        """Number of parts."""

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        """Return the rows of a part, or one of the `pieces` pieces into which it is divided."""
