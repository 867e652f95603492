"""Drift of the mean of the labels over the rows of a regression."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.health.label_runs import OrderAlarm

_CHUNKS = 64  # at most
_CHUNK = 16  # rows of a chunk, at first
_DRIFT = 0.5  # share of the variance of the labels that lies between chunks


class MeanDrift:
    """Means of the labels of consecutive chunks of rows.

    Chunks have equal numbers of rows. When there are too many, each two become one.

    Attributes
    ----------
    rows, size : int
        Number of rows, and of rows in a chunk.
    sums : list of float
        For each whole chunk: the sum of the labels, minus the first label.

    Examples
    --------
    >>> drift = MeanDrift()
    >>> drift.add(np.arange(1000.0))
    >>> round(drift.share, 2)
    1.0
    """

    def __init__(self) -> None:
        self.rows, self.size, self.origin = 0, _CHUNK, 0.0
        self.sums: list[float] = []
        self.partial, self.filled = 0.0, 0  # sum and rows of the chunk that is not whole yet
        self.squares, self.total = 0.0, 0.0  # of the rows in whole chunks
        self.next_squares = 0.0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add the labels of the rows that come next."""
        if not len(values):
            return
        if not self.rows:
            self.origin = float(values[0])
        with np.errstate(over="ignore", invalid="ignore"):
            values = values - self.origin
            at = 0
            while at < len(values):
                piece = values[at : at + self.size - self.filled]
                # Added one after the other: the sums do not depend on the sizes of blocks.
                self.partial = _running(self.partial, piece)
                self.next_squares = _running(self.next_squares, piece * piece)
                self.filled, at = self.filled + len(piece), at + len(piece)
                if self.filled == self.size:
                    self._close()
        self.rows += len(values)

    def _close(self) -> None:
        self.sums.append(self.partial)
        self.squares += self.next_squares
        self.partial, self.next_squares, self.filled = 0.0, 0.0, 0
        if len(self.sums) == _CHUNKS:
            self.sums = [a + b for a, b in zip(self.sums[::2], self.sums[1::2], strict=True)]
            self.size *= 2

    @property
    def share(self) -> float:
        """Share of the variance of the labels that lies between chunks."""
        rows = len(self.sums) * self.size
        if rows == 0:
            return 0.0
        with np.errstate(all="ignore"):
            sums = np.array(self.sums)
            middle = sums.sum() ** 2 / rows
            between, total = (sums**2).sum() / self.size - middle, self.squares - middle
            share = float(between / total) if total > 0 else 0.0
        return share if math.isfinite(share) else 0.0

    def alarm(self) -> OrderAlarm | None:
        """Return what is wrong with the order, or None."""
        chunks = len(self.sums)
        if chunks < _CHUNKS // 2 or self.share < _DRIFT:
            return None
        means = np.array(self.sums) / self.size + self.origin
        low, high = int(means.argmin()), int(means.argmax())
        expected = (chunks - 1) / (chunks * self.size - 1)
        return OrderAlarm(
            f"the rows are ordered by their labels: the mean label is {means[low]:.4g} in rows "
            f"{self._rows(low)} and {means[high]:.4g} in rows {self._rows(high)} of the first "
            f"{self.rows:,}; the order explains {self.share:.0%} of the variance of the labels, "
            f"and about {expected:.1%} in shuffled rows"
        )

    def _rows(self, chunk: int) -> str:
        return f"{chunk * self.size + 1:,} to {(chunk + 1) * self.size:,}"

    @property
    def state(self) -> dict[str, Any]:
        """Everything in types that JSON has."""
        return dict(vars(self))

    @state.setter
    def state(self, saved: Mapping[str, Any]) -> None:
        vars(self).update(saved)


def between_parts(parts: Sequence[MeanDrift]) -> OrderAlarm | None:
    """Return an alarm if parts of the rows differ in the mean of their labels; else None.

    Parameters
    ----------
    parts : sequence of MeanDrift
    """
    whole = [part for part in parts if part.sums]
    rows = np.array([len(part.sums) * part.size for part in whole], np.float64)
    if len(whole) < 2 or rows.sum() < _CHUNK * _CHUNKS // 2:
        return None
    with np.errstate(all="ignore"):
        means = np.array([sum(p.sums) / n + p.origin for p, n in zip(whole, rows, strict=True)])
        within = sum(
            p.squares - sum(p.sums) ** 2 / n for p, n in zip(whole, rows.tolist(), strict=True)
        )
        mean = (rows @ means) / rows.sum()
        between = float(rows @ (means - mean) ** 2)
        share = between / (between + within) if between + within > 0 else 0.0
    if not share >= _DRIFT:  # also if it is not a number
        return None
    return OrderAlarm(
        f"the rows are ordered by their labels: the mean label is {means.min():.4g} in one part of "
        f"the rows and {means.max():.4g} in another; the parts explain {share:.0%} of the variance "
        f"of the labels"
    )


def _running(total: float, values: NDArray[np.float64]) -> float:
    """Return the total after all values were added to it, one after the other."""
    return float(np.add.accumulate(np.concatenate([[total], values]))[-1])
