"""Which models train together: as many as memory takes, so that the rows are read seldom."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from thresher.errors import OutOfMemoryError, ParameterError, setting
from thresher.model.model import Progress
from thresher.rules import RULES
from thresher.search.grid import GridPoint
from thresher.training.lanes import Lane, LaneTeam, bytes_of

OVERFLOWS = "a prediction overflows: lower eta0, or scale the rows"  # why a model has no score
_SHARE = 0.5  # of the free memory, where no limit is given


@dataclass(frozen=True)
class ModelJob:
    """A model to train: one point of the grid on one split of the rows.

    Attributes
    ----------
    point : GridPoint
    split : int
        Number of the split.
    lanes : list of Lane
        One for each of its outputs.
    """

    point: GridPoint
    split: int
    lanes: list[Lane] = field(repr=False)


@dataclass(frozen=True)
class GroupStore:
    """What all models of a reading share.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    store : {"dense", "hashed"}
    dtype : {"float32", "float64"}
    width : int
        Number of features; 0: any.
    features : int
        Features that will have a place: all, or in a hashed store those that are seen.
    n_jobs : int or None
        Threads, each with a store of its own.
    """

    rule: str
    store: str
    dtype: str
    width: int
    features: int
    n_jobs: int | None = None

    def team(self, jobs: Sequence[ModelJob]) -> LaneTeam:
        """Make the lanes of some jobs, in their order."""
        lanes = [lane for job in jobs for lane in job.lanes]
        core = RULES[self.rule].core
        return LaneTeam(core, self.store, self.dtype, self.width, lanes, self.n_jobs)

    def bytes_of(self, jobs: Sequence[ModelJob]) -> int:
        """Estimate the memory that some jobs take together."""
        lanes = [lane for job in jobs for lane in job.lanes]
        core = RULES[self.rule].core
        return bytes_of(core, self.store, self.dtype, lanes, self.features, self.n_jobs)


@dataclass(frozen=True)
class ModelResult:
    """What is known of one model.

    Attributes
    ----------
    scores : float or dict of float
    failure : str
        Why it has none; empty: it has.
    nonzeros : int
        Weights that are not zero, of all outputs.
    fit_seconds, score_seconds : float
        Its share of the time that models took together.
    record : Progress, optional
        Its training as a whole: rows, mean progressive loss, rate.
    """

    scores: Any
    failure: str
    nonzeros: int
    fit_seconds: float
    score_seconds: float
    record: Progress | None = None


def nonzeros_of(team: LaneTeam, jobs: Sequence[ModelJob]) -> list[int]:
    """Count the weights of each job that are not zero."""
    counts = {average: team.nonzeros(average) for average in {job.point.average for job in jobs}}
    found = []
    for job, lanes in zip(jobs, places(jobs), strict=True):
        most = job.point.params.get("target_nnz")
        own = counts[job.point.average][lanes]
        found.append(int((own if most is None else np.minimum(own, most)).sum()))
    return found


def losses_of(team: LaneTeam, jobs: Sequence[ModelJob]) -> dict[int, float]:
    """Return the mean progressive loss of each point so far, over its splits and outputs."""
    sums = np.array([team.loss_sums(), team.weight_sums()])
    found: dict[int, Any] = {}
    for job, lanes in zip(jobs, places(jobs), strict=True):
        found[job.point.number] = found.get(job.point.number, 0.0) + sums[:, lanes].sum(axis=1)
    return {n: float(loss / weight) if weight > 0 else 0.0 for n, (loss, weight) in found.items()}


def records_of(team: LaneTeam, jobs: Sequence[ModelJob]) -> list[Progress]:
    """Return the training of each job as one record, over its outputs."""
    steps, rates, sums = team.steps(), team.rates(), team.loss_sums()
    weights, found = team.weight_sums(), []
    for lanes in places(jobs):
        mean = float(sums[lanes].sum() / max(weights[lanes].sum(), 1e-300))
        found.append(Progress(int(steps[lanes].max()), mean, None, float(rates[lanes].max()), 0.0))
    return found


def places(jobs: Sequence[ModelJob]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the numbers of the lanes of each job in their team."""
    ends = np.cumsum([0, *(len(job.lanes) for job in jobs)])
    return [np.arange(a, b) for a, b in pairwise(ends)]


def groups_of(
    jobs: Sequence[ModelJob], bytes_of: Callable[[Sequence[ModelJob]], int], limit: int
) -> list[list[ModelJob]]:
    """Split jobs into as few groups as the memory limit allows, those of a split side by side.

    Raises MemoryError where a single one does not fit.
    """
    ordered = sorted(jobs, key=_kinship)
    most = max((bytes_of([job]) for job in _unlike(ordered)), default=0)
    if most > limit:
        raise OutOfMemoryError(
            (setting("memory_limit"), f" is {_shown(limit)}, and a single model of this grid takes "
             f"{_shown(most)}"),
            parameter="memory_limit",
            value=limit,
            hint=("raise ", setting("memory_limit"), ", or use ", setting("store", "hashed"),
                  ", which needs memory for the features seen alone"),
        )  # fmt: skip
    count = max(1, math.ceil(bytes_of(ordered) / limit))
    while True:
        bounds = np.linspace(0, len(ordered), min(count, len(ordered)) + 1).round().astype(int)
        groups = [list(ordered[a:b]) for a, b in pairwise(bounds)]
        if count >= len(ordered) or all(bytes_of(group) <= limit for group in groups):
            return groups
        count += 1


def _kinship(job: ModelJob) -> tuple[int, str, str]:
    """Lanes that share a clock, a period and a schedule share lines, and so memory."""
    params = job.point.params
    return job.split, str(params.get("period")), str(params.get("schedule"))


def _unlike(jobs: Sequence[ModelJob]) -> list[ModelJob]:
    """Return one job for each number of lanes."""
    return list({len(job.lanes): job for job in jobs}.values())


def checked_limit(memory_limit: Any) -> int:
    """Return a limit in bytes: the one given, or half of what the machine has free."""
    if memory_limit is None:
        return max(1, int(_SHARE * free_memory()))
    number = isinstance(memory_limit, int | float | np.integer | np.floating)
    if isinstance(memory_limit, bool) or not number or not 1 <= memory_limit < math.inf:
        raise ParameterError(
            parameter="memory_limit",
            value=memory_limit,
            allowed="a number of bytes >= 1, or None for half of what is free",
        )
    return int(memory_limit)


def free_memory() -> int:
    """Return how many bytes the machine can still give."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024 * int(ln.split()[1]) for ln in lines if ln.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _shown(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
