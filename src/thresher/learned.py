"""What a model is made of: records of training, features, and what each output has learned."""

from __future__ import annotations

from collections.abc import Iterable
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
