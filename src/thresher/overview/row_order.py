"""The order of rows: runs of one label, and drift of a label that is a number.

Neighbouring rows of shuffled data have the same label as often as any two rows. `similarity` is 0
then; it is 1 if rows with the same label stand together. Whether rows are ordered is decided as in
training, by `thresher.health.label_order`. Training does not watch sets of labels; their limits are
those of the checks of discovery: 4 standard errors, and 0.05.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.health.label_order import LabelOrder
from thresher.health.label_runs import ClassRuns, OrderAlarm

__all__ = ["ClassOrder", "NumberOrder", "OrderFacts", "SetOrder"]

_FAR, _LEAST = 4.0, 0.05
_BUCKETS = 60  # points of the chart, at most
_DRAWN_CLASSES = 64  # classes whose shares are kept for the chart


@dataclass(frozen=True)
class OrderFacts:
    """The order of the rows that were read.

    Attributes
    ----------
    similarity : float
        0: neighbouring rows are as similar as any two; 1: rows with the same label stand together.
    z : float
        Similarity in standard errors of shuffled rows.
    ordered : bool
        Whether the order is far from that of shuffled rows.
    runs, expected_runs : int or None
        Number of runs of one label, and what is expected of shuffled rows.
    longest_run, expected_longest_run : int or None
        Rows of the longest run, and what is expected of shuffled rows.
    longest_run_label : object
        The label of that run.
    drift : float or None
        Correlation of a label that is a number with the number of the row.
    series : list
        Pairs of row number and mean of the label; for classes, the share of the class `series_of`.
    series_of : object
    """

    similarity: float
    z: float
    ordered: bool
    runs: int | None = None
    expected_runs: int | None = None
    longest_run: int | None = None
    expected_longest_run: int | None = None
    longest_run_label: Any = None
    drift: float | None = None
    series: tuple[tuple[int, float], ...] = ()
    series_of: Any = None

    @property
    def longest_run_text(self) -> str:
        """The rows of the longest run, in words."""
        return "1 row" if self.longest_run == 1 else f"{self.longest_run:,} rows"

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types."""
        return {**asdict(self), "series": [list(point) for point in self.series]}


