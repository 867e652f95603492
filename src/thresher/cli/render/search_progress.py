"""Progress of a search: a table that is overwritten, lines in a file, or JSON."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any

from thresher.cli.render.output import show, show_record
from thresher.cli.render.progress import QuietProgress
from thresher.cli.render.texts import as_json, duration
from thresher.cli.steps.stop_signal import StopSignal
from thresher.model.frontier import shown
from thresher.report.search_results import text_table
from thresher.search.grid import GridPoint
from thresher.search.progress import SearchProgress
from thresher.search.search import Search
from thresher.training.trainer import Trainer

_LINE_SECONDS = 5.0  # between two lines, if the output is not a terminal
_JSON_SECONDS = 0.1  # between two JSON objects
_OTHER_LINES = 4  # lines of the terminal that are not lines of the table
_COUNT_PAUSE = 10  # counting nonzeros takes at most 1/10 of the time


class SearchEvents(QuietProgress):
    """Prints warnings, and in JSON or as lines the checkpoints of a search.

    Parameters
    ----------
    stop : StopSignal
    quiet, json : bool
    """

    def __init__(self, stop: StopSignal, quiet: bool, json: bool) -> None:
        super().__init__(stop, 1, math.inf)
        self.quiet, self.json = quiet, json

    def progress(self, trainer: Trainer) -> None:
        """Show nothing: `SearchTable` shows the progress of the search."""

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print a warning, a checkpoint, or that a search was resumed."""
        super().show_event(event, facts)
        if self.json and event in ("checkpoint", "resumed", "note"):
            show_record(as_json({"event": event, **facts}))
        elif event == "note" and not self.quiet:
            show(facts["message"], error=True)
        elif event == "resumed" and not self.quiet:
            show("continuing from the checkpoint", error=True)


class SearchTable:
    """Shows the progressive loss and the nonzero weights of each point of a grid.

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
        self._lines = 0  # of the table on the terminal, which the next one overwrites
        self._last = time.monotonic()
        self._counts, self._count_after = [""] * len(points), 0.0

    def tell(self, progress: SearchProgress) -> None:
        """Show progress if it is due."""
        now = time.monotonic()
        pause = 0.0 if self.live else _JSON_SECONDS if self.json else _LINE_SECONDS
        if self.silent or now - self._last < pause:
            return
        self._last = now
        if self.live:
            self._draw(progress)
        elif self.json:
            show_record(as_json(self._facts(progress)))
        else:
            print(self._line(progress), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Erase the table: the result follows."""
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
        """Return the nonzero weights of the models of all rows; count them from time to time."""
        began = time.monotonic()
        if self.search is None or began < self._count_after:
            return self._counts
        for number, nonzeros in self.search.nonzeros().items():
            self._counts[number] = f"{nonzeros:,}"
        ended = time.monotonic()
        self._count_after = ended + _COUNT_PAUSE * (ended - began)
        return self._counts

    def _draw(self, progress: SearchProgress) -> None:
        """Overwrite the table."""
        wide, high = shutil.get_terminal_size()
        losses, counts, best = progress.losses, self._nonzeros(), _best(progress)
        order, most = list(range(len(self.points))), max(1, high - _OTHER_LINES)
        if len(order) > most:  # show the points with the least loss
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
        done.append(f"{progress}{self._time_left(progress)}")
        up = f"\x1b[{self._lines}A" if self._lines else ""
        text = "".join(f"{line[: wide - 1]}\x1b[K\n" for line in (*drawn, *done))
        print(f"{up}{text}\x1b[J", end="", file=sys.stderr, flush=True)
        self._lines = len(drawn) + len(done)

    def _time_left(self, progress: SearchProgress) -> str:
        """Return the time left, if the number of rows is known."""
        rows = 0 if self.search is None else self.search.rows
        if progress.number == 1 or progress.reading > 1 or not rows:
            return ""
        share = (progress.number - 1 + progress.rows / rows) / (progress.passes + 1)
        share /= progress.readings
        return f", {duration(progress.seconds * (1 - share) / share)} left" if share > 0 else ""


def _best(progress: SearchProgress) -> int:
    """Return the point with the least progressive loss."""
    return min(progress.losses, key=lambda number: progress.losses[number])
