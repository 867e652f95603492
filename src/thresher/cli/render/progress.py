"""Progress of training: a table on a terminal or in a file, or JSON."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from thresher.cli.render.columns import Column, heading_of, line_of, number_or_blank
from thresher.cli.render.texts import as_json, duration
from thresher.cli.render.warning_sink import sink
from thresher.cli.steps.stop_signal import StopSignal
from thresher.data.source import Source
from thresher.training.observer import Observer
from thresher.training.trainer import Trainer

# The columns of the progress table. `TrainingProgress.facts` computes their values.
COLUMNS = (
    Column("examples", 12, number_or_blank("examples", ",")),  # rows learned so far
    Column("pass", 6, number_or_blank("pass", "")),  # from 1
    Column("loss", 10, number_or_blank("loss", ".4f")),  # progressive, since the record before
    Column("nonzeros", 12, number_or_blank("nonzeros", ",")),  # weights
    Column("rows/s", 12, number_or_blank("rows_per_second", ",")),
    Column("done", 7, number_or_blank("done", ".0%")),
    Column("left", 10, lambda facts: duration(facts["left"])),  # estimated time
)

# Seconds between two lines. A line is also printed whenever a record is made.
_LIVE_SECONDS = 0.2
_TABLE_SECONDS = 5.0
_JSON_SECONDS = 0.1


class TrainingProgress(Observer):
    """Decides when to show progress and computes the facts; subclasses print them.

    Parameters
    ----------
    stop : StopSignal
    passes : int
        Passes that training makes at most.
    interval : float
        Seconds between two lines.
    """

    def __init__(self, stop: StopSignal, passes: int, interval: float) -> None:
        self.stop, self.passes, self.interval = stop, passes, interval
        self._last = 0.0  # when progress was shown
        self._began, self._first = time.monotonic(), (0.0, 0)  # share done and steps at the start
        self._records = 0
        self.mean_loss: float | None = None  # known after training
        self._seconds: float | None = None

    @property
    def seconds(self) -> float:
        """Time that training took."""
        return time.monotonic() - self._began if self._seconds is None else self._seconds

    def warn(self, message: str | Warning, category: type[Warning] = UserWarning) -> None:
        """Show a warning, in the words of the shell."""
        sink().say(message, lambda text: self.tell("warning", message=text))

    def tell(self, event: str, **facts: Any) -> None:
        """Show an event; keep the facts of the event "trained" for the result."""
        if event == "trained":
            self.mean_loss, self._seconds = facts["mean_loss"], facts["seconds"]
        else:
            self.show_event(event, facts)

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print an event."""

    def stops(self) -> bool:
        """Tell whether the user asked to stop."""
        return self.stop.requested

    def watched(self, source: Source) -> Source:
        """Make the reading of a source end when the user asks to stop; return the source."""
        source.stops, self.stop.checked = self.stops, True
        return source

    def progress(self, trainer: Trainer) -> None:
        """Show progress if the interval is over or a record was made."""
        if self._last == 0.0:
            self._first = (0.0, trainer.records.steps - trainer.last_block.rows)
        now, records = time.monotonic(), len(trainer.records.history)
        if now - self._last < self.interval and records <= self._records:
            return
        self._last, self._records = now, records
        self.show(self.facts(trainer))

    def facts(self, trainer: Trainer) -> dict[str, Any]:
        """Return the current state of training."""
        records, size, steps = trainer.records, trainer.source.size, trainer.records.steps
        last = records.history[-1] if records.history else None
        seconds = time.monotonic() - self._began
        share = None
        if size:
            share = min(1.0, (trainer.number + trainer.last_block.raw / size) / self.passes)
        if self._first[0] == 0.0 and share is not None:
            self._first = (share, self._first[1])
        done = None if share is None else share - self._first[0]
        return {
            "event": "progress",
            "examples": steps,
            "pass": trainer.number + 1,
            "loss": None if last is None else last.loss,
            "mean_loss": trainer.mean_loss,
            "nonzeros": None if last is None else last.nonzeros,
            "seconds": round(seconds, 3),
            "rows_per_second": round((steps - self._first[1]) / max(seconds, 1e-9)),
            "done": share,
            "left": seconds * (1 - share) / done if share and done and done > 0 else None,
        }

    def show(self, facts: dict[str, Any]) -> None:
        """Print a line of progress."""

    def close(self) -> None:
        """End the line that is being overwritten, if there is one."""


