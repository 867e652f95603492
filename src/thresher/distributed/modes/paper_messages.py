"""Messages, questions and replies of the stages of the published stabilized rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.messages import Message, Question


@dataclass(frozen=True)
class PaperStageReply:
    """What a part reports of a stage: its ratios, and its losses since the beginning.

    `ratios` is the number of ratios; `below` of them are below the interval of the message, and
    `within` are in it. `values` has those in it, unless there are too many. `loss` and `weight` are
    sums.
    """

    ratios: int
    below: int
    within: int
    values: NDArray[np.float64]
    loss: float
    weight: float


@dataclass(frozen=True)
class RunPaperStage(Message[PaperStageReply]):
    """To parts: run the bursts of a stage. `low` and `high` bound the ratios to report."""

    stage: int
    burst: int
    gravity: float
    beta: float
    low: float
    high: float


@dataclass(frozen=True)
class PaperJudgeReply:
    """Number of features of a range that were new in a stage, and that were purged."""

    seen: int
    purged: int


@dataclass(frozen=True)
class JudgePaperStage(Message[PaperJudgeReply]):
    """To ranges: add up the counts of all parts, and purge features that are not stable."""

    stage: int


@dataclass(frozen=True)
class SendPathSums(Message[None]):
    """To parts: send the sums of the paths' weights."""


@dataclass(frozen=True)
class AveragePaths(Message[None]):
    """To ranges: compute the mean of all paths from their sums."""


@dataclass(frozen=True)
class AskHistogram(Question[NDArray[Any]]):
    """To parts: counts of the stage's ratios by their bits above `shift`, from `first` on."""

    first: int
    shift: int


@dataclass(frozen=True)
class AskRatios(Question[NDArray[np.float64]]):
    """To parts: the ratios in the first bin of such a histogram."""

    first: int
    shift: int


@dataclass(frozen=True)
class AskDistance(Question[tuple[float, float] | None]):
    """To one range: add its squares to `gap` and `norm`. Other ranges answer None.

    `gap` is the squared distance between the last two means, `norm` the squared norm of the older.
    """

    range: int
    gap: float
    norm: float


@dataclass(frozen=True)
class AskFindings(Question[dict[str, NDArray[Any]]]):
    """To ranges: weights, and the evidence of all features that were seen."""
