"""The features of sparse rows: how many, how often, of which size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.row_folds import mixed
from thresher.overview.distinct import DistinctCount

__all__ = ["FeatureCounter", "FeatureFacts"]

_MOST_KEYS = 1 << 20  # features that are counted one by one
_DENSE = 1 << 22  # smaller feature numbers are counted in arrays
_TOP = 20
_FEW = 10  # a small feature with fewer values is not told: a few small values are common
_RATIO = 1e3  # as `thresher.health.dynamic_range`


@dataclass(frozen=True)
class FeatureFacts:
    """What is known of the features.

    Attributes
    ----------
    count : int
        Number of different features.
    count_exact : bool
    largest : int or None
        Largest feature number in the file, if features have numbers.
    nonzeros : int
        Values of all rows.
    per_row : float
        Mean number of values per row.
    least, most : int
        Smallest and largest number of values in a row.
    empty_rows : int
        Rows without values.
    minimum, maximum : float or None
        Smallest and largest value.
    all_ones : bool
        Whether all values are 1.
    not_finite : int
        Values that are infinite or not numbers.
    top : tuple of (feature, rows)
        The most frequent features.
    namespaces : tuple of (name, features, values)
        Namespaces of VW text.
    odd : tuple of (feature, ratio)
        Features whose largest value is far from that of the median feature.
    once : int or None
        Features that occur in one row only.
    """

    count: int = 0
    count_exact: bool = True
    largest: int | None = None
    nonzeros: int = 0
    per_row: float = 0.0
    least: int = 0
    most: int = 0
    empty_rows: int = 0
    minimum: float | None = None
    maximum: float | None = None
    all_ones: bool = False
    not_finite: int = 0
    top: tuple[tuple[str, int], ...] = ()
    namespaces: tuple[tuple[str, int, int], ...] = ()
    odd: tuple[tuple[str, float], ...] = ()
    once: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types."""
        found = asdict(self)
        for name in ("top", "namespaces", "odd"):
            found[name] = [list(item) for item in found[name]]
        return found