class QuietProgress(TrainingProgress):
    """Prints only warnings."""

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print a warning."""
        if event == "warning":
            print(f"warning: {facts['message']}", file=sys.stderr)


class JsonProgress(TrainingProgress):
    """Prints one JSON object per line, to what was standard output when this was made."""

    def __init__(self, stop: StopSignal, passes: int, interval: float) -> None:
        super().__init__(stop, passes, interval)
        self._out = sys.stdout

    def show(self, facts: dict[str, Any]) -> None:
        """Print progress."""
        print(as_json(facts), file=self._out, flush=True)

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print an event."""
        facts = dict(facts)
        record = facts.pop("record", None)
        if record is not None:
            facts = record._asdict() | facts  # "loss" is the loss of the pass, not of the record
        print(as_json({"event": event, **facts}), file=self._out, flush=True)


class TableProgress(TrainingProgress):
    """Prints a table that grows by a line from time to time."""

    _has_heading = False

    def show(self, facts: dict[str, Any]) -> None:
        """Print a line."""
        self._show_heading()
        print(line_of(COLUMNS, facts), file=sys.stderr, flush=True)

    def _show_heading(self) -> None:
        if not self._has_heading:
            self._has_heading = True
            print(heading_of(COLUMNS), file=sys.stderr)

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print an event."""
        text = _event_text(event, facts)
        if text:
            print(text, file=sys.stderr, flush=True)


class LiveProgress(TableProgress):
    """Overwrites the last line of the table; an event ends the line."""

    _open = False

    def show(self, facts: dict[str, Any]) -> None:
        """Overwrite the line."""
        self._show_heading()
        print("\r" + line_of(COLUMNS, facts) + "\x1b[K", end="", file=sys.stderr, flush=True)
        self._open = True

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print an event below the line; checkpoints are not shown."""
        if event == "checkpoint":
            return
        self.close()
        super().show_event(event, facts)

    def close(self) -> None:
        """End the line."""
        if self._open:
            print(file=sys.stderr)
        self._open = False


def progress_for(quiet: bool, as_json: bool, passes: int) -> TrainingProgress:
    """Return the progress that suits the options and standard error."""
    stop = StopSignal()
    if quiet:
        return QuietProgress(stop, passes, float("inf"))
    if as_json:
        return JsonProgress(stop, passes, _JSON_SECONDS)
    if sys.stderr.isatty():
        return LiveProgress(stop, passes, _LIVE_SECONDS)
    return TableProgress(stop, passes, _TABLE_SECONDS)


@contextlib.contextmanager
def warnings_shown(observer: TrainingProgress) -> Iterator[None]:
    """Show Python warnings of the library as events of the observer."""
    receiver = sink()
    before, receiver.observer = receiver.observer, observer
    try:
        yield
    finally:
        receiver.observer = before


def _event_text(event: str, facts: dict[str, Any]) -> str:
    if event == "warning":
        return f"warning: {facts['message']}"
    if event == "resumed":
        return f"continuing after {facts['examples']:,} examples"
    if event == "checkpoint":
        return f"checkpoint after {facts['examples']:,} examples ({facts['digest'][:12]})"
    if event == "pass" and facts["record"].valid_loss is not None:
        return f"pass {facts['number']}: loss on the validation rows {facts['loss']:.5f}"
    return str(facts.get("message", ""))
