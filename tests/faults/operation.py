"""An operation whose calls fail, and how a command of the program is called."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from thresher.cli import main

Run = tuple[str, ...] | Callable[[], str]


@dataclass(frozen=True)
class Operation:
    """One operation. All paths are relative to its folder.

    Attributes
    ----------
    run : tuple of str or function
        Words of a command, or a function; its result is compared.
    prepare : function
        Writes the inputs and earlier results.
    again : tuple of str
        Words that the command needs to be run after a failure that left a checkpoint.
    changes : tuple of str
        Files and folders that a failed run may change.
    unstable : tuple of str
        Files and folders whose bytes differ between good runs: a checkpoint, for one, holds the
        seconds of the run. Those that a failed run may change, too, may also be left or missing
        after a good one.
    together : tuple of str
        Files that get their names one after another at the end. If one cannot be renamed, those
        before it are new.
    check : function
        Checks `changes` after a failed run; raises an error if they are not as they must be.
    warns : str
        Words of a warning. A run that gives it may succeed with other bytes.
    named : bool
        Whether no file can be made without a name, as on some file systems.
    """

    run: Run
    prepare: Callable[[], None]
    again: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    unstable: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    check: Callable[[], object] = field(default=lambda: None)
    warns: str = ""
    named: bool = False

    def may_change(self, name: str) -> bool:
        """Whether a failed run may change a file."""
        return _is_of(name, self.changes)

    def is_other(self, errors: str) -> bool:
        """Whether a run has said that its results may be others."""
        return bool(self.warns) and self.warns in errors

    def is_stable(self, name: str) -> bool:
        """Whether all good runs write the same bytes."""
        return not _is_of(name, self.unstable)


def _is_of(name: str, given: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one}/") for one in given)


def command(*words: str) -> int:
    """Run a command of the program in this process; return its exit code."""
    before, handlers = sys.argv, [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)]
    sys.argv = ["thresher", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = before
        for number, handler in handlers:
            signal.signal(number, handler)
    return 0
