"""Parts of a model: records of training, features, and the weights of each output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Progress(NamedTuple):
    """A record of training.

    Attributes
    ----------
    examples : int
        Number of rows learned so far, over all passes.
    loss : float
        Mean progressive loss since the last record: the loss of each row before it was learned.
        For rules that need all rows at once, the objective after the pass.
    nonzeros : int or None
        Number of nonzero weights of all classes; None early in a stream with many features, when
        counting would take longer than learning.
    rate : float
        Learning rate of the last step; 0 if each coordinate has its own rate.
    seconds : float
        Training time so far.
    valid_loss : float or None
        Mean loss on the evaluation set; None if there is none, or within a pass.
    duality_gap : float or None
        Mean duality gap of the outputs, for Newton steps of coordinate descent. Model files do not
        keep it.
    """

    examples: int
    loss: float
    nonzeros: int | None
    rate: float
    seconds: float
    valid_loss: float | None = None
    duality_gap: float | None = None


OBJECTIVES = ("coordinate-descent", "hard-threshold")  # rules whose loss is the objective

_FEW = 0.25  # a record with a smaller share of the previous record's rows is merged


def runs_of(examples: Sequence[float]) -> list[slice]:
    """Return the slice of each run of records: classes trained one by one have one run each.

    Parameters
    ----------
    examples : sequence of float
        For each record, the number of rows learned so far; a run ends where it falls.

    Examples
    --------
    >>> from thresher.model.history import runs_of
    >>> runs_of([100, 200, 100, 200])
    [slice(0, 2, None), slice(2, 4, None)]
    """
    starts = (np.flatnonzero(np.diff(np.asarray(examples, float)) < 0) + 1).tolist()
    return [slice(*ends) for ends in pairwise([0, *starts, len(examples)])]


def merge_short_records(examples: Sequence[float], losses: Sequence[float]) -> NDArray[np.float64]:
    """Return losses for a chart: records of few rows are merged with a neighbour.

    The mean over a few rows, next to a mean over thousands, would be a random peak. Such a record
    is merged with the next one, the last with the previous one, into a weighted mean.

    Parameters
    ----------
    examples : sequence of float
        For each record, the number of rows learned so far.
    losses : sequence of float
        For each record, the mean loss since the last one.

    Returns
    -------
    array
        The losses; NaN where a record is merged with the next.

    Examples
    --------
    >>> from thresher.model.history import merge_short_records
    >>> merge_short_records([1000, 2000, 2010, 3000], [0.5, 0.4, 0.0, 0.3]).round(4).tolist()
    [0.5, 0.4, nan, 0.297]
    """
    found = np.full(len(examples), np.nan)
    for run in runs_of(examples):
        rows = np.diff(np.asarray(examples[run], float), prepend=0.0)
        merged: list[tuple[int, float, float]] = []  # last record, rows, sum of losses
        since, total = 0.0, 0.0
        for at, count in enumerate(rows.tolist(), run.start):
            since, total = since + count, total + count * losses[at]
            if not merged or since >= _FEW * merged[-1][1]:
                merged.append((at, since, total))
                since, total = 0.0, 0.0
        if since and merged:
            _, before, sums = merged.pop()
            merged.append((at, before + since, sums + total))
        for at, count, sums in merged:
            found[at] = sums / count if count else losses[at]
    return found


def least_valid_loss(history: Iterable[Progress]) -> float | None:
    """Return the smallest loss on validation rows: that of the pass whose weights were kept.

    Parameters
    ----------
    history : iterable of Progress
    """
    return min((r.valid_loss for r in history if r.valid_loss is not None), default=None)


class Feature(NamedTuple):
    """A feature and its weight; with several outputs, `label` is the class of the output."""

    name: str | int
    weight: float
    label: Any = None


class Output(NamedTuple):
    """The weights of one output: features in increasing order, their weights, an intercept."""

    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]
    intercept: float

    def largest(self, count: int | None) -> Output:
        """Return the output with only its `count` largest weights; among equal ones, the first."""
        if count is None or len(self.keys) <= count:
            return self
        kept = np.sort(np.argsort(-np.abs(self.weights), kind="stable")[:count])
        return Output(self.keys[kept], self.weights[kept], self.intercept)
