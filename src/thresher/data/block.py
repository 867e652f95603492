"""A block of rows of a source: the core's block, with its file and position."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.spans import lines_before
from thresher.errors import DataError

__all__ = ["Block", "Position"]


@dataclass(frozen=True)
class Position:
    """A position in a source, between two blocks.

    Attributes
    ----------
    file : int
        Number of the file, from 0.
    offset : int
        How much of that file comes before the position. The unit depends on the source:
        decompressed bytes of text, batches of a table, items of an iterator, blocks of a cache.
    line : int
        Lines of text, or rows, of that file before the position.

    Examples
    --------
    >>> Position.from_json(Position(file=1, offset=2, line=16384).to_json()).line
    16384
    """

    file: int = 0
    offset: int = 0
    line: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the position as JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, int]) -> Position:
        """Return the position that `to_json` wrote."""
        return cls(**{name: int(value) for name, value in fields.items()})


@dataclass(frozen=True)
class Block:
    """Rows with their labels and weights, and their place in the files.

    Attributes
    ----------
    native : _core.Block
        The rows in the core.
    file : str
        Name of the file, as given.
    end : Position
        The position after the block.
    words : array, optional
        Labels that are strings; `native` has no labels then.
    lines : array, optional
        The line of each row in its file, if bad lines were left out; by default `native` has it.
    raw : int
        Bytes on disk that were read up to here, of all files.
    counted : int
        The byte of the file from which lines are counted: the beginning of its span.
    sets : pair of arrays, optional
        Any number of labels per row that are strings: where each row's labels begin, and the
        labels; `native` has no labels then.
    cells : int
        Digest of the cells of a table, before they are converted; 0 if it is not of a table.
    """

    native: _core.Block
    file: str
    end: Position
    words: NDArray[Any] | None = None
    lines: NDArray[np.int64] | None = None
    raw: int = 0
    counted: int = 0
    sets: tuple[NDArray[np.int64], NDArray[Any]] | None = None
    cells: int = 0

    @property
    def batch(self) -> _core.Batch:
        """The rows with their labels and weights; not a copy."""
        return self.native.batch

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.native.rows)

    @property
    def width(self) -> int:
        """An upper bound of the feature numbers; 0: some are 2^63 or larger."""
        return int(self.native.width)

    @property
    def labels(self) -> NDArray[Any] | None:
        """One label per row, NaN or None if it is missing; None if rows have lists of labels."""
        if self.sets is not None:
            return None
        return self.native.labels if self.words is None else self.words

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows; None: all are 1."""
        return self.native.weights

    @property
    def digest(self) -> int:
        """Digest of the bytes of the block; of its rows, if it was read from a table or iterator.

        Of a block of a cache, the checksum of the bytes that were read.
        """
        return int(self.native.sum) or self.stored_digest

    @property
    def stored_digest(self) -> int:
        """The digest as in checkpoints of earlier versions: a cache stores that of its text."""
        return int(self.native.digest) or self._digest_of_rows

    @cached_property
    def _digest_of_rows(self) -> int:
        native = self.native
        arrays = (native.starts, native.keys, native.values, native.labels, native.weights)
        parts = [np.asarray(array).tobytes() for array in arrays if array is not None]
        if self.words is not None:
            parts.append(repr(self.words.tolist()).encode())
        if self.sets is not None:
            parts += [self.sets[0].tobytes(), repr(self.sets[1].tolist()).encode()]
        return _core.hash_name(b"".join(parts))

    @property
    def names(self) -> list[tuple[int, str]]:
        """Pairs of feature number and name, if names were requested."""
        return [(key, name.decode(errors="replace")) for key, name in self.native.names]

    @property
    def tags(self) -> list[str] | None:
        """The tag of each row, if the format has tags."""
        tags: list[bytes] | None = self.native.tags  # type: ignore[assignment]
        return None if tags is None else [tag.decode(errors="replace") for tag in tags]

    def label_sets(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the labels of all rows in one array, and where each row's labels begin in it.

        Row r has ``labels[starts[r]:starts[r + 1]]``; rows may have any number of labels.
        """
        if self.sets is not None:
            return self.sets
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
        """Return the place of a row for an error: `file:line`, or `file:row` for a table."""
        if self.rows == 0:
            return self.file
        line = self.native.line(row) if self.lines is None else int(self.lines[row])
        return f"{self.file}:{self.true_line(line)}"

    def true_line(self, line: int) -> int:
        """Return the line in the file of a line in the span; reads the file up to the span."""
        return line + lines_before(self.file, self.counted) if self.counted else line

    def label_place(self, row: int) -> str:
        """Return the place of a row's label; in a line of text the label is in column 1."""
        return self.place(row) + ":1" * (self.native.bytes > 0)

    def located(self, error: _core.DataError) -> DataError:
        """Return an error of the core about a row, with the row's place in its file."""
        found = re.fullmatch(r"row (\d+): (.*)", str(error), re.DOTALL)
        if found is None or int(found[1]) >= self.rows:
            return DataError(str(error))
        return DataError(f"{self.place(int(found[1]))}: {found[2]}")

    def heads(self) -> Iterator[tuple[int, _core.Batch]]:
        """Yield the number of rows and all rows; a matrix yields its first rows before."""
        yield self.rows, self.batch

    def sums(self, keys: NDArray[np.uint64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each row, the sum of `sizes` over its nonzero features among `keys`."""
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
        """Return the values of the first rows, and where each row's values begin."""
        starts = np.asarray(self.native.starts)[: rows + 1].astype(np.int64)
        return starts, np.asarray(self.native.values, np.float64)[: starts[-1]]

    def spread(self, rows: int) -> Block | None:
        """Return None: the rows of a block are next to each other; see `MatrixBlock.spread`."""
        return None

    def first_keys(self, rows: int) -> NDArray[Any]:
        """Return the feature of each of the `first_values`."""
        last = int(np.asarray(self.native.starts)[: rows + 1][-1])
        keys = np.asarray(self.native.keys)[:last]
        # The core shows keys of 2^63 or larger, which are hashes of names, as negative.
        return keys.astype(np.int64).view(np.uint64) if (keys < 0).any() else keys
