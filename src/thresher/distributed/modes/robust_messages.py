"""Messages, questions and replies of the stages of the robust stabilized rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.distributed.engine.messages import Message, Question

Totals: TypeAlias = tuple[float, float, float]
"""Sums of weights, of their squares, and of the weights of positive rows."""


@dataclass(frozen=True)
class RowsReply:
    """Rows of a part: their number, sums of norms and of weights, and the number of paths."""

    rows: int
    norms: float
    totals: Totals
    paths: int


@dataclass(frozen=True)
class CountFeatures(Message[RowsReply]):
    """To parts: read the rows, and send the counts of all features."""


@dataclass(frozen=True)
class SizesReply:
    """Losses on the other half of the rows of a part, by number of features."""

    table: _core.SizeTable


@dataclass(frozen=True)
class MeasureSizes(Message[SizesReply]):
    """To parts: measure models of different numbers of features on the rows of the part.

    `norm` is as for `LearnHalves`; `features` is the number of features of all ranges.
    """

    norm: float
    features: int


@dataclass(frozen=True)
class PathsReply:
    """What the paths of a part report: rows learned, and sums of losses, weights and intercepts."""

    rows: int
    loss: float
    weight: float
    bias: float


@dataclass(frozen=True)
class LearnHalves(Message[PathsReply]):
    """To parts: train all paths on random halves of the rows.

    `norm` is the mean of the squared norms of all rows, with their weights; `bias` is where the
    intercept starts. `retained`: parts have removed the features that were not admitted.
    """

    stage: int
    norm: float
    bias: float
    retained: bool


@dataclass(frozen=True)
class LearnAllRows(Message[PathsReply]):
    """To parts: train the weights of the features that are left on all rows of the part.

    `round` is the number of earlier rounds, `rows` the number of rows of all parts, `bias` the
    intercept to start from, `strength` that of the l2 (0: none), and `weight` the sum of the
    weights of all rows.
    """

    stage: int
    round: int
    rows: int
    norm: float
    bias: float
    strength: float
    weight: float


@dataclass(frozen=True)
class LeftReply:
    """Number of features of a range that are left."""

    left: int


@dataclass(frozen=True)
class AdmitFeatures(Message[LeftReply]):
    """To ranges: add up the counts, and keep the features that enough rows have."""


@dataclass(frozen=True)
class ScoreReply:
    """Number of features of a range that are stable enough to stay."""

    may_stay: int


@dataclass(frozen=True)
class ScoreFeatures(Message[ScoreReply]):
    """To ranges: add up what the paths found, and compute the score of each feature.

    `rows` is the number of rows of all parts.
    """

    rows: float


@dataclass(frozen=True)
class PurgeFeatures(Message[LeftReply]):
    """To ranges: remove the features below `rank`, and those of that rank after key `last`."""

    stage: int
    rank: int
    last: int


@dataclass(frozen=True)
class NonzerosReply:
    """Number of nonzero weights of a range."""

    nonzeros: int


@dataclass(frozen=True)
class AverageWeights(Message[NonzerosReply]):
    """To ranges: average the weights of all paths. `last`: no other round follows."""

    last: bool


@dataclass(frozen=True)
class AskRankCounts(Question[NDArray[np.int64]]):
    """To ranges: counts of the next `bits` bits of ranks whose leading bits are `prefix`.

    The counted bits are above the lowest `shift`. If `tied` is not 0, the complements of the keys
    of the features of that rank are counted instead of ranks.
    """

    tied: int
    prefix: int
    shift: int
    bits: int


@dataclass(frozen=True)
class AskResult(Question[tuple[tuple[NDArray[Any], ...], tuple[NDArray[Any], ...]]]):
    """To ranges: keys and weights, and the evidence of all features."""

    totals: Totals
