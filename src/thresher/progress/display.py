"""Lines of progress on standard error: a table in a file, or one overwritten line."""

from __future__ import annotations

import os
import sys
from typing import Any

from thresher.printable import printable
from thresher.progress.columns import Column, columns_of, heading_of, line_of, narrowed
from thresher.progress.texts import bar

_LONGEST_BAR = 30


class Display:
    """A table that grows by a line from time to time, for files and notebooks.

    Attributes
    ----------
    interval : float
        Seconds between two lines.
    """

    interval = 5.0
    live = False

    def __init__(self) -> None:
        self._columns: tuple[Column, ...] = ()

    def show(self, facts: dict[str, Any]) -> None:
        """Print a line, and before the first one the heading."""
        print(line_of(self._headed(columns_of(facts)), facts), file=sys.stderr, flush=True)

    def _headed(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        if columns != self._columns:
            self._columns = columns
            self.close()
            print(heading_of(columns)[: self._room()], file=sys.stderr)
        return columns

    def _room(self) -> int | None:
        """Return the longest line; None: any."""
        return None

    def text(self, text: str) -> None:
        """Print a text below the table."""
        self.close()
        print(printable(text), file=sys.stderr, flush=True)

    def overwrite(self, text: str) -> None:
        """Print a text that the next one replaces, if that is possible."""
        self.text(text)

    def close(self) -> None:
        """End the line that is being overwritten, if there is one."""

    def erase(self) -> None:
        """Erase the line that is being overwritten, if there is one."""


class LiveDisplay(Display):
    """One line with a bar that is overwritten; it fits in the width of the terminal."""

    interval = 0.2
    live = True
    _open = False

    def show(self, facts: dict[str, Any]) -> None:
        """Overwrite the line."""
        wide = _width()
        columns = self._headed(narrowed(columns_of(facts), wide))
        line = line_of(columns, facts)
        room = wide - max(len(line), sum(column.width for column in columns)) - 1
        drawn = bar(facts["done"], min(room, _LONGEST_BAR))
        if drawn:
            line = f"{line:<{sum(column.width for column in columns)}} {drawn}"
        self.overwrite(line)

    def _room(self) -> int:
        return _width()

    def overwrite(self, text: str) -> None:
        """Print a text that the next one replaces; it is cut to the width of the terminal."""
        print(f"\r{printable(text)[: _width()]}\x1b[K", end="", file=sys.stderr, flush=True)
        self._open = True

    def close(self) -> None:
        """End the line."""
        if self._open:
            print(file=sys.stderr, flush=True)
        self._open = False

    def erase(self) -> None:
        """Erase the line."""
        if self._open:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._open = False


def display_for_stderr() -> Display:
    """Return the display that suits standard error."""
    return LiveDisplay() if sys.stderr is not None and sys.stderr.isatty() else Display()


def _width() -> int:
    """Return the characters of a line on the terminal of standard error.

    The last one is not used: it would make some terminals begin a new line.
    """
    try:
        wide = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        try:
            wide = os.get_terminal_size(sys.stderr.fileno()).columns
        except (OSError, ValueError):  # not a terminal
            wide = 80
    return max(wide, 2) - 1 if wide > 0 else 79
