"""How far data are read, and the number of rows that this tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from thresher.overview.facts import RowCount

__all__ = ["Limits"]


@dataclass
class Limits:
    """How far to read, and whom to tell.

    Attributes
    ----------
    rows : int or None
        Rows to read; None: all.
    size : int or None
        Stored bytes of all files, if known.
    on_progress : callable
        Called with the rows and the stored bytes that were read.
    """

    rows: int | None = None
    size: int | None = None
    on_progress: Callable[[int, int], None] = field(default=lambda rows, read: None)

    def reached(self, rows: int) -> bool:
        """Tell whether enough rows were read."""
        return self.rows is not None and rows >= self.rows

    def total(self, rows: int, ended: bool, read: int) -> RowCount:
        """Return the number of rows: counted, or estimated by the bytes that were read."""
        if ended:
            return RowCount(rows, rows, True)
        known = self.size is not None and read > 0
        return RowCount(rows, round(rows * (self.size or 0) / read) if known else None, False)
