"""Progress of a comparison: a line that is overwritten, lines in a file, or JSON."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from dataclasses import asdict

from thresher.cli.render.output import show_record
from thresher.cli.render.texts import as_json, duration
from thresher.comparison import CompareProgress
from thresher.comparison.measures import MEASURES
from thresher.comparison.result import RuleResult, measure_text
from thresher.printable import printable

_TICK_SECONDS = 1.0  # between two updates of the time on a terminal
_LINE_SECONDS = 10.0  # longest time without a line, if the output is not a terminal


class ComparisonLines:
    """Shows what a comparison is doing.

    Parameters
    ----------
    quiet, json : bool
    """

    def __init__(self, quiet: bool, json: bool) -> None:
        self.quiet, self.json = quiet, json
        self.live = sys.stderr.isatty() and not (quiet or json)
        self._open = False  # whether the cursor is in a line that is overwritten
        self._now: CompareProgress | None = None  # the search or fit that is running
        self._began = 0.0
        self._line_at = time.monotonic()  # when the last line was printed
        self._lock, self._ended = threading.RLock(), threading.Event()
        if not (quiet or json):
            threading.Thread(target=self._tick, daemon=True).start()

    def tell(self, progress: CompareProgress) -> None:
        """Show progress."""
        if self.json:
            facts = {**progress._asdict(), "seconds": round(progress.seconds, 3)}
            row = facts.pop("row")
            if row is not None:
                facts |= {"event": "rule", "result": asdict(row)}
            show_record(as_json({"event": "progress", **facts}))
        elif self.quiet:
            return
        elif progress.row is not None:
            with self._lock:
                self._now = None
                self._line(f"{self._place(progress)} {_result(progress.row)}", ends=True)
        else:
            with self._lock:
                self._now, self._began = progress, time.perf_counter() - progress.seconds
                if self.live:
                    self._show(progress)

    def close(self) -> None:
        """Erase the line that is being overwritten."""
        self._ended.set()
        with self._lock:
            self._now = None
            if self._open:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._open = False

    def _tick(self) -> None:
        """Update the time while a search or fit is running."""
        while not self._ended.wait(_TICK_SECONDS):
            with self._lock:
                silent = time.monotonic() - self._line_at
                if self._now is not None and (self.live or silent >= _LINE_SECONDS):
                    seconds = time.perf_counter() - self._began
                    self._show(self._now._replace(seconds=seconds))

    def _show(self, progress: CompareProgress) -> None:
        doing = "choosing parameters"
        if progress.doing == "orders":
            doing = f"order {progress.number}/{progress.orders}"
        self._line(f"{self._place(progress)} {progress.title}: {doing}", ends=not self.live)

    def _line(self, text: str, ends: bool) -> None:
        start = "\r\x1b[K" if self._open else ""
        if not ends:  # a wrapped line could not be overwritten
            text = text[: shutil.get_terminal_size()[0] - 1]
        print(f"{start}{printable(text)}", end="\n" if ends else "", file=sys.stderr, flush=True)
        self._open, self._line_at = not ends, time.monotonic()

    def _place(self, progress: CompareProgress) -> str:
        return f"{progress.place:>2}/{progress.rules} {duration(progress.seconds):>6}"


def _result(row: RuleResult) -> str:
    """Return the result of a rule as one line."""
    if not row.measured:
        return f"{row.title}: {row.reason}"
    names = {name: word for task in MEASURES.values() for name, word in task.items()}
    first = next(name for name in ("error", "mse") if getattr(row, name) is not None)
    error = measure_text(getattr(row, first), first)
    return (
        f"{row.title}: {names[first]} {error}, nonzeros % {measure_text(row.nonzeros, 'nonzeros')}"
    )
