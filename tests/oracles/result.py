"""What every oracle returns."""

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

    ``predictions`` are the raw p of every step, made before that step's update; ``losses`` are
    the loss values at them, times the sample weights. The averages are None if not asked for.
    """

    weights: Vector
    intercept: float
    average_weights: Vector | None
    average_intercept: float | None
    predictions: list[float]
    losses: list[float]
    steps: int
