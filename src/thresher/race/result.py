"""The result of a race: a table of the candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from thresher.model.frontier import Dot, Frontier
from thresher.report.search_results import error_text, text_table


@dataclass(frozen=True)
class Entrant:
    """A candidate of a race, and how it did.

    Attributes
    ----------
    name : str
        The rule, and what differs from its defaults.
    rule : str
    params : dict
        Parameters of its estimator that differ from the defaults.
    loss : float
        Mean loss of the rows that were held out; NaN: it was not measured.
    standard_error : float
        Standard error of this mean.
    behind : float
        How much larger the loss is than the least one.
    behind_error : float
        Standard error of this difference; both losses are of the same rows.
    error : float
        Classifiers: share of the rows whose label was not predicted. NaN for regressors.
    nonzeros : float
        Nonzero weights, mean over the folds.
    seconds : float
        Time of all fits of the race.
    chosen : bool
    why : str
        Why it was chosen, or why it was not.

    Examples
    --------
    >>> Entrant("ftrl, 1 pass", "ftrl", loss=0.3, nonzeros=12).measured
    True
    """

    name: str
    rule: str
    params: Mapping[str, Any] = field(default_factory=dict)
    loss: float = math.nan
    standard_error: float = math.nan
    behind: float = math.nan
    behind_error: float = math.nan
    error: float = math.nan
    nonzeros: float = math.nan
    seconds: float = 0.0
    chosen: bool = False
    why: str = ""

    @property
    def measured(self) -> bool:
        """Whether its loss was measured."""
        return math.isfinite(self.loss)


@dataclass(frozen=True)
class Race(Sequence[Entrant]):
    """All candidates of a race, in the order in which they were tried.

    Attributes
    ----------
    entrants : tuple of Entrant
    measure : str
        Name of the loss.
    facts : dict
        What was known about the rows.
    how : str
        How the losses were measured.
    tolerance : float
        Number of standard errors by which a sparser model may be worse.
    remarks : tuple of str
        What a reader should know.

    Examples
    --------
    >>> race = Race((Entrant("ftrl, 1 pass", "ftrl", loss=0.3, nonzeros=12, chosen=True),))
    >>> race.chosen.name, len(race)
    ('ftrl, 1 pass', 1)
    """

    entrants: tuple[Entrant, ...]
    measure: str = "log loss"
    facts: Mapping[str, Any] = field(default_factory=dict)
    how: str = ""
    tolerance: float = 0.0
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.entrants)

    def __getitem__(self, at: Any) -> Any:
        return self.entrants[at]

    def __iter__(self) -> Iterator[Entrant]:
        return iter(self.entrants)

    @property
    def chosen(self) -> Entrant:
        """The winner."""
        return next(entrant for entrant in self.entrants if entrant.chosen)

    @property
    def frontier(self) -> Frontier:
        """Loss and nonzeros of all candidates, for charts."""
        return Frontier([_dot(entrant) for entrant in self.entrants], self.measure)

    def table(self) -> str:
        """Return the candidates as a text table."""
        head = [self.measure, "+-", "behind", "+-", "nonzeros", "seconds", "candidate"]
        lines = []
        for entrant in self.entrants:
            numbers = (entrant.loss, entrant.standard_error, entrant.behind, entrant.behind_error)
            shown = [error_text(x) if math.isfinite(x) else "-" for x in numbers]
            count = f"{round(entrant.nonzeros):,}" if math.isfinite(entrant.nonzeros) else "-"
            name = f"{entrant.name} (chosen)" if entrant.chosen else entrant.name
            lines.append([*shown, count, f"{entrant.seconds:.2f}", name])
        return text_table(head, lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the race as types that JSON has."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"<Race: {len(self)} candidates; {self.chosen.name} was chosen>"


def _dot(entrant: Entrant) -> Dot:
    spread = entrant.standard_error if math.isfinite(entrant.standard_error) else None
    return Dot(
        entrant.name,
        entrant.nonzeros,
        entrant.loss,
        spread,
        "" if entrant.measured else entrant.why,
    )
