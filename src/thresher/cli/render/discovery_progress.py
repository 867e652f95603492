"""Progress of `thresher discover`: a line that is overwritten, or lines in a file."""

from __future__ import annotations

import sys
import time
from typing import Any

from thresher.cli.render.output import show
from thresher.cli.render.progress import TrainingProgress
from thresher.cli.steps.stop_signal import StopSignal
from thresher.discovery import DiscoveryWarning

_LIVE_SECONDS, _LINE_SECONDS = 0.2, 5.0  # between two lines
_OWNER = "FeatureDiscovery: "  # of messages for Python


class DiscoveryProgress(TrainingProgress):
    """Shows the number of rows read, notes and warnings on standard error.

    Checks that failed are part of the result, and not shown here.

    Parameters
    ----------
    quiet : bool
        Show only warnings.
    """

    def __init__(self, quiet: bool) -> None:
        self.live = sys.stderr.isatty()
        super().__init__(StopSignal(), 1, _LIVE_SECONDS if self.live else _LINE_SECONDS)
        self.quiet, self._open = quiet, False
        self._last = time.monotonic()

    def warn(self, message: str | Warning, category: type[Warning] = UserWarning) -> None:
        """Show a warning that is not a failed check."""
        if not issubclass(category, DiscoveryWarning):
            text = message.removeprefix(_OWNER) if isinstance(message, str) else message
            super().warn(text, category)

    def show_event(self, event: str, facts: dict[str, Any]) -> None:
        """Print an event."""
        if event == "reading":
            self._reading(facts)
            return
        if event == "warning":
            self._print(f"warning: {facts['message']}")
        elif not self.quiet and event == "resumed":
            self._print(f"continuing after {facts['examples']:,} rows")
        elif not self.quiet and event == "checkpoint" and not self.live:
            self._print(f"checkpoint after {facts['examples']:,} rows ({facts['digest'][:12]})")
        elif not self.quiet and "message" in facts:
            self._print(facts["message"])

    def _reading(self, facts: dict[str, Any]) -> None:
        now = time.monotonic()
        if self.quiet or now - self._last < self.interval:
            return
        self._last = now
        speed = facts["examples"] / max(now - self._began, 1e-9)
        if facts["number"] > 1:
            speed = 0.0  # the time of the readings before
        rows = f"reading {facts['number']} of {facts['readings']}: {facts['examples']:,} rows"
        rows += f", {speed:,.0f} rows/s" if speed else ""
        if self.live:
            print(f"\r{rows}\x1b[K", end="", file=sys.stderr, flush=True)
            self._open = True
        else:
            print(rows, file=sys.stderr, flush=True)

    def _print(self, text: str) -> None:
        self.close()
        show(text, error=True)

    def close(self) -> None:
        """Erase the line that is being overwritten."""
        if self._open:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        self._open = False