class _Buckets:
    """Sums over consecutive rows, in at most `_BUCKETS` buckets of equal size.

    Parameters
    ----------
    summed : callable
        Returns the sum of some values; sums can be added by +.
    """

    def __init__(self, summed: Callable[[NDArray[Any]], Any]) -> None:
        self.summed = summed
        self.size = 1
        self.sums: list[Any] = []
        self.rows: list[int] = []

    def add(self, values: NDArray[Any]) -> None:
        """Add the values of the next rows."""
        at = 0
        while at < len(values):
            if not self.rows or self.rows[-1] >= self.size:
                if len(self.rows) == _BUCKETS:
                    self._halve()
                self.sums.append(0)
                self.rows.append(0)
            piece = values[at : at + self.size - self.rows[-1]]
            self.sums[-1] = self.sums[-1] + self.summed(piece)
            self.rows[-1] += len(piece)
            at += len(piece)

    def _halve(self) -> None:
        self.sums = [a + b for a, b in zip(self.sums[::2], self.sums[1::2], strict=True)]
        self.rows = [a + b for a, b in zip(self.rows[::2], self.rows[1::2], strict=True)]
        self.size *= 2

    def means(self, at: int | None = None) -> tuple[tuple[int, float], ...]:
        """Return the middle row of each bucket and its mean; `at` selects one of several sums."""
        found, begin = [], 0
        for total, rows in zip(self.sums, self.rows, strict=True):
            value = float(total if at is None else total[at]) / rows
            found.append((begin + rows // 2, value))
            begin += rows
        return tuple(found)


class ClassOrder:
    """The order of labels that are classes, one per row, given as numbers 0, 1, ...

    Examples
    --------
    >>> order = ClassOrder()
    >>> order.add(np.repeat([0, 1], 500))
    >>> found = order.facts(["no", "yes"])
    >>> found.ordered, found.longest_run, found.expected_longest_run, found.runs
    (True, 500, 10, 2)
    """

    def __init__(self) -> None:
        self._runs, self._watch = ClassRuns(), LabelOrder(classes=True)
        self._alarm: OrderAlarm | None = None
        self._buckets = _Buckets(_few_counted)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each class."""
        return self._runs.counts

    def add(self, codes: NDArray[np.int64]) -> None:
        """Add the next rows; rows without label are left out."""
        self._runs.add(codes)
        self._alarm = self._alarm or self._watch.see(codes)
        self._buckets.add(codes)

    def facts(self, names: Sequence[Any]) -> OrderFacts | None:
        """Return the facts, with the label of each number; None if there are too few rows."""
        runs, n = self._runs, self._runs.rows
        if n < 2:
            return None
        self._alarm = self._alarm or self._watch.conclude()
        shares = runs.counts / n
        expected = 1 + (n - 1) * (1 - float(shares @ shares))
        longest = int(np.lexsort((runs.begins, -runs.longest))[0])  # of equal ones, the first
        drawn = int(runs.counts[:_DRAWN_CLASSES].argmax())
        return OrderFacts(
            runs.agreement,
            runs.agreement * math.sqrt(n),
            self._alarm is not None,
            runs.runs,
            round(expected),
            int(runs.longest[longest]),
            max(1, round(runs.expected(longest))),
            names[longest],
            series=self._buckets.means(drawn),
            series_of=names[drawn],
        )


def _few_counted(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(codes[codes < _DRAWN_CLASSES], minlength=_DRAWN_CLASSES)


class SetOrder:
    """The order of rows that have any number of labels each.

    Examples
    --------
    >>> order = SetOrder()
    >>> order.add([{"a"}] * 300 + [{"b"}] * 300)
    >>> order.facts().ordered
    True
    """

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self._both: Counter[Any] = Counter()
        self._last: set[Any] = set()
        self._rows = 0

    def add(self, sets: Sequence[set[Any]]) -> None:
        """Add the labels of the next rows."""
        for own in sets:
            self.counts.update(own)
            self._both.update(own & self._last)
            self._last = own
        self._rows += len(sets)

    def add_counts(self, counts: Mapping[Any, int], rows: int) -> None:
        """Add rows whose order is not known."""
        self.counts.update(counts)
        self._rows += rows

    def facts(self) -> OrderFacts | None:
        """Return the facts of all labels together: most are too rare to tell something alone."""
        n, pairs = self._rows, sum(self._both.values())
        if n < 2:
            return None
        expected = sum(count * count for count in self.counts.values()) / n
        possible = sum(self.counts.values()) - expected
        similarity = (pairs - expected) / possible if possible > 0 else 0.0
        z = (pairs - expected) / math.sqrt(expected + 1)
        ordered = similarity >= _LEAST and z >= _FAR
        return OrderFacts(similarity, z, ordered)


class NumberOrder:
    """The order of labels that are numbers: similar neighbours, and drift.

    Examples
    --------
    >>> order = NumberOrder()
    >>> order.add(np.arange(1000.0))
    >>> found = order.facts()
    >>> found.ordered, round(found.drift, 3)
    (True, 1.0)
    """

    def __init__(self) -> None:
        self._rows, self._origin, self._last = 0, 0.0, 0.0
        self._sums = np.zeros(4)  # of y, y^2, y times the row number, y times the next y
        self._watch = LabelOrder(classes=False)
        self._alarm: OrderAlarm | None = None
        self._buckets = _Buckets(np.sum)

    def add(self, values: NDArray[np.float64]) -> None:
        """Add the labels of the next rows; rows without label are left out."""
        values = values[np.isfinite(values)]
        if not len(values):
            return
        if not self._rows:
            self._origin = float(values[0])
        self._buckets.add(values)
        self._alarm = self._alarm or self._watch.see(values)
        y = values - self._origin
        before = np.concatenate([[self._last], y[:-1]])
        at = np.arange(self._rows, self._rows + len(y))
        self._sums += [y.sum(), y @ y, y @ at, y @ before]
        self._rows, self._last = self._rows + len(y), float(y[-1])

    def facts(self) -> OrderFacts | None:
        """Return the facts; None if there are too few rows or all labels are equal."""
        n, (total, squares, moved, lagged) = self._rows, self._sums.tolist()
        mean = total / max(n, 1)
        variance = squares / max(n, 1) - mean**2
        if n < 3 or variance <= 1e-12 * max(squares / n, 1e-300):
            return None
        self._alarm = self._alarm or self._watch.conclude()
        similarity = max(min((lagged / (n - 1) - mean**2) / variance, 1.0), -1.0)
        drift = (moved / n - mean * (n - 1) / 2) / math.sqrt(variance * (n * n - 1) / 12)
        drift = max(min(drift, 1.0), -1.0)
        return OrderFacts(
            similarity,
            similarity * math.sqrt(n),
            self._alarm is not None,
            drift=drift,
            series=self._buckets.means(),
        )
