"""Progress of a search."""

from __future__ import annotations

from typing import NamedTuple


class SearchProgress(NamedTuple):
    """Progress of a search.

    Attributes
    ----------
    reading : int
        Number of the group of models that train together, from 1.
    readings : int
        Number of groups. There are several if not all models fit in memory, or if parameters such
        as `passes` differ; a model that is fitted separately is a group.
    number : int
        Number of the pass over the rows, from 1; `passes` + 1 while models are scored.
    passes : int
        Number of passes of this group.
    rows : int
        Rows read so far in this pass.
    lanes : int
        Models that learn from each row: points x folds x classes.
    seconds : float
        Time since the search began.
    losses : dict of int to float
        Mean progressive loss so far of each point in this group, by the point's index in the grid.
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
