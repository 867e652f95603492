"""The candidates of a race: rules with their parameters, and what a fit of each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.losses import Task
from thresher.race.facts import Facts
from thresher.rules import RULES

SHARES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of the largest useful l1
_SCANS = 80  # cost of coordinate descent, in passes of FTRL: 30 to 200, by data set
_ENOUGH = {"passes": 200, "tol": 3e-3}  # of coordinate descent; the loss is the same with more


@dataclass(frozen=True)
class Candidate:
    """A rule of a race, with its parameters.

    Attributes
    ----------
    name : str
        Its name in tables and in a recorded budget.
    rule : str
        A key of ``RULES``.
    cost : float
        Time of a fit, in passes of FTRL over the same rows.
    params : mapping
        Parameters that differ from the defaults.
    share : float or None
        The penalty l1, as a share of the smallest one at which all weights are zero.
    scaled : bool
        Whether columns are scaled before learning; the weights are for the columns as given.

    Examples
    --------
    >>> from thresher.race.candidates import candidate_named
    >>> candidate_named("ftrl, 5 passes").params["passes"]
    5
    """

    name: str
    rule: str
    cost: float
    params: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None
    scaled: bool = False

    @property
    def streams(self) -> bool:
        """Whether it learns row by row; if not, all rows must be in memory."""
        return RULES[self.rule].streams

    @property
    def path(self) -> str:
        """The path of penalties that it is on; empty: none."""
        return f"{self.rule}{' scaled' if self.scaled else ''}" if self.share is not None else ""


def _passes(count: int) -> Candidate:
    words = "1 pass" if count == 1 else f"{count} passes"
    return Candidate(f"ftrl, {words}", "ftrl", count, {"alpha": "auto", "passes": count})


def _penalty(share: float, scaled: bool) -> Candidate:
    columns = ", scaled columns" if scaled else ""
    return Candidate(
        f"coordinate-descent, {share:g} of the largest l1{columns}",
        "coordinate-descent",
        _SCANS,
        _ENOUGH,
        share=share,
        scaled=scaled,
    )


# All candidates. A rule that this version does not have is left out.
CANDIDATES: tuple[Candidate, ...] = tuple(
    candidate
    for candidate in (
        Candidate("one-pass", "one-pass", 8),
        Candidate("one-pass, cut 0.05", "one-pass", 8, {"cut": 0.05}),
        *(_passes(count) for count in (1, 5, 20)),
        Candidate("truncated-gradient, 20 passes", "truncated-gradient", 20, {"passes": 20}),
        *(_penalty(share, scaled) for scaled in (True, False) for share in SHARES),
    )
    if candidate.rule in RULES
)


def candidate_named(name: str) -> Candidate:
    """Return the candidate of this name.

    Parameters
    ----------
    name : str
    """
    return next(candidate for candidate in CANDIDATES if candidate.name == name)


def for_one_reading() -> Candidate:
    """Return the candidate for rows that can be read only once."""
    return CANDIDATES[0]


def candidates_for(task: Task, facts: Facts) -> list[Candidate]:
    """Return the candidates for some rows: rules that can learn them.

    Parameters
    ----------
    task : {"classifier", "regressor"}
    facts : Facts
    """
    return [
        candidate
        for candidate in CANDIDATES
        if task in RULES[candidate.rule].tasks
        and (candidate.streams or (facts.complete and not facts.multilabel))
    ]


def fewer_penalties(
    candidates: Sequence[Candidate], scaled: bool, coarse: bool = False
) -> list[Candidate]:
    """Return the candidates without one of the two paths of penalties.

    Parameters
    ----------
    candidates : sequence of Candidate
    scaled : bool
        Whether the path with scaled columns is kept, else the one with columns as given.
    coarse : bool
        Whether only every second penalty is kept.
    """
    kept = SHARES[1::2] if coarse else SHARES
    return [c for c in candidates if c.share is None or (c.scaled == scaled and c.share in kept)]
