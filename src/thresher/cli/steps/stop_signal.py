"""Stop a command at Ctrl-C."""

from __future__ import annotations

import os
import signal
from types import FrameType


class StopSignal:
    """Ctrl-C, SIGTERM, or a terminal that was closed: the first one stops after the current block.

    A second one raises KeyboardInterrupt at once. So does the first one while `checked` is False,
    that is, while no code checks `requested`. A signal that is ignored stays ignored: nohup ignores
    SIGHUP, and a shell without job control ignores SIGINT for ``command &``.
    """

    def __init__(self) -> None:
        self.requested = self.checked = False
        self._terminals = [number for number in (1, 2) if os.isatty(number)]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._leave_terminal()
        if self.requested or not self.checked:
            raise KeyboardInterrupt
        self.requested = True

    def _leave_terminal(self) -> None:
        """Print nothing more to a terminal that was closed: it would be an error."""
        if self._terminals:
            nothing = os.open(os.devnull, os.O_WRONLY)
            for number in self._terminals:
                os.dup2(nothing, number)
            os.close(nothing)
            self._terminals = []
