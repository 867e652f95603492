"""Rows as arrays: taken from blocks, joined, put in another order, and made blocks again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import Block
from thresher.errors import ParameterError


class LabelWords:
    """Labels that are words, as numbers; each word has the number of its first row.

    Examples
    --------
    >>> words = LabelWords()
    >>> words.numbers(np.array(["spam", "ham", None, "spam"], object)).tolist()
    [0.0, 1.0, nan, 0.0]
    >>> words.words(np.array([1.0, np.nan])).tolist()
    ['ham', None]
    """

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.plain = False  # whether there were labels that are numbers

    def set(self, words: Iterable[Any] | None) -> None:
        """Take these words, if any; their numbers are their places."""
        self.known = {word: place for place, word in enumerate(() if words is None else words)}

    def numbers(self, words: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers of words; NaN: a label is missing."""
        known = self.known
        found = [
            np.nan if word is None else known.setdefault(word, len(known))
            for word in words.tolist()
        ]
        return np.array(found, np.float64)

    def of(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        """Return a copy of labels that are numbers, or the numbers of words."""
        if labels.dtype.kind not in "fiub":
            return self.numbers(labels)
        self.plain = self.plain or len(labels) > 0
        return np.array(labels, np.float64)

    def words(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        """Return the words of numbers."""
        table = np.empty(len(self.known) + 1, object)
        table[:-1] = list(self.known)
        missing = np.isnan(numbers)
        return table[np.where(missing, len(self.known), numbers).astype(np.intp)]


@dataclass(frozen=True)
class MovedBlock(Block):
    """A block of rows from several blocks. Lists of labels that are words are numbers in it."""

    lists: LabelWords | None = field(default=None, repr=False)

    def label_sets(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the labels of all rows, and where each row's labels begin."""
        starts, values = super().label_sets()
        if self.lists is not None and self.lists.known and self.words is None:
            values = self.lists.words(values)
        return starts, values


@dataclass(frozen=True)
class RowArrays:
    """Rows as arrays.

    Attributes
    ----------
    starts, keys, values : arrays
        Row r has the features ``keys[starts[r]:starts[r + 1]]``, with the values in the same range.
        Keys of 2^63 or more are negative. Types are narrow where that loses nothing.
    labels : array of float64 or None
        One label per row; words are numbers of `LabelWords`. None: rows have lists of labels.
    label_starts, label_values : arrays or None
        Lists of labels.
    weights : array of float64 or None
        None: all are 1.
    """

    starts: NDArray[np.int64]
    keys: NDArray[Any]
    values: NDArray[Any]
    labels: NDArray[np.float64] | None = None
    label_starts: NDArray[np.int64] | None = None
    label_values: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, block: Block, words: LabelWords) -> RowArrays:
        """Copy the rows of a block.

        Parameters
        ----------
        block : Block
        words : LabelWords
            Gets labels that are words.
        """
        native = block.native
        labels: Any = block.labels
        lists: tuple[Any, Any] = None, None
        if labels is None:
            starts, values = block.label_sets()
            lists = np.array(starts, np.int64), words.of(values)
        else:
            labels = words.of(labels)
        if words.plain and words.known:
            place = block.label_place(0)
            raise ParameterError(f"{place}: labels are partly numbers and partly words")
        keys = np.asarray(native.keys)
        if keys.dtype.itemsize > 4 and (not len(keys) or (keys.min() >= 0 and keys.max() < 2**31)):
            keys = keys.astype(np.int32)
        values = np.asarray(native.values)
        if values.dtype.itemsize > 4:
            with np.errstate(over="ignore"):
                narrow = values.astype(np.float32)
            if ((narrow == values) | (values != values)).all():
                values = narrow
        weights = None if block.weights is None else np.array(block.weights)
        starts = np.array(native.starts, np.int64)
        return cls(starts, np.array(keys), np.array(values), labels, *lists, weights)

    @classmethod
    def of_native(cls, native: _core.Block) -> RowArrays:
        """Return the rows of a block that `native` made; they are not copied."""
        lists = native.label_starts, native.label_values
        return cls(
            np.asarray(native.starts).astype(np.int64, copy=False),
            np.asarray(native.keys), np.asarray(native.values),
            native.labels if lists[0] is None else None, *lists, native.weights,
        )  # fmt: skip

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    @property
    def bytes(self) -> int:
        """Size of all arrays."""
        arrays = (getattr(self, field.name) for field in fields(self))
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def usual_bytes(self) -> int:
        """About the size of the arrays; it does not depend on how rows are cut into blocks."""
        return 24 * self.rows + 12 * int(self.starts[-1])

    def take(self, order: NDArray[np.int64]) -> RowArrays:
        """Return copies of some rows, in the given order."""
        starts, places = _places(self.starts, order)
        lists: tuple[Any, Any] = None, None
        if self.label_starts is not None and self.label_values is not None:
            of_lists, at = _places(self.label_starts, order)
            lists = of_lists, self.label_values[at]
        return RowArrays(
            starts, self.keys[places], self.values[places],
            None if self.labels is None else self.labels[order], *lists,
            None if self.weights is None else self.weights[order],
        )  # fmt: skip

    def part(self, first: int, last: int) -> RowArrays:
        """Return consecutive rows; not a copy."""
        at = slice(self.starts[first], self.starts[last])
        lists: tuple[Any, Any] = None, None
        if self.label_starts is not None and self.label_values is not None:
            begin, end = self.label_starts[first], self.label_starts[last]
            of_lists = self.label_starts[first : last + 1] - begin
            lists = of_lists, self.label_values[begin:end]
        return RowArrays(
            self.starts[first : last + 1] - self.starts[first], self.keys[at], self.values[at],
            None if self.labels is None else self.labels[first:last], *lists,
            None if self.weights is None else self.weights[first:last],
        )  # fmt: skip

    def native(self, dtype: str | None = None, bits: int | None = None, **more: Any) -> _core.Block:
        """Return a block of the core.

        Parameters
        ----------
        dtype : {"float32", "float64"}, optional
            Number type of the values; by default as they are.
        bits : int, optional
            All keys are below ``2**bits``.
        **more
            Further arguments of ``_core.make_block``.
        """
        values = self.values if dtype is None else self.values.astype(dtype, copy=False)
        return _core.make_block(
            starts=self.starts, keys=self.keys, values=np.ascontiguousarray(values),
            labels=self.labels, label_starts=self.label_starts, label_values=self.label_values,
            weights=self.weights, columns=0 if bits is None else 1 << bits, distinct=True, **more,
        )  # fmt: skip


def joined(parts: Sequence[RowArrays]) -> RowArrays:
    """Return the rows of all parts, one part after the other.

    Parameters
    ----------
    parts : sequence of RowArrays
        At least one.
    """
    if len(parts) == 1:
        return parts[0]
    lists: tuple[Any, Any] = None, None
    if parts[0].labels is None:
        lists = (
            _joined_starts([part.label_starts for part in parts]),
            np.concatenate([part.label_values for part in parts]),
        )
    weighted = any(part.weights is not None for part in parts)
    weights = [np.ones(part.rows) if part.weights is None else part.weights for part in parts]
    return RowArrays(
        _joined_starts([part.starts for part in parts]),
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.values for part in parts]),
        None if parts[0].labels is None
        else np.concatenate([part.labels for part in parts]),
        *lists,
        np.concatenate(weights) if weighted else None,
    )  # fmt: skip


def _joined_starts(starts: Sequence[Any]) -> NDArray[np.int64]:
    sizes = np.concatenate([np.diff(each) for each in starts])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _places(
    starts: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where rows start after reordering, and the old place of each of their values."""
    sizes = (starts[1:] - starts[:-1])[order]
    new = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return new, np.repeat(starts[:-1][order] - new[:-1], sizes) + np.arange(new[-1])
