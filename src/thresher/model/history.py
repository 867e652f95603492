"""What a model is made of: records of training, features, and what each output has learned."""

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
        Rows learned from so far, over all passes.
    loss : float
        Mean progressive loss since the record before: each row's loss before it was learned. Rules
        that see all rows at once give the objective after the pass.
    nonzeros : int or None
        Weights that are not zero, of all classes together; None early in a stream of many
        features, where counting would cost more than learning.
    rate : float
        Learning rate of the last step; 0 where each coordinate has its own.
    seconds : float
        Time spent in training so far.
    valid_loss : float or None
        Mean loss on the evaluation set, where there is one and a pass has ended.
    """

    examples: int
    loss: float
    nonzeros: int | None
    rate: float
    seconds: float
    valid_loss: float | None = None


OBJECTIVES = ("coordinate-descent", "hard-threshold")  # rules that give the objective as loss

_FEW = 0.25  # of the rows of the record before: fewer are no record of their own


def runs_of(examples: Sequence[float]) -> list[slice]:
    """Return where each run of records is: classes learned one by one have one each.

    Parameters
    ----------
    examples : sequence of float
        Rows learned from so far, of each record; a run ends where the next has fewer.

    Examples
    --------
    >>> from thresher.model.history import runs_of
    >>> runs_of([100, 200, 100, 200])
    [slice(0, 2, None), slice(2, 4, None)]
    """
    starts = (np.flatnonzero(np.diff(np.asarray(examples, float)) < 0) + 1).tolist()
    return [slice(*ends) for ends in pairwise([0, *starts, len(examples)])]


def evened(examples: Sequence[float], losses: Sequence[float]) -> NDArray[np.float64]:
    """Return losses to be drawn: a record of few rows is one with its neighbour.

    The mean over a few rows, beside one over thousands, would be a peak or a dip that says nothing.
    Such a record goes with the one after it, the last with those before, at the weighted mean of
    both.

    Parameters
    ----------
    examples : sequence of float
        Rows learned from so far, of each record.
    losses : sequence of float
        Means over the rows since the record before.

    Returns
    -------
    array
        The losses; NaN where a record is one with the next.

    Examples
    --------
    >>> from thresher.model.history import evened
    >>> evened([1000, 2000, 2010, 3000], [0.5, 0.4, 0.0, 0.3]).round(4).tolist()
    [0.5, 0.4, nan, 0.297]
    """
    found = np.full(len(examples), np.nan)
    for run in runs_of(examples):
        rows = np.diff(np.asarray(examples[run], float), prepend=0.0)
        there: list[tuple[int, float, float]] = []  # the last record, rows, their loss in all
        since, total = 0.0, 0.0
        for at, count in enumerate(rows.tolist(), run.start):
            since, total = since + count, total + count * losses[at]
            if not there or since >= _FEW * there[-1][1]:
                there.append((at, since, total))
                since, total = 0.0, 0.0
        if since and there:
            _, before, sums = there.pop()
            there.append((at, before + since, sums + total))
        for at, count, sums in there:
            found[at] = sums / count if count else losses[at]
    return found


def least_valid_loss(history: Iterable[Progress]) -> float | None:
    """Return the least loss on validation rows, which is that of the pass that was kept.

    Parameters
    ----------
    history : iterable of Progress
    """
    return min((r.valid_loss for r in history if r.valid_loss is not None), default=None)


class Feature(NamedTuple):
    """A feature and its weight; `label` is the class it speaks for, where there are several."""

    name: str | int
    weight: float
    label: Any = None


class Output(NamedTuple):
    """What one output has learned: features in increasing order, their weights, an intercept."""

    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]
    intercept: float

    def largest(self, count: int | None) -> Output:
        """Return the output with so many weights at most, of equal ones the first."""
        if count is None or len(self.keys) <= count:
            return self
        kept = np.sort(np.argsort(-np.abs(self.weights), kind="stable")[:count])
        return Output(self.keys[kept], self.weights[kept], self.intercept)
