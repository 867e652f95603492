"""How far the reading of files is: one line on a terminal, overwritten."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

_SECONDS = 0.5  # between two lines of progress
_WAIT = 1.0  # before the first one


class ReadingProgress:
    """One line on a terminal that shows how far the reading is.

    Parameters
    ----------
    data : sequence of str
        Files.
    quiet : bool
        Whether to show nothing.
    """

    def __init__(self, data: Sequence[str], quiet: bool) -> None:
        self.shown = sys.stderr.isatty() and not quiet
        sizes = [os.path.getsize(one) for one in data if os.path.isfile(one)]
        self.size = sum(sizes) if len(sizes) == len(data) else 0
        self._began = self._last = time.monotonic()
        self._written = False

    def __call__(self, rows: int, read: int) -> None:
        """Show rows and bytes that were read."""
        now = time.monotonic()
        if not self.shown or now - self._began < _WAIT or now - self._last < _SECONDS:
            return
        share = f", {min(read / self.size, 1.0):.0%}" if self.size and read else ""
        print(f"\r{rows:,} rows{share}, {now - self._began:.0f} s   ", end="", file=sys.stderr,
              flush=True)  # fmt: skip
        self._last, self._written = now, True

    def close(self) -> None:
        """Remove the line."""
        if self._written:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
