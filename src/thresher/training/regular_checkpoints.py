"""Checkpoints from time to time. A full disk does not end the run: it warns once, and goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

from thresher.training.run_options import RunOptions


class RegularCheckpoints:
    """Writes a checkpoint when it is due.

    Parameters
    ----------
    options : RunOptions
        The file, the seconds between two checkpoints, and the observer that is warned.
    """

    def __init__(self, options: RunOptions) -> None:
        self.options = options
        self._last = time.monotonic()
        self._failing = False

    def write_if_due(self, write: Callable[[], object]) -> None:
        """Write a checkpoint if it is due.

        If it cannot be written, the first attempt warns, and the later ones are silent until one
        succeeds.

        Parameters
        ----------
        write : callable
            Writes the checkpoint; raises OSError if it cannot.
        """
        due = time.monotonic() - self._last >= self.options.every
        if self.options.checkpoint is None or not due:
            return
        try:
            write()
            if self._failing:
                self.options.observer.tell("note", message="checkpoints are written again")
            self._failing = False
        except OSError as error:  # for example a full disk: the next attempt may succeed
            if not self._failing:
                self.options.observer.warn(
                    f"no checkpoint was written: {error}; the run goes on, and tries again"
                )
            self._failing = True
        self._last = time.monotonic()
