"""A block of rows as sources give it: the core's block, and where it stands among the files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.spans import lines_before
from thresher.errors import DataError

__all__ = ["Block", "Position"]


@dataclass(frozen=True)
class Position:
    """Where a source stands: after a block, before the next.

    Attributes
    ----------
    file : int
        Number of the file, from 0.
    offset : int
        What lies behind in that file, in the source's own unit: unpacked bytes of text, batches of
        a table, items of an iterator, blocks of a cache.
    line : int
        Lines of text, or rows, that lie behind in that file.

    Examples
    --------
    >>> Position.from_json(Position(file=1, offset=2, line=16384).to_json()).line
    16384
    """

    file: int = 0
    offset: int = 0
    line: int = 0

    def to_json(self) -> dict[str, int]:
        """Return what `json.dump` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, int]) -> Position:
        """Return the position that `to_json` wrote."""
        return cls(**{name: int(value) for name, value in fields.items()})


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
    words : array, optional
        Labels that are no numbers; `native` has none then.
    lines : array, optional
        The line of each row in its file, where bad ones were left out; else `native` knows it.
    raw : int
        Bytes read of all files up to here, as they lie on disk.
    counted : int
        Lines are counted from this byte of the file on: that where its span begins.
    """

    native: _core.Block
    file: str
    end: Position
    words: NDArray[Any] | None = None
    lines: NDArray[np.int64] | None = None
    raw: int = 0
    counted: int = 0

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
        """One label for each row, NaN or None for none; None where rows have lists of labels."""
        return self.native.labels if self.words is None else self.words

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows; None: all 1."""
        return self.native.weights

    @property
    def digest(self) -> int:
        """Digest of what the block was read from, or where that is no text, of its rows."""
        native = self.native
        if native.digest:
            return int(native.digest)
        arrays = (native.starts, native.keys, native.values, native.labels, native.weights)
        parts = [np.asarray(array).tobytes() for array in arrays if array is not None]
        if self.words is not None:
            parts.append(repr(self.words.tolist()).encode())
        return _core.hash_name(b"".join(parts))

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
        else:
            known = np.array([label is not None for label in labels], bool)
        return np.concatenate([[0], np.cumsum(known)]).astype(np.int64), labels[known]

    def place(self, row: int) -> str:
        """Return where a row came from, as `file:line`, or `file:row` of a table."""
        if self.rows == 0:
            return self.file
        line = self.native.line(row) if self.lines is None else int(self.lines[row])
        return f"{self.file}:{self.true_line(line)}"

    def true_line(self, line: int) -> int:
        """Return which line of its file a line of its span is: all before the span is read."""
        return line + lines_before(self.file, self.counted) if self.counted else line

    def label_place(self, row: int) -> str:
        """Return where a row's label stands: that of a line of text at its beginning."""
        return self.place(row) + ":1" * (self.native.bytes > 0)

    def located(self, error: _core.DataError) -> DataError:
        """Return the error of a row with the place where the row came from."""
        found = re.fullmatch(r"row (\d+): (.*)", str(error), re.DOTALL)
        if found is None or int(found[1]) >= self.rows:
            return DataError(str(error))
        return DataError(f"{self.place(int(found[1]))}: {found[2]}")

    def heads(self) -> Iterator[tuple[int, _core.Batch]]:
        """Yield all rows, and their number: a block is small enough to be looked at whole."""
        yield self.rows, self.batch

    def sums(self, keys: NDArray[np.uint64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each row, the sum of the sizes of its features that are not zero."""
        own = np.asarray(self.native.keys).astype(np.int64).view(np.uint64)
        places = np.minimum(np.searchsorted(keys, own), max(len(keys) - 1, 0))
        known = np.asarray(self.native.values) != 0
        if len(keys):
            known &= keys[places] == own
        rows = np.repeat(np.arange(self.rows), np.diff(np.asarray(self.native.starts)))
        found = sizes[places[known]] if len(keys) else np.zeros(0)
        sums = np.bincount(rows[known] if len(keys) else rows[:0], found, self.rows)
        return np.asarray(sums, np.float64)

    def first_values(self, rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return where the values of each of the first rows begin, and the values."""
        starts = np.asarray(self.native.starts)[: rows + 1].astype(np.int64)
        return starts, np.asarray(self.native.values, np.float64)[: starts[-1]]
