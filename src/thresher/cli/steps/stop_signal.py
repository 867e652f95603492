"""Stop a command at Ctrl-C."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

_PAUSE = 1.0  # seconds in which further signals are the same request


class StopSignal:
    """Ctrl-C, SIGTERM, or a terminal that was closed: the first one stops after the current block.

    One that comes a second or more after it raises KeyboardInterrupt at once; earlier ones change
    nothing, as some programs send SIGTERM and SIGHUP together. The first one raises it, too, while
    `checked` is False, that is, while no code checks `requested`. A signal that is ignored stays
    ignored: nohup ignores SIGHUP, and a shell without job control SIGINT for ``command &``.
    """

    def __init__(self) -> None:
        self.requested = self.checked = False
        self._since = 0.0  # the time of the first one
        self._terminals = [number for number in (1, 2) if os.isatty(number)]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._leave_terminal()
        if self.requested and time.monotonic() < self._since + _PAUSE:
            return
        if self.requested or not self.checked:
            raise KeyboardInterrupt
        self.requested, self._since = True, time.monotonic()

    def _leave_terminal(self) -> None:
        """Print nothing more to a terminal that was closed: it would be an error."""
        if self._terminals:
            nothing = os.open(os.devnull, os.O_WRONLY)
            for number in self._terminals:
                os.dup2(nothing, number)
            os.close(nothing)
            self._terminals = []
