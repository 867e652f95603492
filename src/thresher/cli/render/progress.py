"""Progress of training: a table on a terminal or in a file, or JSON."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from thresher.cli.render.output import show, show_record
from thresher.cli.render.texts import as_json
from thresher.cli.render.warning_sink import sink
from thresher.cli.steps.stop_signal import StopSignal
from thresher.data.source import Source
from thresher.progress.display import display_for_stderr
from thresher.progress.lines import ProgressLines
from thresher.progress.meter import ProgressMeter
from thresher.training.observer import Observer
from thresher.training.trainer import Trainer

_JSON_SECONDS = 0.1  # between two lines. A line is also printed whenever a record is made


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
        self._began = time.monotonic()
        self._meter = ProgressMeter(passes)
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
        self._meter.start(trainer)
        now, records = time.monotonic(), len(trainer.records.history)
        if now - self._last < self.interval and records <= self._records:
            return
        self._last, self._records = now, records
        self.show(self._meter.of_trainer(trainer))

    def show(self, facts: dict[str, Any]) -> None:
        """Print a line of progress."""

    def close(self) -> None:
        """End the line that is being overwritten, if there is one."""


class QuietProgress(TrainingProgress):
    """Prints only warnings."""

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print a warning."""
        if event == "warning":
            show(f"warning: {facts['message']}", error=True)


class JsonProgress(TrainingProgress):
    """Prints one JSON object per line, to what was standard output when this was made."""

    def __init__(self, stop: StopSignal, passes: int, interval: float) -> None:
        super().__init__(stop, passes, interval)
        self._out = sys.stdout

    def show(self, facts: dict[str, Any]) -> None:
        """Print progress."""
        show_record(as_json(facts), self._out)

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print an event; a stage is a record already."""
        if event == "stage":
            return
        facts = dict(facts)
        record = facts.pop("record", None)
        if record is not None:
            facts = record._asdict() | facts  # "loss" is the loss of the pass, not of the record
        show_record(as_json({"event": event, **facts}), self._out)


class TableProgress(TrainingProgress):
    """Prints a table that grows by a line from time to time, or overwrites its last line."""

    def __init__(self, stop: StopSignal, passes: int) -> None:
        self._lines = ProgressLines(passes, display_for_stderr())
        super().__init__(stop, passes, self._lines.display.interval)

    def progress(self, trainer: Trainer) -> None:
        """Show progress if the interval is over or a record was made."""
        self._lines.progress(trainer)

    def tell(self, event: str, **facts: Any) -> None:
        """Show an event; keep the facts of the event "trained" for the result."""
        super().tell(event, **facts)
        if event == "trained":
            self._lines.finish()

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print an event."""
        self._lines.event(event, facts)

    def close(self) -> None:
        """Show the last state in the line that is being overwritten, and end the line."""
        self._lines.finish()


def progress_for(quiet: bool, as_json: bool, passes: int) -> TrainingProgress:
    """Return the progress that suits the options and standard error."""
    stop = StopSignal()
    if quiet:
        return QuietProgress(stop, passes, float("inf"))
    if as_json:
        return JsonProgress(stop, passes, _JSON_SECONDS)
    return TableProgress(stop, passes)


@contextlib.contextmanager
def warnings_shown(observer: TrainingProgress) -> Iterator[None]:
    """Show Python warnings of the library as events of the observer."""
    receiver = sink()
    before, receiver.observer = receiver.observer, observer
    try:
        yield
    finally:
        receiver.observer = before
