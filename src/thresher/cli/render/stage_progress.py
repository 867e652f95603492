"""Progress of training on a cluster: one line per stage."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from thresher.cli.options.parsed import TrainOptions
from thresher.cli.render.progress import TrainingProgress
from thresher.cli.render.texts import size
from thresher.distributed.engine.loop import StageReport
from thresher.progress.columns import LOSS, Column, heading_of, line_of, number_or_blank


def _slowest(facts: Mapping[str, Any]) -> str:
    return f"{facts['slowest']}, by {facts['wait']:.2f} s" if facts["wait"] > 0.01 else ""


# The columns of the table of stages.
COLUMNS = (
    Column("stage", 7, number_or_blank("stage", "")),
    Column("rows", 12, number_or_blank("rows", ",")),
    LOSS,
    Column("nonzeros", 12, number_or_blank("nonzeros", ",")),
    Column("rows/s", 12, number_or_blank("rows_per_second", ",")),
    Column("sent", 10, lambda facts: size(facts["bytes"])),  # between workers
    Column("slowest worker", 16, _slowest),  # and for how long the others waited for it
)
_FACTS = ("stage", "rows", "loss", "nonzeros", "seconds", "bytes", "slowest", "wait", "checkpoint")
_SECONDS = 1.0  # between two lines; stages 1, 2, 4, 8, ... are always shown


class StageTable:
    """Shows stages when they end.

    Parameters
    ----------
    observer : TrainingProgress
    options : TrainOptions
    """

    def __init__(self, observer: TrainingProgress, options: TrainOptions) -> None:
        self.observer, self.options = observer, options
        self.stage = 0
        self._shown, self._has_heading = 0.0, False
        self._last: StageReport | None = None  # the last stage, if it was not shown

    def see(self, done: StageReport) -> bool:
        """Show a stage if it is due; tell whether to stop."""
        self.stage = done.stage
        for kind, number in done.remade:
            self.observer.tell(
                "note",
                message=f"stage {done.stage}: {kind} {number} was lost; it was made again from "
                f"its checkpoint",
            )
        self._last, now = done, time.monotonic()
        due = now - self._shown >= _SECONDS or done.stage & (done.stage - 1) == 0
        if self.options.json or due:
            self._shown, self._last = now, None
            self._show(done)
        return self.observer.stops()

    def close(self) -> None:
        """Show the last stage."""
        if self._last is not None:
            self._show(self._last)

    def _show(self, done: StageReport) -> None:
        if self.options.quiet:
            return
        rate = done.rows / done.seconds if done.seconds > 0 else 0.0
        facts: dict[str, Any] = {"event": "stage", **{name: getattr(done, name) for name in _FACTS}}
        facts["rows_per_second"] = round(rate)
        if self.options.json:
            self.observer.show(facts)
            return
        if not self._has_heading:
            self._has_heading = True
            print(heading_of(COLUMNS), file=sys.stderr)
        print(line_of(COLUMNS, facts), file=sys.stderr, flush=True)
