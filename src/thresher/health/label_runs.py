"""Runs of one label in the order of rows, and how likely they are in random order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from thresher import _core

_CHANCE = 1e-6  # probability of a false alarm in rows of random order
_SHORTEST = 30  # rows; shorter runs do no harm
_AGREEMENT = 0.25  # of neighbouring labels, beyond chance
SHARE = 0.1  # of all rows in one run


@dataclass(frozen=True)
class OrderAlarm:
    """What was seen in rows that are ordered by their labels.

    Attributes
    ----------
    text : str
        What was seen, with ``{label}`` in place of the label.
    code : int
        The code of that label; -1 in a regression.
    """

    text: str
    code: int = -1

    def worded(self, label: Any = None) -> str:
        """Return the text, with the label."""
        return self.text.format(label=label)


class ClassRuns:
    """Runs of equal class codes in a sequence of rows.

    Attributes
    ----------
    rows, runs : int
        Number of rows, and of runs.
    counts, longest, begins : lists of int
        For each code: its rows, its longest run, and the row where that begins.
    first, begun, last, length : int
        Code and length of the first run, and of the last run.

    Examples
    --------
    >>> runs = ClassRuns()
    >>> runs.add(np.repeat([1, 0], 50))
    >>> runs.rows, runs.runs, runs.counts.tolist(), runs.longest.tolist()
    (100, 2, [50, 50], [50, 50])
    >>> runs.alarm().worded("spam")
    "the rows are ordered by their labels: rows 1 to 50 of the first 100 have the label 'spam', ..."
    """

    def __init__(self) -> None:
        self.rows = self.runs = self.begun = self.length = 0
        self.first = self.last = -1
        self.counts, self.longest, self.begins = (np.zeros(0, np.int64) for _ in range(3))

    def add(self, codes: NDArray[np.integer[Any]]) -> None:
        """Add the codes of the rows that come next: whole numbers from 0."""
        if not len(codes):
            return
        part = ClassRuns()
        part.rows, part.first, part.last = len(codes), int(codes[0]), int(codes[-1])
        part.counts, part.longest, part.begins, part.runs, part.begun, part.length = (
            _core.class_runs(cast(Any, codes), int(codes.max()) + 1)
        )
        self.append(part)

    def append(self, other: ClassRuns) -> None:
        """Add the rows of another sequence with the same codes, which comes next."""
        if not other.rows:
            return
        size = max(len(self.counts), len(other.counts))
        self._widen(size)
        other._widen(size)
        longer = other.longest > self.longest
        self.longest = np.where(longer, other.longest, self.longest)
        self.begins = np.where(longer, other.begins + self.rows, self.begins)
        joined = other.first == self.last
        length, begin = self.length + other.begun, self.rows - self.length
        if joined and (length, -begin) > (self.longest[self.last], -self.begins[self.last]):
            self.longest[self.last], self.begins[self.last] = length, begin
        if self.runs == 0 or (self.runs == 1 and joined):
            self.first, self.begun = other.first, self.begun + other.begun
        whole = joined and other.runs == 1
        self.length = self.length + other.length if whole else other.length
        self.last, self.counts = other.last, self.counts + other.counts
        self.rows, self.runs = self.rows + other.rows, self.runs + other.runs - joined

    def recoded(self, codes: Sequence[int]) -> ClassRuns:
        """Return the same runs with other codes: code k becomes ``codes[k]``."""
        made, to = ClassRuns(), np.array([*codes, -1], np.int64)  # -1: there is no row
        made.state = self.state
        made._widen(int(to.max()) + 1)
        made.first, made.last = int(to[self.first]), int(to[self.last])
        at = to[: len(self.counts)]
        for name in ("counts", "longest", "begins"):
            moved = np.zeros(len(made.counts), np.int64)
            moved[at] = getattr(self, name)
            setattr(made, name, moved)
        return made

    def _widen(self, size: int) -> None:
        more = size - len(self.counts)
        if more > 0:
            self.counts, self.longest, self.begins = (
                np.concatenate([array, np.zeros(more, np.int64)])
                for array in (self.counts, self.longest, self.begins)
            )

    @property
    def agreement(self) -> float:
        """How often neighbours have the same label, from 0 (by chance) to 1 (always)."""
        n = self.rows
        if n < 2:
            return 0.0
        same = (n - self.runs) / (n - 1)
        chance = float((self.counts * (self.counts - 1.0)).sum()) / (n * (n - 1.0))
        return (same - chance) / (1 - chance) if chance < 1 else 0.0

    def log_chances(self) -> NDArray[np.float64]:
        """Return, for each code, the log of a bound of the chance of a run as long as its longest.

        The chance is that of the same labels in random order.
        """
        counts, longest = self.counts.astype(float), self.longest.astype(float)
        within = _log_choose(counts, longest) - _log_choose(np.float64(self.rows), longest)
        # A run begins at the first row, or after a row of another label.
        return np.asarray(within + np.log1p(self.rows - counts))

    def expected(self, code: int) -> float:
        """Return about how long the longest run of a code is in random order."""
        share = self.counts[code] / self.rows
        if share in (0.0, 1.0):
            return float(self.counts[code])
        starts = max(self.rows * (1 - share), 1.0)
        return float(min(self.counts[code], 1 + math.log(starts) / -math.log(share)))

    def alarm(self, share: float = SHARE) -> OrderAlarm | None:
        """Return what is wrong with the order, or None.

        Parameters
        ----------
        share : float
            A run of this share of all rows is too long, unless it is likely in random order.
        """
        seen = int(np.count_nonzero(self.counts))
        if seen < 2 or self.longest.max() < _SHORTEST:
            return None
        # Codes with few rows cannot have long runs: leave them out before computing chances.
        chances = np.where(self.longest >= _SHORTEST, self.log_chances(), 0.0)
        odd = np.flatnonzero(chances < math.log(_CHANCE / seen))
        if not len(odd):
            return None
        code = int(odd[np.lexsort((self.begins[odd], -self.longest[odd]))[0]])
        length, begin = int(self.longest[code]), int(self.begins[code])
        agreement = self.agreement
        if agreement < _AGREEMENT and length < share * self.rows:
            return None
        expected = max(1, round(self.expected(code)))
        return OrderAlarm(
            f"the rows are ordered by their labels: rows {begin + 1:,} to {begin + length:,} of "
            f"the first {self.rows:,} have the label {{label!r}}, and the longest run of shuffled "
            f"rows has about {expected:,} rows",
            code,
        )

    @property
    def state(self) -> dict[str, Any]:
        """Everything in types that JSON has."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }

    @state.setter
    def state(self, saved: Mapping[str, Any]) -> None:
        for name, value in saved.items():
            setattr(self, name, np.array(value, np.int64) if isinstance(value, list) else value)


def neighbour_z(
    rows: int, sums: NDArray[np.float64], squares: NDArray[np.float64], lags: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return z of the products of neighbouring labels, for each output; 0 if they do not vary.

    Parameters
    ----------
    rows : int
        Number of rows, at least 2.
    sums, squares, lags : arrays of shape (outputs,)
        Sums of the labels, of their squares, and of the products of neighbours.

    Examples
    --------
    >>> y = np.repeat([0.0, 1.0], 500)
    >>> neighbour_z(1000, *(np.array([s]) for s in (y.sum(), y @ y, y[1:] @ y[:-1]))).round(1)
    array([31.5])
    """
    mean = sums / rows
    spread = (squares / rows - mean**2) * math.sqrt(rows - 1)
    lag = lags - (rows - 1) * mean**2
    return np.divide(lag, spread, out=np.zeros(len(lag)), where=spread > 0)


def _log_choose(n: Any, k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of n! / (n - k)!."""
    return np.asarray(_lgamma(n + 1.0) - _lgamma(n - k + 1.0))


_lgamma = np.vectorize(math.lgamma, otypes=[float])
