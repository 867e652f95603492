"""What the columns of a source are divided by, and what is subtracted from them before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher.data.block import Block
from thresher.errors import DataError

SCALES = ("variance", "max", "standard")
MIN_COUNT = 20  # as in `thresher.preprocessing.UnitVarianceScaler`
_DENSE = 1 << 22  # features with larger numbers are counted by sorting
_NEW = 1 << 20  # values that are kept before they are merged: merging sorts all keys
_CONSTANT = 1e-9  # a standard deviation below this share of the mean is that of a constant

Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]  # starts, keys, values


@dataclass(frozen=True)
class ColumnScales:
    """What the columns of a source are divided by, and what is subtracted from them before.

    Attributes
    ----------
    keys : array of uint64
        The features that have values, in increasing order.
    scales : array
        The scale of each; that of all other features is 1.
    centres : array
        What is subtracted from each; 0 for columns that stay sparse.
    """

    keys: NDArray[np.uint64]
    scales: NDArray[np.float64]
    centres: NDArray[np.float64]

    def of(self, keys: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scales of these features."""
        return self._found(self.scales, keys, 1.0)

    def centres_of(self, keys: NDArray[Any]) -> NDArray[np.float64]:
        """Return what is subtracted from these features."""
        return self._found(self.centres, keys, 0.0)

    def _found(
        self, facts: NDArray[np.float64], keys: NDArray[Any], other: float
    ) -> NDArray[np.float64]:
        wanted = np.asarray(keys).astype(np.int64).view(np.uint64)
        if not len(self.keys):
            return np.full(len(wanted), other)
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[at] == wanted, facts[at], other)

    def apply(self, starts: NDArray[Any], keys: NDArray[Any], values: NDArray[Any]) -> Rows:
        """Return rows with scaled values; in centred columns, zeros become values.

        Parameters
        ----------
        starts, keys, values : array
            Row r has the features ``keys[starts[r]:starts[r + 1]]``.
        """
        keys, starts = np.asarray(keys).astype(np.int64), np.asarray(starts).astype(np.int64)
        with np.errstate(over="ignore"):
            scaled = ((values - self.centres_of(keys)) / self.of(keys)).astype(values.dtype)
        centred = np.flatnonzero(self.centres)
        if not len(centred):
            return starts, keys, scaled
        own = self.keys[centred]
        at = np.minimum(np.searchsorted(own, keys.view(np.uint64)), len(own) - 1)
        dense = own[at] == keys.view(np.uint64)
        rows = len(starts) - 1
        row = np.repeat(np.arange(rows), np.diff(starts))
        zero = -(self.centres / self.scales)[centred].astype(values.dtype)
        cells = np.tile(zero, (rows, 1))
        cells[row[dense], at[dense]] = scaled[dense]
        rest = np.bincount(row[~dense], minlength=rows)  # values of each row in other columns
        begins = np.concatenate([[0], np.cumsum(rest + len(own))])
        new_keys, new = np.empty(begins[-1], np.int64), np.empty(begins[-1], values.dtype)
        place = begins[:-1, None] + np.arange(len(own))
        new_keys[place], new[place] = own.view(np.int64), cells
        before = np.concatenate([[0], np.cumsum(rest)])[:-1]
        others = row[~dense]
        place = begins[others] + len(own) + np.arange(len(others)) - before[others]
        new_keys[place], new[place] = keys[~dense], scaled[~dense]
        return begins, new_keys, new

    @classmethod
    def measured(cls, blocks: Iterable[Block], how: str, min_count: int = MIN_COUNT) -> Self:
        """Read all rows; return the scales of their columns.

        Parameters
        ----------
        blocks : iterable of Block
            With values of type float64.
        how : {"variance", "max", "standard"}
            "variance": the root mean square about zero, as `UnitVarianceScaler` computes it.
            "max": the largest absolute value. "standard": columns with values in at least half of
            the rows are centred and divided by their standard deviation, other columns as with
            "variance".
        min_count : int
            For the root mean square, features with fewer nonzeros count as if they had this many.
        """
        sums, rows = _Sums(), 0
        for block in blocks:
            rows += block.rows
            keys = np.asarray(block.native.keys).astype(np.int64).view(np.uint64)
            values = np.asarray(block.native.values, np.float64)
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                starts = np.asarray(block.native.starts)
                row = int(np.searchsorted(starts, bad[0], side="right")) - 1
                raise DataError(f"{block.place(row)}: a value is not finite")
            sums.add(keys[values != 0], values[values != 0])
        keys, facts = sums.result()
        counts, squares, largest = facts[:3]
        if how == "max":
            return cls(keys, largest, np.zeros(len(keys)))
        raised = np.maximum(counts, min(min_count, rows)) / max(rows - 1, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            scales = np.sqrt(squares / np.maximum(counts, 1) * raised)
        plain = np.isfinite(scales) & (squares > 0)  # otherwise squares are too large or too small
        scales = np.where(plain, scales, largest * np.sqrt(np.minimum(raised, 1.0)))
        centres = np.zeros(len(keys))
        if how == "standard":
            mean, sd = _moments(facts, rows)
            with np.errstate(invalid="ignore"):
                usual = np.isfinite(sd) & (sd > _CONSTANT * np.abs(mean))
            centred = usual & (2 * counts >= rows) & (mean != 0)
            scales, centres = np.where(centred, sd, scales), np.where(centred, mean, 0.0)
        return cls(keys, scales, centres)


def _moments(
    facts: NDArray[np.float64], rows: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the standard deviation of features over all rows, with zeros."""
    counts, _, _, first, sums, squares = facts
    with np.errstate(over="ignore", invalid="ignore"):
        mean = first + sums / counts  # of the nonzeros
        spread = np.maximum(squares - sums * sums / counts, 0.0)
        spread += counts * (rows - counts) / rows * mean * mean
        return mean * (counts / rows), np.sqrt(spread / rows)


class _Sums:
    """Sums over the nonzeros of each feature.

    The facts of a feature: number, sum of squares, and largest absolute value; then its first value
    and the sums of the differences from it and of their squares, which have enough digits even if
    the mean is much larger than the standard deviation.
    """

    def __init__(self) -> None:
        self.keys = np.zeros(0, np.uint64)
        self.facts = np.zeros((6, 0))
        self._dense = np.zeros((6, 0))  # of small feature numbers, by number
        self._new: list[tuple[NDArray[np.uint64], NDArray[np.float64]]] = []
        self._count = 0

    def add(self, keys: NDArray[np.uint64], values: NDArray[np.float64]) -> None:
        """Add values that are not zero."""
        width = int(keys.max(initial=0)) + 1
        if width > _DENSE:
            self._new.append((keys, values))
            self._count += len(keys)
            if self._count > max(_NEW, 3 * len(self.keys)):
                self._merge()
            return
        if width > self._dense.shape[1]:
            grown = max(width, min(_DENSE, 2 * self._dense.shape[1]))
            self._dense = np.pad(self._dense, ((0, 0), (0, grown - self._dense.shape[1])))
        facts, at = self._dense, keys.astype(np.intp)
        new = facts[0, at] == 0
        facts[3, at[new][::-1]] = values[new][::-1]  # of several, the first one stays
        with np.errstate(over="ignore"):
            apart = values - facts[3, at]
            facts[0, :width] += np.bincount(at, minlength=width)
            facts[1, :width] += np.bincount(at, values * values, width)
            facts[4, :width] += np.bincount(at, apart, width)
            facts[5, :width] += np.bincount(at, apart * apart, width)
        np.maximum.at(facts[2], at, np.abs(values))

    def _merge(self, *more: tuple[NDArray[np.uint64], NDArray[np.float64]]) -> None:
        keys = np.concatenate([self.keys[:0], *(keys for keys, _ in self._new)])
        values = np.concatenate([np.zeros(0), *(values for _, values in self._new)])
        one, none = np.ones(len(values)), np.zeros(len(values))
        with np.errstate(over="ignore"):
            new = np.stack([one, values * values, np.abs(values), values, none, none])
        parts = [(self.keys, self.facts), (keys, new), *more]
        all_keys = np.concatenate([keys for keys, _ in parts])
        found, place, at = np.unique(all_keys, return_index=True, return_inverse=True)
        facts = np.concatenate([facts for _, facts in parts], axis=1)
        first = facts[3, place]
        with np.errstate(over="ignore", invalid="ignore"):
            moved = facts[3] - first[at]
            facts[5] += 2 * moved * facts[4] + facts[0] * moved * moved
            facts[4] += facts[0] * moved
        joined = [np.bincount(at, facts[row], len(found)) for row in (0, 1, 4, 5)]
        largest = np.zeros(len(found))
        np.maximum.at(largest, at, facts[2])
        self.facts = np.stack([*joined[:2], largest, first, *joined[2:]])
        self.keys, self._new, self._count = found, [], 0

    def result(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return the features and their facts."""
        used = np.flatnonzero(self._dense[0])
        self._merge((used.astype(np.uint64), self._dense[:, used]))
        return self.keys, self.facts
