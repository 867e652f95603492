"""What every source hands over at a time: rows, where they came from, and where to go on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core

__all__ = ["BadRow", "Block", "Position"]


@dataclass(frozen=True)
class Position:
    """Where a source stands: after a block, before the next.

    Parameters
    ----------
    file : int
        Number of the file in the source, from 0.
    offset : int
        What lies behind in that file, in the source's own unit: bytes of text, batches of a table,
        items of an iterator.
    line : int
        Lines, or rows of a table, that lie behind in that file.
    rows : int
        Rows that lie behind in all.

    Examples
    --------
    >>> Position.from_json(Position(file=1, offset=2, line=16385, rows=40960).to_json()).file
    1
    """

    file: int = 0
    offset: int = 0
    line: int = 0
    rows: int = 0

    def to_json(self) -> dict[str, int]:
        """Return what `json.dump` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, int]) -> Position:
        """Return the position that `to_json` wrote."""
        return cls(**{name: int(value) for name, value in fields.items()})


@dataclass(frozen=True)
class Block:
    """Some rows of a source.

    Parameters
    ----------
    native : _core.Block
        The rows.
    source : str
        Name of the file, as messages show it.
    end : Position
        Where the source stands after these rows.
    text_labels : array of str, optional
        Labels that are no numbers; `native` has none then.
    lines : array of int, optional
        The line of each row in its file, where bad ones were left out; else `native` knows it.
    """

    native: _core.Block
    source: str
    end: Position
    text_labels: NDArray[np.object_] | None = None
    lines: NDArray[np.int64] | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.native.rows

    @property
    def batch(self) -> _core.Batch:
        """The rows as a learner takes them."""
        return self.native.batch

    @property
    def labels(self) -> NDArray[Any] | None:
        """One label a row, numbers or text; None where rows have any number of labels, or none."""
        return self.native.labels if self.text_labels is None else self.text_labels

    def place(self, row: int) -> str:
        """Return where a row of the block stands, as `file:line`."""
        line = self.native.line(row) if self.lines is None else int(self.lines[row])
        return f"{self.source}:{line}"


@dataclass(frozen=True)
class BadRow:
    """A row that was left out, and why: its place and what was expected there.

    Parameters
    ----------
    source : str
        Name of the file.
    line : int
        Its line, or row of a table, from 1.
    what : str
        What is wrong with it.
    text : str
        The row, or what there is of it.
    """

    source: str
    line: int
    what: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.what}"
