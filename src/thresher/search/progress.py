"""Progress of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from thresher.progress.verbose import StatusLine


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

    def share(self, rows: int | None) -> float | None:
        """Return the share of the search that is done; None if the number of rows is unknown.

        Parameters
        ----------
        rows : int or None
            Number of rows of a pass.
        """
        if not rows:
            return None
        done = (self.number - 1 + min(1.0, self.rows / rows)) / (self.passes + 1)
        return (self.reading - 1 + done) / self.readings

    def __str__(self) -> str:
        doing = "scoring" if self.number > self.passes else f"pass {self.number}/{self.passes}"
        group = f"group {self.reading}/{self.readings}, " if self.readings > 1 else ""
        return f"{group}{doing}: {self.rows:,} rows, {self.lanes:,} models, {self.seconds:.1f} s"


@contextmanager
def told(
    verbose: Any, callback: Callable[[SearchProgress], Any] | None, rows: int | None
) -> Iterator[Callable[[SearchProgress], None] | None]:
    """Yield a function that shows progress and calls the callback; None if nobody asks for it.

    Parameters
    ----------
    verbose : int
    callback : callable, optional
    rows : int or None
        Number of rows of a pass, if known.

    Examples
    --------
    >>> with told(0, None, 10) as tell:
    ...     tell is None
    True
    """
    if not verbose and callback is None:
        yield None
        return
    with StatusLine(verbose) as line:

        def tell(progress: SearchProgress) -> None:
            line.show(str(progress), progress.share(rows))
            if callback is not None:
                callback(progress)

        yield tell
