"""A block of rows as sources give it: the core's block, and where it stands among the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.errors import DataError


@dataclass(frozen=True)
class Position:
    """A place between two blocks of a source.

    Attributes
    ----------
    file : int
        Number of the file, from 0.
    offset : int
        Behind the last byte read of it, unpacked; of files that are no text, the number of blocks.
    line : int
        Number of the next line (or row), from 1.
    """

    file: int
    offset: int
    line: int

    def as_json(self) -> list[int]:
        """Return it as JSON can carry it."""
        return [self.file, self.offset, self.line]

    @staticmethod
    def from_json(saved: list[int]) -> Position:
        """Return the position that `as_json` wrote."""
        return Position(*map(int, saved))


@dataclass(frozen=True)
class Block:
    """Rows, their labels and weights, and where they came from.

    Attributes
    ----------
    native : _core.Block
    file : str
        Name of the file, as given.
    end : Position
        Behind the block.
    raw : int
        Bytes read of all files up to here, as they lie on disk.
    words : array, optional
        Labels that are no numbers.
    counts_rows : bool
        Whether `place` counts rows, and not lines.
    """

    native: _core.Block
    file: str
    end: Position
    raw: int = 0
    words: NDArray[Any] | None = None
    counts_rows: bool = False

    @property
    def batch(self) -> _core.Batch:
        """The rows, borrowed, with their labels and weights."""
        return self.native.batch

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.native.rows)

    @property
    def width(self) -> int:
        """A bound of the feature numbers; 0: there are some of 2^63 and above."""
        return int(self.native.width)

    @property
    def labels(self) -> NDArray[Any] | None:
        """One label for each row, NaN for none; None where rows have lists of labels."""
        return self.native.labels if self.words is None else self.words

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows; None: all 1."""
        return self.native.weights

    @property
    def digest(self) -> int:
        """Digest of what the block was read from."""
        return int(self.native.digest)

    @property
    def names(self) -> list[tuple[int, str]]:
        """Names of features, where they were asked for."""
        return [(key, name.decode(errors="replace")) for key, name in self.native.names]

    @property
    def tags(self) -> list[str] | None:
        """Text that names each row, where there is any."""
        tags: list[bytes] | None = self.native.tags  # type: ignore[assignment]
        return None if tags is None else [tag.decode(errors="replace") for tag in tags]

    def label_sets(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return where each row's labels begin, and the labels, of rows with any number of them."""
        starts, values = self.native.label_starts, self.native.label_values
        if starts is not None and values is not None:
            return starts, values
        labels = self.labels
        if labels is None:
            raise DataError(f"{self.place(0)}: rows have no labels")
        if labels.dtype.kind == "f":
            known = ~np.isnan(labels)
            return np.concatenate([[0], np.cumsum(known)]).astype(np.int64), labels[known]
        return np.arange(len(labels) + 1, dtype=np.int64), labels

    def place(self, row: int) -> str:
        """Return where a row came from: the file, and its line or its number, from 1."""
        if self.rows == 0:
            return self.file
        number = self.native.line(row)
        return f"{self.file}: row {number}" if self.counts_rows else f"{self.file}:{number}"
