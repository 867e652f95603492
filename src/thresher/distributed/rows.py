"""Where the rows of a task are, by parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from thresher.data.source import Source, scan


class Rows(Protocol):
    """Rows in parts. A worker has only its name: rows are read where they are needed."""

    @property
    def parts(self) -> int:
        """Number of parts."""

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        """Return the rows of a part; of `pieces` pieces into which it is cut, the one of number."""


@dataclass(frozen=True)
class WholeFiles:
    """Rows of whole files, some of which are a part.

    Attributes
    ----------
    files : sequence of sequences of str
        The files of each part.
    reading : dict
        Options of `scan`.
    """

    files: Sequence[Sequence[str]]
    reading: dict[str, Any]

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.files)

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        """Return the rows of a part."""
        files = list(self.files[part])
        return scan(
            files[len(files) * piece // pieces : len(files) * (piece + 1) // pieces], **self.reading
        )