class FeatureCounter:
    """Counts the features of sparse rows.

    Parameters
    ----------
    first : int
        The number in the file of feature 0.
    named : bool
        Whether features are known by hashes of their names.

    Examples
    --------
    >>> counter = FeatureCounter(first=1)
    >>> hashes = counter.add(np.array([0, 2, 3]), np.array([0, 4, 4]), np.array([1.0, 2.0, 5.0]))
    >>> facts = counter.facts({})
    >>> facts.count, facts.top[0], facts.per_row
    (2, ('5', 2), 1.5)
    """

    def __init__(self, first: int = 0, named: bool = False) -> None:
        self.first, self.named = first, named
        self.rows = self.nonzeros = self.empty = self.not_finite = 0
        self.least, self.most = np.iinfo(np.int64).max, 0
        self.low, self.high = np.inf, -np.inf
        self.distinct = DistinctCount()
        self.whole = True  # whether all features are counted one by one
        self._keys = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._sizes = np.zeros(0)
        self._new: list[tuple[Any, Any, Any]] = []
        self._waiting = 0
        self._width = 0
        self._dense_counts, self._dense_sizes = np.zeros(0, np.int64), np.zeros(0)

    def add(
        self, starts: NDArray[Any], keys: NDArray[Any], values: NDArray[Any]
    ) -> NDArray[np.uint64]:
        """Add rows; return a hash of each."""
        keys = np.asarray(keys).astype(np.int64, copy=False).view(np.uint64)
        values = np.asarray(values, np.float64)
        starts = np.asarray(starts).astype(np.int64)
        lengths = np.diff(starts)
        self.rows += len(lengths)
        self.nonzeros += len(keys)
        if len(lengths):
            self.empty += int(np.count_nonzero(lengths == 0))
            self.least = min(self.least, int(lengths.min()))
            self.most = max(self.most, int(lengths.max()))
        finite = np.isfinite(values)
        self.not_finite += int(np.count_nonzero(~finite))
        if len(values):
            self.low = min(self.low, float(values[finite].min(initial=np.inf)))
            self.high = max(self.high, float(values[finite].max(initial=-np.inf)))
            if not self.named:
                self._width = max(self._width, int(keys.max()) + 1)
            self._count(keys, np.abs(np.where(finite, values, 0.0)))
        with np.errstate(over="ignore"):
            words = mixed(keys ^ mixed((values + 0.0).view(np.uint64)))
            sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
            return mixed(sums[starts[1:]] - sums[starts[:-1]])

    def _count(self, keys: NDArray[np.uint64], sizes: NDArray[np.float64]) -> None:
        if not self.named and int(keys.max()) < _DENSE:
            self._count_dense(keys.view(np.int64), sizes)
            return
        different, places = np.unique(keys, return_inverse=True)
        counts = np.bincount(places, minlength=len(different))
        largest = np.zeros(len(different))
        np.maximum.at(largest, places, sizes)
        self.distinct.add(mixed(different))
        self._new.append((different, counts, largest))
        self._waiting += len(different)
        if self._waiting > max(len(self._keys), 1 << 16):
            self._merge()

    def _count_dense(self, keys: NDArray[np.int64], sizes: NDArray[np.float64]) -> None:
        """Count small feature numbers in arrays: sorting takes ten times as long."""
        counts = np.bincount(keys)
        if len(counts) > len(self._dense_counts):
            more = max(len(counts), 2 * len(self._dense_counts)) - len(self._dense_counts)
            self._dense_counts = np.concatenate([self._dense_counts, np.zeros(more, np.int64)])
            self._dense_sizes = np.concatenate([self._dense_sizes, np.zeros(more)])
        self._dense_counts[: len(counts)] += counts
        np.maximum.at(self._dense_sizes, keys, sizes)

    def _merge(self) -> None:
        """Merge what is new; of too many features, keep the frequent ones."""
        if not self._new:
            return
        parts = [(self._keys, self._counts, self._sizes), *self._new]
        keys, places = np.unique(np.concatenate([p[0] for p in parts]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([p[1] for p in parts]), len(keys))
        sizes = np.zeros(len(keys))
        np.maximum.at(sizes, places, np.concatenate([p[2] for p in parts]))
        counts = counts.astype(np.int64)
        if len(keys) > _MOST_KEYS:
            self.whole = False
            kept = np.sort(np.argpartition(-counts, _MOST_KEYS // 2)[: _MOST_KEYS // 2])
            keys, counts, sizes = keys[kept], counts[kept], sizes[kept]
        self._keys, self._counts, self._sizes = keys, counts, sizes
        self._new, self._waiting = [], 0

    def facts(self, names: Mapping[int, str], columns: Sequence[str] | None = None) -> FeatureFacts:
        """Return the facts about all rows so far.

        Parameters
        ----------
        names : mapping of int to str
            Names of features, if they have names.
        columns : sequence of str, optional
            Names of the columns of a matrix.
        """
        seen = np.flatnonzero(self._dense_counts)
        if len(seen):
            self._new.append(
                (seen.astype(np.uint64), self._dense_counts[seen], self._dense_sizes[seen])
            )
            self.distinct.add(mixed(seen.astype(np.uint64)))
            self._dense_counts, self._dense_sizes = np.zeros(0, np.int64), np.zeros(0)
        self._merge()

        def named(key: int) -> str:
            if columns is not None and key < len(columns):
                return str(columns[key])
            return names.get(key) or str(key + (0 if self.named else self.first))

        order = np.argsort(-self._counts, kind="stable")[:_TOP]
        top = [(named(int(self._keys[at])), int(self._counts[at])) for at in order]
        some = self.nonzeros > self.not_finite
        return FeatureFacts(
            len(self._keys) if self.whole else self.distinct.count,
            self.whole or self.distinct.exact,
            None if self.named or not self._width else self._width - 1 + self.first,
            self.nonzeros,
            self.nonzeros / max(self.rows, 1),
            0 if not self.rows else int(self.least),
            self.most,
            self.empty,
            self.low if some else None,
            self.high if some else None,
            bool(some and self.low == self.high == 1.0),
            self.not_finite,
            tuple(top),
            self._namespaces(names),
            tuple((named(key), ratio) for key, ratio in self._odd()),
            int(np.count_nonzero(self._counts == 1)) if self.whole else None,
        )

    def _namespaces(self, names: Mapping[int, str]) -> tuple[tuple[str, int, int], ...]:
        found: dict[str, list[int]] = {}
        if not any("^" in name for name in names.values()):
            return ()
        for key, count in zip(self._keys.tolist(), self._counts.tolist(), strict=True):
            name = names.get(key)
            if name is not None:
                space = name.split("^", 1)[0] if "^" in name else ""
                sums = found.setdefault(space, [0, 0])
                sums[0] += 1
                sums[1] += count
        ordered = sorted(found.items(), key=lambda item: -item[1][1])
        return tuple((space, *sums) for space, sums in ordered)  # type: ignore[misc]

    def _odd(self) -> list[tuple[int, float]]:
        used = self._sizes > 0
        sizes, counts, keys = self._sizes[used], self._counts[used], self._keys[used]
        if len(sizes) < 2:
            return []
        ratio = sizes / float(np.sort(sizes)[(len(sizes) - 1) // 2])
        ratio[(ratio < 1) & (counts < _FEW)] = 1.0
        far = np.maximum(ratio, 1 / ratio)
        order = np.argsort(-far, kind="stable")[:_TOP]
        return [(int(keys[at]), float(ratio[at])) for at in order if far[at] >= _RATIO]
