"""Messages, questions and replies of the mode "average"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.messages import Message, Question

# For each output: the keys of its features, and one row of numbers for each feature.
RangeModel = list[tuple[NDArray[np.uint64], NDArray[np.float64]]]


@dataclass(frozen=True)
class RoundReply:
    """What a part learned in a round: rows, losses, weights of rows, intercepts, updates.

    `losses` and `weights` are sums over the rows, and `biases` the numbers of the intercept to
    average; each has one entry for each output. `updates` is counted only for rules that stop after
    a pass without updates.
    """

    rows: int
    losses: list[float]
    weights: list[float]
    biases: list[list[float]]
    updates: int


@dataclass(frozen=True)
class LearnRound(Message[RoundReply]):
    """To parts: learn piece `piece` of the `pieces` of a pass, from the combined model.

    `alpha` is the rate, if it is computed from the first rows. Parts that have not had any rows yet
    start with `clocks`.
    """

    passes: int
    piece: int
    pieces: int
    alpha: float | None
    biases: list[list[float]]
    clocks: list[bytes]


@dataclass(frozen=True)
class CombineReply:
    """Number of nonzero weights in a range."""

    nonzeros: int


@dataclass(frozen=True)
class CombineRound(Message[CombineReply]):
    """To ranges: average what the parts learned.

    `weights` has for each output the sum of the weights of the rows of each part.
    """

    weights: list[list[float]]
    clocks: list[bytes]


@dataclass(frozen=True)
class AskRate(Question[float | None]):
    """To one part: the rate for its first rows; None if it has none. Other parts answer None."""

    part: int


@dataclass(frozen=True)
class AskClocks(Question[list[bytes] | None]):
    """To one part: the clocks of its learners. Other parts answer None."""

    part: int


@dataclass(frozen=True)
class AskModel(Question[RangeModel]):
    """To ranges: the combined model."""
