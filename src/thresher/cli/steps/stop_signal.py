"""Stop a command at Ctrl-C."""

from __future__ import annotations

import signal
from types import FrameType


class StopSignal:
    """Ctrl-C or SIGTERM: the first one stops training after the current block.

    A second one raises KeyboardInterrupt at once. So does the first one while `checked` is False,
    that is, while no code checks `requested`.
    """

    def __init__(self) -> None:
        self.requested = self.checked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested or not self.checked:
            raise KeyboardInterrupt
        self.requested = True
