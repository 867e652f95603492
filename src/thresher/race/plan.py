"""The plan of a race: candidates, folds and rows, so that the work has a bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.losses import Task
from thresher.race.candidates import CANDIDATES, Candidate, candidates_for, fewer_penalties
from thresher.race.facts import Facts
from thresher.race.scaling import DENSE

WORK = 3e9  # most values that the fits of a race read: about a minute
_PER_FIT = 2e5  # a fit takes at least as long as reading this many values
_ENOUGH = 2000  # rows; before there are fewer, folds and candidates are reduced
_LEAST = 200  # rows; never fewer
_PROBED = 200_000  # values that are read to measure the speed


@dataclass(frozen=True)
class RacePlan:
    """What a race does. The same plan on the same rows gives the same result, bit by bit.

    Attributes
    ----------
    candidates : tuple of Candidate
    folds : int
    rows : int
        Number of rows that take part in the race; the winner is then fitted to all rows.
    seconds : float or None
        The time that was given; None: none.
    speed : float or None
        Values per second of one pass of FTRL, measured once, if a time was given.

    Examples
    --------
    >>> from thresher.race.facts import Facts
    >>> facts = Facts(1000, 50, 50_000, 1, False, 0.5, 1.0, 1000)
    >>> plan = RacePlan.of("classifier", facts, folds=5, work=1e9)
    >>> plan.folds, plan.rows
    (5, 1000)
    >>> RacePlan.recorded(plan.to_dict()) == plan
    True
    """

    candidates: tuple[Candidate, ...]
    folds: int
    rows: int
    seconds: float | None = None
    speed: float | None = None

    @classmethod
    def of(
        cls, task: Task, facts: Facts, folds: int, work: float = WORK, final: bool = False
    ) -> RacePlan:
        """Return the plan for some rows.

        Parameters
        ----------
        task : {"classifier", "regressor"}
        facts : Facts
        folds : int
            Number of folds; fewer, if there is not enough time.
        work : float
            Most values that all fits of the race together read.
        final : bool
            Whether `work` includes the fit of the winner to all rows.
        """
        for number, candidates in _levels(task, facts, folds):
            rows = _affordable(facts, candidates, number, work, final)
            if rows >= min(facts.rows, _ENOUGH):
                break
        return cls(tuple(candidates), number, min(facts.rows, max(rows, _LEAST)))

    @classmethod
    def timed(cls, task: Task, facts: Facts, folds: int, seconds: float, speed: float) -> RacePlan:
        """Return the plan for some rows and a time.

        Parameters
        ----------
        task, facts, folds
            As for `of`.
        seconds, speed : float
            The time, and values per second.
        """
        plan = cls.of(task, facts, folds, seconds * speed, final=True)
        return replace(plan, seconds=seconds, speed=speed)

    @classmethod
    def recorded(cls, budget: Mapping[str, Any]) -> RacePlan:
        """Return the plan that `to_dict` wrote.

        Parameters
        ----------
        budget : mapping
        """
        known = {candidate.name: candidate for candidate in CANDIDATES}
        try:
            names = list(budget["candidates"])
            unknown = [name for name in names if name not in known]
            folds, rows = int(budget["folds"]), int(budget["rows"])
            seconds, speed = budget.get("seconds"), budget.get("speed")
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(
                parameter="budget",
                value=budget,
                allowed="None, a number of seconds, or the budget_ of another fit",
            ) from error
        if unknown or not names:
            raise ParameterError(
                f"budget: there is no candidate {unknown[0] if unknown else ''!r}; the candidates "
                f"are {', '.join(known)}",
                parameter="budget",
            )
        if folds < 2 or rows < 1:
            raise ParameterError(
                f"budget: at least 2 folds and 1 row are needed; got {folds} and {rows}",
                parameter="budget",
            )
        return cls(tuple(known[name] for name in names), folds, rows, seconds, speed)

    def restricted(self, task: Task, facts: Facts) -> RacePlan:
        """Return the plan without candidates that cannot learn these rows.

        Parameters
        ----------
        task : {"classifier", "regressor"}
        facts : Facts
        """
        able = candidates_for(task, facts)
        kept = tuple(candidate for candidate in self.candidates if candidate in able)
        if not kept:
            raise ParameterError(
                f"budget: none of its candidates can learn these rows; candidates that can are "
                f"{', '.join(candidate.name for candidate in able)}",
                parameter="budget",
            )
        return replace(self, candidates=kept)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        return {
            "seconds": self.seconds,
            "speed": self.speed,
            "folds": self.folds,
            "rows": self.rows,
            "candidates": [candidate.name for candidate in self.candidates],
        }


def _levels(task: Task, facts: Facts, folds: int) -> Iterator[tuple[int, list[Candidate]]]:
    """Yield numbers of folds and candidates, from the most work to the least.

    Scaled columns matter most if columns have few zeros: they are centred then, too.
    """
    candidates, fewer = candidates_for(task, facts), min(folds, 3)
    scaled = facts.density > DENSE
    streaming = [candidate for candidate in candidates if candidate.streams]
    yield folds, candidates
    yield folds, fewer_penalties(candidates, scaled)
    yield fewer, fewer_penalties(candidates, scaled)
    yield fewer, fewer_penalties(candidates, scaled, coarse=True)
    yield fewer, streaming
    yield 2, streaming
    yield 2, [candidate for candidate in streaming if candidate.cost <= 8]


def _affordable(
    facts: Facts, candidates: Sequence[Candidate], folds: int, work: float, final: bool
) -> int:
    """Return the number of rows for which the work is as given."""
    values = facts.outputs * facts.stored / max(facts.rows, 1)  # of one row
    costs = [candidate.cost for candidate in candidates]
    left = work - _PER_FIT * len(costs) * folds - final * max(costs) * values * facts.total
    return int(max(left, 0.0) / max(values * sum(costs) * (folds - 1), 1.0))


def speed_of(fit: Callable[[int], Any], facts: Facts) -> float:
    """Measure the speed of a fit, in values per second: the larger of two measurements.

    Parameters
    ----------
    fit : callable
        Takes a number of rows, and fits one pass of FTRL to as many rows.
    facts : Facts
    """
    values = facts.outputs * facts.stored / facts.rows
    rows = int(np.clip(_PROBED / max(values, 1.0), 1, facts.rows))
    least = np.inf
    for _ in range(2):
        began = time.perf_counter()
        fit(rows)
        least = min(least, time.perf_counter() - began)
    return float(f"{(rows * values + _PER_FIT) / max(least, 1e-9):.3g}")
