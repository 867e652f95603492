"""Decides when progress of training is shown, and shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from thresher.progress.display import Display
from thresher.progress.meter import EVENTS, ProgressMeter
from thresher.progress.texts import duration

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer

_ALL_RECORDS = 32  # records that all get a line; of later ones, those whose number is 2^k


class ProgressLines:
    """Shows the progress of one fit: a line at intervals, and when a record was made.

    Parameters
    ----------
    passes : int or None
        Passes that a rule that needs all rows makes at most, if known.
    display : Display
    """

    def __init__(self, passes: int | None, display: Display) -> None:
        self.meter, self.display = ProgressMeter(passes), display
        self._last, self._records = 0.0, 0  # when a line was shown, and records at that time
        self._solved = 0  # events of a rule that needs all rows
        self._waiting: Callable[[], dict[str, Any]] | None = None  # facts that were not shown

    def progress(self, trainer: Trainer) -> None:
        """Show rows that were learned, if it is time."""
        self.meter.start(trainer)
        records = len(trainer.records.history)
        few = records <= _ALL_RECORDS or records & (records - 1) == 0
        self._show(lambda: self.meter.of_trainer(trainer), records > self._records and few)
        self._records = records

    def event(self, event: str, facts: Mapping[str, Any]) -> None:
        """Show an event; checkpoints are not shown if a line is overwritten."""
        if event in EVENTS:
            found = self.meter.see(event, facts)
            if found is not None:
                self._solved += 1  # lines 1, 2, 4, 8, ... are always shown
                self._show(lambda: found, self._solved & (self._solved - 1) == 0)
        elif event == "trained":
            self.finish()
        elif event == "reading":
            self._reading(facts)
        elif event == "candidate":  # the final fit of a race begins after the last one
            self.meter.began = time.monotonic()
            self.display.text(_text_of(event, facts))
        elif not (event == "checkpoint" and self.display.live):
            text = _text_of(event, facts)
            if text:
                self.display.text(text)

    def _reading(self, facts: Mapping[str, Any]) -> None:
        """Show the rows of a reading of `thresher.FeatureDiscovery`."""
        now = time.monotonic()
        if now - self._last >= self.display.interval:
            self._last, rows = now, facts.get("rows")
            of_all = f" of {rows:,}" if rows else ""
            self.display.overwrite(
                f"reading {facts['number']} of {facts['readings']}: {facts['examples']:,}{of_all} "
                f"rows, {duration(now - self.meter.began)}"
            )

    def finish(self) -> None:
        """Show the last state in the line that is overwritten, and end the line."""
        if self.display.live and self._waiting is not None:
            self.display.show(self._waiting())
        self._waiting = None
        self.display.close()

    def _show(self, facts: Callable[[], dict[str, Any]], important: bool) -> None:
        now = time.monotonic()
        if now - self._last < self.display.interval and not important:
            self._waiting = facts
            return
        self._last, self._waiting = now, None
        self.display.show(facts())


def _text_of(event: str, facts: Mapping[str, Any]) -> str:
    """Return an event as a line of text; empty: it is not shown."""
    if event == "warning":
        return f"warning: {facts['message']}"
    if event == "resumed":
        return f"continuing after {facts['examples']:,} examples"
    if event == "checkpoint":
        return f"checkpoint after {facts['examples']:,} examples ({facts['digest'][:12]})"
    if event == "pass" and facts["record"].valid_loss is not None:
        if "metric" in facts:
            name, value = facts["metric"], facts["value"]
            return f"pass {facts['number']}: {name} of the validation rows {value:.5f}"
        return f"pass {facts['number']}: loss on the validation rows {facts['loss']:.5f}"
    return str(facts.get("message", ""))
