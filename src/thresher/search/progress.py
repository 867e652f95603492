"""How far a search has come."""

from __future__ import annotations

from typing import NamedTuple


class SearchProgress(NamedTuple):
    """How far a search has come.

    Attributes
    ----------
    reading : int
        Number of the group of models that is trained together, from 1.
    readings : int
        How many groups there are: more than one where memory, or parameters such as `passes`, do
        not let all train together.
    number : int
        Number of the pass over the rows, from 1; one more than `passes` while models are scored.
    passes : int
        Passes of this group.
    rows : int
        Rows read so far in this pass.
    lanes : int
        Models that learn from each row: points x folds x classes.
    seconds : float
        Since the search began.
    losses : dict of int to float
        Mean progressive loss so far of each point in this group, by its number in the grid.
    """

    reading: int
    readings: int
    number: int
    passes: int
    rows: int
    lanes: int
    seconds: float
    losses: dict[int, float]

    def __str__(self) -> str:
        doing = "scoring" if self.number > self.passes else f"pass {self.number}/{self.passes}"
        group = f"group {self.reading}/{self.readings}, " if self.readings > 1 else ""
        return f"{group}{doing}: {self.rows:,} rows, {self.lanes:,} models, {self.seconds:.1f} s"
