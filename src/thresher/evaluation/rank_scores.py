"""Scores of rows, for metrics of a ranking: all of them while they fit, then a sketch.

The sketch counts rows in bins of scores. The bins are made once, from the scores that were kept:
half of their borders divide these rows evenly, and half are on a grid over all numbers, so that
later rows with other scores find bins too. The order of rows inside of a bin is lost. So a metric
of the ranking has an error, and its largest possible value follows from the counts in the bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.evaluation.bootstrap import CHUNK, CellSums, PoissonCounts
from thresher.evaluation.curves import Curve

Floats = NDArray[np.float64]

EXACT = 1 << 22  # scores that are kept by default
_BINS, _FEWEST = 1 << 17, 256  # bins of all columns together, and of each column
_COARSE = 1024  # bins of a column in the bootstrap
_USEFUL = 32  # fewer bins in the bootstrap are not enough
_CELLS = 1 << 23  # numbers in the sums of the bootstrap: 64 MiB
_BATCH = 1 << 18  # scores that a sketch counts at once


class RankScores:
    """Scores of rows in one or more columns, each of which ranks the rows.

    With one column the rows of class 1 are positive; with several, column k has the positive rows
    of class k.

    Parameters
    ----------
    columns : int
    most : int
        Scores that are kept, over all columns.
    counts : PoissonCounts or None
        The bootstrap.

    Attributes
    ----------
    exact : bool
        Whether all scores are kept.
    """

    def __init__(self, columns: int, most: int, counts: PoissonCounts | None) -> None:
        self.columns, self.most, self.counts = columns, most, counts
        self.rows = 0
        self._kept: list[tuple[Floats, NDArray[Any], Floats | None, NDArray[Any]]] = []
        self._sketch: _Sketch | None = None

    @property
    def exact(self) -> bool:
        """Whether all scores are kept."""
        return self._sketch is None

    def add(
        self,
        scores: Floats,
        classes: NDArray[np.intp],
        weights: Floats | None,
        numbers: NDArray[Any],
        counts: Floats | None,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        scores : array of shape (rows, columns)
        classes : array of int
        weights : array or None
        numbers : array of int
            Numbers of the rows.
        counts : array of shape (rows, replicates), or None
        """
        self.rows += len(scores)
        if self._sketch is not None:
            self._sketch.add(scores, classes, weights, counts)
            return
        small = classes.astype(np.int8 if self.columns < 128 else np.int32)
        wide = np.uint32 if not len(numbers) or numbers[-1] < 1 << 32 else np.uint64
        self._kept.append((scores, small, weights, numbers.astype(wide)))
        if self.rows * self.columns > self.most:
            self._make_sketch()

    def _make_sketch(self) -> None:
        scores, classes, weights, numbers = self.kept()
        self._kept = []
        self._sketch = _Sketch(scores, self.counts)
        for start in range(0, len(scores), CHUNK):
            part = slice(start, start + CHUNK)
            own = None if weights is None else weights[part]
            counts = None if self.counts is None else self.counts.of(numbers[part])
            self._sketch.add(scores[part], classes[part], own, counts)

    def kept(self) -> tuple[Floats, NDArray[Any], Floats | None, NDArray[Any]]:
        """Return all rows, if they are kept: scores, classes, weights and numbers."""
        if not self._kept:
            none = np.zeros(0, np.intp)
            return np.zeros((0, self.columns)), none, None, none
        if len(self._kept) > 1:
            scores, classes, weights, numbers = zip(*self._kept, strict=True)
            joined = None
            if any(one is not None for one in weights):
                joined = np.concatenate(
                    [
                        np.ones(len(own)) if one is None else one
                        for own, one in zip(scores, weights, strict=True)
                    ]
                )
            parts = np.concatenate(scores), np.concatenate(classes), joined
            self._kept = [(*parts, np.concatenate(numbers))]
        return self._kept[0]

    def curve(self, column: int) -> Curve:
        """Return the curve of a column."""
        if self._sketch is not None:
            return self._sketch.curve(column)
        scores, classes, weights, _ = self.kept()
        return Curve.of(scores[:, column], self._positive(classes, column), weights)

    def curves_of_replicates(self) -> Iterator[tuple[int, Curve, Curve]]:
        """Yield for each column its number, a coarse curve, and the curves of the replicates.

        Scores near to each other are in one group: at most 1,024 groups of about the same number
        of rows. Yields nothing without a bootstrap, or if it would need too much memory.
        """
        if self.counts is None or self.rows == 0:
            return
        if self._sketch is not None:
            yield from self._sketch.curves_of_replicates()
            return
        scores, classes, weights, numbers = self.kept()
        each = max(1, _CELLS // (2 * _COARSE * self.counts.replicates))
        for first in range(0, self.columns, each):
            columns = range(first, min(first + each, self.columns))
            edges = [_even_edges(scores[:, k], _COARSE) for k in columns]
            sums = _BinSums(columns, [len(one) + 1 for one in edges], self.counts)
            for start in range(0, len(scores), CHUNK):
                part = slice(start, start + CHUNK)
                bins = [
                    np.searchsorted(one, scores[part, k], side="right")
                    for k, one in zip(columns, edges, strict=True)
                ]
                hits = [self._positive(classes[part], k) for k in columns]
                own = None if weights is None else weights[part]
                sums.add(bins, hits, own, self.counts.of(numbers[part]))
            yield from sums.curves()

    def _positive(self, classes: NDArray[Any], column: int) -> NDArray[np.bool_]:
        return np.asarray(classes == (1 if self.columns == 1 else column))


def _even_edges(scores: Floats, bins: int) -> Floats:
    """Return borders of bins with about the same number of rows; each begins with its border."""
    ordered = np.sort(scores)  # np.quantile takes seconds for many quantiles
    return np.unique(ordered[np.arange(1, bins) * len(ordered) // bins])


def _grid(scores: Floats, count: int) -> Floats:
    """Return numbers over the whole line, most of them where the scores are."""
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75])
    share = np.arange(1, count + 1) / (count + 1)
    return np.asarray(middle + max((high - low) / 2.2, 1e-9) * np.log(share / (1 - share)))


class _BinSums:
    """Sums of the bootstrap in bins of scores, for some columns."""

    def __init__(self, columns: range, bins: list[int], counts: PoissonCounts) -> None:
        self.columns = columns
        self.starts = np.append(0, np.cumsum(np.array(bins) * 2))
        self.sums = CellSums(int(self.starts[-1]), counts)

    def add(
        self,
        bins: list[NDArray[np.intp]],
        hits: list[NDArray[np.bool_]],
        weights: Floats | None,
        counts: Floats,
    ) -> None:
        """Add rows: their bins, and whether they are positive, in each column."""
        rows = np.arange(len(counts))
        own = np.ones(len(rows)) if weights is None else weights
        cells = [
            start + 2 * one + hit
            for start, one, hit in zip(self.starts[:-1], bins, hits, strict=True)
        ]
        many = len(cells)
        self.sums.add(np.tile(rows, many), np.concatenate(cells), np.tile(own, many), counts)

    def curves(self) -> Iterator[tuple[int, Curve, Curve]]:
        """Yield the columns, each with the curve of the rows and those of the replicates."""
        assert self.sums.replicates is not None
        for at, column in enumerate(self.columns):
            cells = slice(self.starts[at], self.starts[at + 1])
            yield (
                column,
                _falling(self.sums.total[cells].astype(np.float64)),
                _falling(self.sums.replicates[cells]),
            )


def _falling(cells: Floats) -> Curve:
    """Return the curve of cells: a negative and a positive one for each bin, from low to high."""
    misses, hits = cells[0::2][::-1], cells[1::2][::-1]
    return Curve(np.zeros(len(hits)), np.cumsum(hits, axis=0), np.cumsum(misses, axis=0))


class _Sketch:
    """Counts of rows in bins of scores."""

    def __init__(self, scores: Floats, counts: PoissonCounts | None) -> None:
        self.columns = scores.shape[1]
        bins = max(_BINS // self.columns, _FEWEST)
        self.edges = [
            np.unique(np.append(_even_edges(own, bins // 2), _grid(own, bins // 2)))
            for own in scores.T
        ]
        # For each column: weights of positive and negative rows, smallest and largest score.
        self.bins = [
            np.repeat([[0.0], [0.0], [np.inf], [-np.inf]], len(edges) + 1, axis=1)
            for edges in self.edges
        ]
        self._waiting: list[tuple[Floats, NDArray[Any], Floats]] = []
        self._rows = 0  # that wait
        self.sums: _BinSums | None = None
        coarse = 0
        if counts is not None:
            coarse = min(_COARSE, _CELLS // (2 * self.columns * counts.replicates))
        if counts is not None and coarse >= _USEFUL:
            self.coarse = [_even_edges(own, coarse) for own in scores.T]
            sizes = [len(edges) + 1 for edges in self.coarse]
            self.sums = _BinSums(range(self.columns), sizes, counts)

    def add(
        self,
        scores: Floats,
        classes: NDArray[Any],
        weights: Floats | None,
        counts: Floats | None,
    ) -> None:
        """Add rows."""
        self._waiting.append(
            (scores, classes, np.ones(len(scores)) if weights is None else weights)
        )
        self._rows += len(scores)
        if self._rows * self.columns >= _BATCH:
            self._count()
        if self.sums is not None and counts is not None:
            coarse = [
                np.searchsorted(edges, scores[:, k], side="right")
                for k, edges in enumerate(self.coarse)
            ]
            hits = [self._positive(classes, k) for k in range(self.columns)]
            self.sums.add(coarse, hits, weights, counts)

    def _count(self) -> None:
        """Count the rows that wait."""
        if not self._waiting:
            return
        parts = zip(*self._waiting, strict=True)
        scores, classes, weights = (np.concatenate(part) for part in parts)
        self._waiting, self._rows = [], 0
        for k, (edges, bins) in enumerate(zip(self.edges, self.bins, strict=True)):
            order = np.argsort(scores[:, k], kind="stable")
            own, hit, w = scores[order, k], self._positive(classes[order], k), weights[order]
            at = np.searchsorted(edges, own, side="right")
            bins[0] += np.bincount(at, np.where(hit, w, 0.0), len(edges) + 1)
            bins[1] += np.bincount(at, np.where(hit, 0.0, w), len(edges) + 1)
            ends = np.append(np.flatnonzero(at[1:] != at[:-1]), len(at) - 1)
            firsts = np.append(0, ends[:-1] + 1)
            bins[2, at[ends]] = np.minimum(bins[2, at[ends]], own[firsts])
            bins[3, at[ends]] = np.maximum(bins[3, at[ends]], own[ends])

    def _positive(self, classes: NDArray[Any], column: int) -> NDArray[np.bool_]:
        return np.asarray(classes == (1 if self.columns == 1 else column))

    def curve(self, column: int) -> Curve:
        """Return the curve of a column, from the largest scores; a threshold begins its bin."""
        self._count()
        bins = self.bins[column]
        hits, misses, low, high = bins[:, bins[2] <= bins[3]][:, ::-1]
        return Curve(low, np.cumsum(hits), np.cumsum(misses), low < high)

    def curves_of_replicates(self) -> Iterator[tuple[int, Curve, Curve]]:
        """Yield the columns, each with a coarse curve and those of the replicates."""
        if self.sums is not None:
            yield from self.sums.curves()
