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

    def total(self, rows: int, ended: bool, read: int, whole_rows: int = 0) -> RowCount:
        """Return the number of rows: counted, or estimated by the bytes that were read.

        Parameters
        ----------
        rows : int
            Rows that were used.
        ended : bool
            Whether there are no more.
        read : int
            Stored bytes that were read.
        whole_rows : int
            Rows in these bytes, if not all were used.
        """
        if ended:
            return RowCount(rows, rows, True)
        if self.size is None or not read:
            return RowCount(rows, None, False)
        estimated = max(whole_rows, rows) * self.size / read
        return RowCount(rows, max(round(estimated), rows), False)
