"""Scores of rows with any number of labels, computed from sums over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Targets
from thresher.losses import LOSSES
from thresher.sums import dot

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrueSets:
    """The true labels of some rows.

    Attributes
    ----------
    starts : array of int64
        Row r has the labels ``numbers[starts[r]:starts[r + 1]]``.
    numbers : array of int
        The number of the output of each label; -1: the model does not know the label.
    loss : str
        The loss of the model; `ScoreTally` sets it.
    """

    starts: NDArray[np.int64]
    numbers: NDArray[np.integer[Any]]
    loss: str = ""

    @classmethod
    def of(cls, targets: Targets) -> Self:
        """Return the labels of targets with several outputs."""
        assert targets.starts is not None
        assert targets.numbers is not None
        return cls(np.asarray(targets.starts), np.asarray(targets.numbers))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Any) -> TrueSets:
        """Return some rows."""
        chosen = np.arange(len(self))[rows]
        sizes = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[chosen] - starts[:-1], sizes) + np.arange(starts[-1])
        return TrueSets(starts, self.numbers[places], self.loss)

    def cells(self) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Return the row and the output of each known label."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.starts))
        known = self.numbers >= 0
        return rows[known], self.numbers[known]


def _predicted(raw: Floats, true: TrueSets) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which labels are predicted, and the number of correct ones of each row."""
    found = raw >= (LOSSES[true.loss].decision_at or 0.0)
    rows, outputs = true.cells()
    hits = np.bincount(rows, found[rows, outputs], len(true)).astype(np.intp)
    return found, hits


def exact_terms(raw: Floats, true: TrueSets, w: Floats, _: int) -> list[Any]:
    """Return sums for the share of rows whose labels are exactly right."""
    found, hits = _predicted(raw, true)
    right = (hits == np.diff(true.starts)) & (hits == found.sum(axis=1))
    return [w[right].sum(), w.sum()]


def f1_terms(raw: Floats, true: TrueSets, w: Floats, _: int) -> list[Any]:
    """Return sums for micro-F1: correct labels, predicted labels and true labels."""
    found, hits = _predicted(raw, true)
    return [dot(w, hits), dot(w, found.sum(axis=1)), dot(w, np.diff(true.starts))]


def f1_micro(sums: Any) -> Any:
    """Return micro-F1: the harmonic mean of precision and recall over all rows and labels."""
    hits, found, true = sums
    return 2 * hits / (found + true) if found + true > 0 else 0.0


def loss_terms(raw: Floats, true: TrueSets, w: Floats, _: int) -> list[Any]:
    """Return sums for minus the mean loss over rows and outputs."""
    low, outputs = LOSSES[true.loss].low, raw.shape[1]
    rows, numbers = true.cells()
    own = raw[rows, numbers]
    sums = _losses(true.loss, raw.ravel(), low).reshape(raw.shape).sum(axis=1)
    sums += np.bincount(
        rows, _losses(true.loss, own, 1.0) - _losses(true.loss, own, low), len(true)
    )
    return [-dot(w, sums), w.sum() * outputs]


def _losses(loss: str, raw: Floats, target: float) -> Floats:
    raw = np.ascontiguousarray(raw)  # no loss of a classifier has an epsilon or a quantile
    return _core.loss_values(loss, 0.0, 0.5, raw, np.full(len(raw), target))[0]
