"""How a run is shown while it goes: a line that changes on a terminal, lines in a pipe, JSON."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from thresher.data.source import Source
from thresher.training.observer import Observer
from thresher.training.trainer import Trainer

_OFTEN = 0.2  # seconds between two looks of a terminal
_HEAD = "    examples  pass      loss    nonzeros      rows/s   done  left"
_SELDOM = 5.0  # seconds between two lines in a pipe, beside those at powers of two


class Stop:
    """Ctrl-C, or a polite request to end: noted, and obeyed between two blocks; twice, at once.

    At once too as long as no source is `heeded`, and so nobody asks.
    """

    def __init__(self) -> None:
        self.asked = self.heeded = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked or not self.heeded:
            raise KeyboardInterrupt
        self.asked = True


class Shown(Observer):
    """What runs have in common: when to show, and what."""

    def __init__(self, stop: Stop, passes: int, often: float) -> None:
        self.stop, self.passes, self.often = stop, passes, often
        self._last = 0.0
        self._began, self._first = time.monotonic(), (0.0, 0)  # share done and steps at the start
        self._records = 0
        self.mean_loss: float | None = None  # of training that has ended
        self._seconds: float | None = None

    @property
    def seconds(self) -> float:
        """Time that training took."""
        return time.monotonic() - self._began if self._seconds is None else self._seconds

    def warn(self, message: str, category: type[Warning] = UserWarning) -> None:
        """Show a warning."""
        self.tell("warning", message=message)

    def tell(self, event: str, **facts: Any) -> None:
        """Take what the end of training tells; show all else."""
        if event == "trained":
            self.mean_loss, self._seconds = facts["mean_loss"], facts["seconds"]
        else:
            self.say(event, facts)

    def say(self, event: str, facts: dict[str, Any]) -> None:
        """Show what happened."""

    def stops(self) -> bool:
        """Tell whether the user wants to stop."""
        return self.stop.asked

    def watched(self, source: Source) -> Source:
        """Return the source, whose reading now ends when the user wants to stop."""
        source.stops, self.stop.heeded = self.stops, True
        return source

    def progress(self, trainer: Trainer) -> None:
        """Show it where the time has come, or a record was made."""
        if self._last == 0.0:
            self._first = (0.0, trainer.records.steps - trainer.last_block.rows)
        now, records = time.monotonic(), len(trainer.records.history)
        if now - self._last < self.often and records <= self._records:
            return
        self._last, self._records = now, records
        self.show(self.facts(trainer))

    def facts(self, trainer: Trainer) -> dict[str, Any]:
        """Return where training stands."""
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
        """Show where a run stands."""

    def close(self) -> None:
        """Leave the terminal in order."""


class Quiet(Shown):
    """Shows nothing but warnings."""

    def say(self, event: str, facts: dict[str, Any]) -> None:
        """Show warnings."""
        if event == "warning":
            print(f"warning: {facts['message']}", file=sys.stderr)


def as_json(facts: dict[str, Any]) -> str:
    """Return an object on a line; numbers that JSON has no word for are null."""
    known = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }
    return json.dumps(known, allow_nan=False)


class Json(Shown):
    """An object a line, for programs: where standard output led to when it was made."""

    def __init__(self, stop: Stop, passes: int, often: float) -> None:
        super().__init__(stop, passes, often)
        self._out = sys.stdout

    def show(self, facts: dict[str, Any]) -> None:
        """Print it."""
        print(as_json(facts), file=self._out, flush=True)

    def say(self, event: str, facts: dict[str, Any]) -> None:
        """Print it."""
        facts = dict(facts)
        record = facts.pop("record", None)
        if record is not None:
            facts = record._asdict() | facts  # its loss is the pass's, not that since a record
        print(as_json({"event": event, **facts}), file=self._out, flush=True)


class Lines(Shown):
    """A table that grows by a line now and then."""

    _head = False

    def show(self, facts: dict[str, Any]) -> None:
        """Print a line."""
        if not self._head:
            self._head = True
            print(_HEAD, file=sys.stderr)
        print(_line(facts), file=sys.stderr, flush=True)

    def say(self, event: str, facts: dict[str, Any]) -> None:
        """Say what happened."""
        text = _told(event, facts)
        if text:
            print(text, file=sys.stderr, flush=True)


class Live(Lines):
    """A line that is written over and over, and stays where a pass ends."""

    _open = False

    def show(self, facts: dict[str, Any]) -> None:
        """Write the line anew."""
        if not self._head:
            self._head = True
            print(_HEAD, file=sys.stderr)
        print("\r" + _line(facts) + "\x1b[K", end="", file=sys.stderr, flush=True)
        self._open = True

    def say(self, event: str, facts: dict[str, Any]) -> None:
        """Say what happened, below the line."""
        if event == "checkpoint":
            return
        self.close()
        super().say(event, facts)

    def close(self) -> None:
        """End the line."""
        if self._open:
            print(file=sys.stderr)
        self._open = False


def shown(quiet: bool, as_json: bool, passes: int) -> Shown:
    """Return what fits where the output goes."""
    stop = Stop()
    if quiet:
        return Quiet(stop, passes, float("inf"))
    if as_json:
        return Json(stop, passes, 0.1)
    if sys.stderr.isatty():
        return Live(stop, passes, _OFTEN)
    return Lines(stop, passes, _SELDOM)


@contextlib.contextmanager
def warnings_told(observer: Shown) -> Iterator[None]:
    """Let Python warnings of the library be shown as all else is.

    Parameters
    ----------
    observer : Shown
    """

    def tell(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, UserWarning):
            observer.warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = tell
        yield


def _line(facts: dict[str, Any]) -> str:
    nonzeros = "" if facts["nonzeros"] is None else f"{facts['nonzeros']:,}"
    loss = "" if facts["loss"] is None else f"{facts['loss']:.4f}"
    done = "" if facts["done"] is None else f"{100 * facts['done']:.0f} %"
    return (
        f"{facts['examples']:>12,}{facts['pass']:>6}{loss:>10}{nonzeros:>12}"
        f"{facts['rows_per_second']:>12,}{done:>7}  {duration(facts['left'])}"
    )


def _told(event: str, facts: dict[str, Any]) -> str:
    if event == "warning":
        return f"warning: {facts['message']}"
    if event == "resumed":
        return f"going on after {facts['examples']:,} examples"
    if event == "checkpoint":
        return f"checkpoint after {facts['examples']:,} examples ({facts['digest'][:12]})"
    if event == "pass" and facts["record"].valid_loss is not None:
        return f"pass {facts['number']}: loss on the validation rows {facts['loss']:.5f}"
    return str(facts.get("message", ""))


def duration(seconds: float | None) -> str:
    """Return a time to go, shortly."""
    if seconds is None:
        return ""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600} h {whole % 3600 // 60:02}"
