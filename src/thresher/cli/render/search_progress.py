"""A search shown while it goes: a table that is written over, lines in a pipe, or JSON."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any

from thresher.cli.render.progress import as_json, duration
from thresher.model.frontier import shown
from thresher.report.search_results import text_table
from thresher.search.grid import GridPoint
from thresher.search.progress import SearchProgress
from thresher.search.search import Search

_SELDOM = 5.0  # seconds between two lines in a pipe
_OFTEN = 0.1  # between two objects of JSON
_AROUND = 4  # lines of a terminal that are not the table's
_WAIT = 10  # times as long as counting nonzeros took goes by before they are counted again


class Table:
    """What is told of a search while rows are read.

    Parameters
    ----------
    points : sequence of GridPoint
        The grid.
    quiet, json : bool
    """

    def __init__(self, points: Sequence[GridPoint], quiet: bool, json: bool) -> None:
        self.points, self.json = points, json
        self.live = sys.stderr.isatty() and not (quiet or json)
        self.silent = quiet
        self.search: Search | None = None
        self._lines = 0  # of the table that is to be written over
        self._last = time.monotonic()
        self._counts, self._count_after = [""] * len(points), 0.0

    def tell(self, progress: SearchProgress) -> None:
        """Show how far the search has come, where the time has come."""
        now = time.monotonic()
        pause = 0.0 if self.live else _OFTEN if self.json else _SELDOM
        if self.silent or now - self._last < pause:
            return
        self._last = now
        if self.live:
            self._draw(progress)
        elif self.json:
            print(as_json(self._facts(progress)), flush=True)
        else:
            print(self._line(progress), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the table away: the result follows."""
        if self._lines:
            print(f"\x1b[{self._lines}A\x1b[J", end="", file=sys.stderr, flush=True)
        self._lines = 0

    def _facts(self, progress: SearchProgress) -> dict[str, Any]:
        facts: dict[str, Any] = {"event": "progress", **progress._asdict()}
        facts["doing"] = "scoring" if progress.number > progress.passes else "learning"
        facts["seconds"] = round(progress.seconds, 3)
        losses, best = facts.pop("losses"), _best(progress)
        return facts | {"best": self.points[best].chosen, "loss": losses[best]}

    def _line(self, progress: SearchProgress) -> str:
        best = _best(progress)
        chosen = ", ".join(f"{name}={shown(v)}" for name, v in self.points[best].chosen.items())
        return f"{progress}; least loss {progress.losses[best]:.4f} with {chosen}"

    def _nonzeros(self) -> list[str]:
        """Count the nonzero weights of each point's model of all rows, now and then."""
        began = time.monotonic()
        if self.search is None or began < self._count_after:
            return self._counts
        for number, nonzeros in self.search.nonzeros().items():
            self._counts[number] = f"{nonzeros:,}"
        ended = time.monotonic()
        self._count_after = ended + _WAIT * (ended - began)
        return self._counts

    def _draw(self, progress: SearchProgress) -> None:
        """Write the table over the one before."""
        wide, high = shutil.get_terminal_size()
        losses, counts, best = progress.losses, self._nonzeros(), _best(progress)
        order, most = list(range(len(self.points))), max(1, high - _AROUND)
        if len(order) > most:  # those of least loss
            order = sorted(sorted(order, key=lambda i: losses.get(i, math.inf))[:most])
        names = list(self.points[0].chosen)
        lines = [
            [
                *(shown(self.points[i].chosen[name]) for name in names),
                f"{losses[i]:.4f}" if i in losses else "",
                counts[i],
                "*" if i == best else "",
            ]
            for i in order
        ]
        drawn = text_table([*names, "loss so far", "nonzeros", ""], lines).splitlines()
        left = len(self.points) - len(lines)
        done = [f"... and {left} more"] if left else []
        done.append(f"{progress}{self._left(progress)}")
        up = f"\x1b[{self._lines}A" if self._lines else ""
        text = "".join(f"{line[: wide - 1]}\x1b[K\n" for line in (*drawn, *done))
        print(f"{up}{text}\x1b[J", end="", file=sys.stderr, flush=True)
        self._lines = len(drawn) + len(done)

    def _left(self, progress: SearchProgress) -> str:
        """Say how long it will take, where the size of the files tells."""
        rows = 0 if self.search is None else self.search.rows
        if progress.number == 1 or progress.reading > 1 or not rows:
            return ""
        share = (progress.number - 1 + progress.rows / rows) / (progress.passes + 1)
        share /= progress.readings
        return f", {duration(progress.seconds * (1 - share) / share)} left" if share > 0 else ""


def _best(progress: SearchProgress) -> int:
    """Return the point of least progressive loss."""
    return min(progress.losses, key=lambda number: progress.losses[number])
