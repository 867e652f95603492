"""Groups of models that train together: as large as memory allows, so that there are few groups."""

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
from thresher.training.lane_bytes import bytes_of
from thresher.training.lanes import Lane, LaneTeam

OVERFLOWS = "a prediction overflows: lower eta0, or scale the rows"  # reason for a missing score
_SHARE = 0.5  # share of the free memory that is used by default


@dataclass(frozen=True)
class ModelJob:
    """A model to train: one point of the grid on one split of the rows.

    Attributes
    ----------
    point : GridPoint
    split : int
        Number of the split.
    lanes : list of Lane
        One per output.
    """

    point: GridPoint
    split: int
    lanes: list[Lane] = field(repr=False)


@dataclass(frozen=True)
class GroupStore:
    """The weight store of a group of models.

    Attributes
    ----------
    rule : str
        A key of ``RULES``.
    store : {"dense", "hashed"}
    dtype : {"float32", "float64"}
    width : int
        Number of features; 0: any.
    features : int
        Features in the store: all, or in a hashed store those that occur.
    n_jobs : int or None
        Number of threads; each has its own store.
    """

    rule: str
    store: str
    dtype: str
    width: int
    features: int
    n_jobs: int | None = None

    def team(self, jobs: Sequence[ModelJob]) -> LaneTeam:
        """Return the lanes of some jobs, in their order."""
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
    """The result of one model.

    Attributes
    ----------
    scores : float or dict of float
    failure : str
        Why it has no scores; empty if it has scores.
    nonzeros : int
        Number of nonzero weights of all outputs.
    fit_seconds, score_seconds : float
        Its share of the time of its group.
    record : Progress, optional
        Its whole training as one record: rows, mean progressive loss, rate.
    """

    scores: Any
    failure: str
    nonzeros: int
    fit_seconds: float
    score_seconds: float
    record: Progress | None = None

    def as_scored(self, failed: Any) -> dict[str, Any]:
        """Return times and scores as scikit-learn's searches have them.

        Parameters
        ----------
        failed : float or dict of float
            The scores of a model that failed.
        """
        scores = failed if self.failure else self.scores
        times = {"fit_time": self.fit_seconds, "score_time": self.score_seconds}
        return {**times, "test_scores": scores}


def nonzeros_of(team: LaneTeam, jobs: Sequence[ModelJob]) -> list[int]:
    """Return the number of nonzero weights of each job."""
    counts = {average: team.nonzeros(average) for average in {job.point.average for job in jobs}}
    found = []
    for job, lanes in zip(jobs, places(jobs), strict=True):
        most = job.point.params.get("target_nnz")
        own = counts[job.point.average][lanes]
        found.append(int((own if most is None else np.minimum(own, most)).sum()))
    return found


def losses_of(team: LaneTeam, jobs: Sequence[ModelJob]) -> dict[int, float]:
    """Return the mean progressive loss so far of each point, over its splits and outputs."""
    sums = np.array([team.loss_sums(), team.weight_sums()])
    found: dict[int, Any] = {}
    for job, lanes in zip(jobs, places(jobs), strict=True):
        found[job.point.number] = found.get(job.point.number, 0.0) + sums[:, lanes].sum(axis=1)
    return {n: float(loss / weight) if weight > 0 else 0.0 for n, (loss, weight) in found.items()}


def records_of(team: LaneTeam, jobs: Sequence[ModelJob]) -> list[Progress]:
    """Return one record for the whole training of each job, over its outputs."""
    steps, rates, sums = team.steps(), team.rates(), team.loss_sums()
    weights, found = team.weight_sums(), []
    for lanes in places(jobs):
        mean = float(sums[lanes].sum() / max(weights[lanes].sum(), 1e-300))
        found.append(Progress(int(steps[lanes].max()), mean, None, float(rates[lanes].max()), 0.0))
    return found


def places(jobs: Sequence[ModelJob]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the lane numbers of each job in the team."""
    ends = np.cumsum([0, *(len(job.lanes) for job in jobs)])
    return [np.arange(a, b) for a, b in pairwise(ends)]


def groups_of(
    jobs: Sequence[ModelJob], bytes_of: Callable[[Sequence[ModelJob]], int], limit: int
) -> list[list[ModelJob]]:
    """Divide jobs into as few groups as the memory limit allows; jobs of a split stay together.

    Raises OutOfMemoryError if a single job does not fit.
    """
    ordered = sorted(jobs, key=_sharing_key)
    most = max((bytes_of([job]) for job in _one_per_size(ordered)), default=0)
    if most > limit:
        raise OutOfMemoryError(
            (setting("memory_limit"), f" is {_shown(limit)}, but a single model of this grid needs "
             f"{_shown(most)}"),
            parameter="memory_limit",
            value=limit,
            hint=("raise ", setting("memory_limit"), ", or use ", setting("store", "hashed"),
                  ", which needs memory only for features that occur"),
        )  # fmt: skip
    count = math.ceil(bytes_of(ordered) / limit)
    if count <= 1:
        return [ordered] if ordered else []
    while True:
        bounds = np.linspace(0, len(ordered), min(count, len(ordered)) + 1).round().astype(int)
        groups = [list(ordered[a:b]) for a, b in pairwise(bounds)]
        if count >= len(ordered) or all(bytes_of(group) <= limit for group in groups):
            return groups
        count += 1


def _sharing_key(job: ModelJob) -> tuple[int, str, str]:
    """Return a sort key: lanes with the same clock, period and schedule share memory."""
    params = job.point.params
    return job.split, str(params.get("period")), str(params.get("schedule"))


def _one_per_size(jobs: Sequence[ModelJob]) -> list[ModelJob]:
    """Return one job per number of lanes."""
    return list({len(job.lanes): job for job in jobs}.values())


def checked_limit(memory_limit: Any) -> int:
    """Return the memory limit in bytes; by default half of the free memory."""
    if memory_limit is None:
        return max(1, int(_SHARE * free_memory()))
    number = isinstance(memory_limit, int | float | np.integer | np.floating)
    if isinstance(memory_limit, bool) or not number or not 1 <= memory_limit < math.inf:
        raise ParameterError(
            parameter="memory_limit",
            value=memory_limit,
            allowed="a number of bytes >= 1, or None for half of the free memory",
        )
    return int(memory_limit)


def free_memory() -> int:
    """Return the free memory of the machine in bytes."""
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
