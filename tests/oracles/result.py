"""The result of an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Vector = NDArray[Any]
Matrix = NDArray[Any]
Order = Sequence[Sequence[int] | NDArray[Any]]
"""The row numbers of each pass, in the order in which they are learned from."""


@dataclass(frozen=True)
class Result:
    """A trained model and the record of its training.

    ``predictions`` are the raw p of every step, before the update of that step; ``losses`` are the
    loss values at them, times the sample weights. Averages are None if they were not requested.
    """

    weights: Vector
    intercept: float
    average_weights: Vector | None
    average_intercept: float | None
    predictions: list[float]
    losses: list[float]
    steps: int
