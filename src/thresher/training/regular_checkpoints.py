"""Checkpoints from time to time. A full disk does not end the run: it warns once, and goes on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from thresher.training.run_options import RunOptions


def not_written(error: OSError) -> str:
    """Return the words of a warning that a checkpoint could not be written.

    Examples
    --------
    >>> not_written(OSError(28, "No space left on device", "run.checkpoint"))
    'no checkpoint was written: run.checkpoint: No space left on device; the run goes on, and ...'
    """
    file = f"{os.fspath(error.filename)}: " if isinstance(error.filename, str | os.PathLike) else ""
    why = error.strerror or error
    return f"no checkpoint was written: {file}{why}; the run goes on, and tries again"


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
                self.options.observer.warn(not_written(error))
            self._failing = True
        self._last = time.monotonic()
