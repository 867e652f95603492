"""The one place that all warnings of a command pass: it shows them, or makes them errors."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from thresher.cli.render.errors import shell_message
from thresher.cli.render.output import show, show_record
from thresher.cli.render.texts import as_json


class StrictError(Exception):
    """A warning that `--strict` made an error. It is no ValueError, so that no code handles it."""


class WarningSink:
    """Receives the warnings of a command; each text is shown once.

    Parameters
    ----------
    strict : bool
        Raise StrictError instead.
    events : bool
        Print JSON objects to standard output instead of lines to standard error.
    """

    def __init__(self, strict: bool = False, events: bool = False) -> None:
        self.strict, self.events = strict, events
        self.observer: Any = None  # shows warnings of Python while training runs
        self.refused: StrictError | None = None  # also if some code caught it
        self._seen: set[str] = set()

    def say(self, message: str | Warning, show: Callable[[str], None] | None = None) -> None:
        """Show a warning in the words of the shell.

        Parameters
        ----------
        message : str or Warning
        show : function, optional
            Shows the text, if the progress of the command knows a better way.
        """
        text = message if isinstance(message, str) else shell_message(message)
        if self.strict:
            self.refused = StrictError(f"{text} (--strict makes this warning an error)")
            raise self.refused
        if text in self._seen:
            return
        self._seen.add(text)
        (show or self._show)(text)

    def _show(self, text: str) -> None:
        if self.events:
            show_record(as_json({"event": "warning", "message": text}))
        else:
            show(f"warning: {text}", error=True)


_current = WarningSink()


def sink() -> WarningSink:
    """Return the sink of the command that is running."""
    return _current


def say(message: str | Warning) -> None:
    """Show a warning, or make it an error with `--strict`.

    Parameters
    ----------
    message : str or Warning
        A text, or a warning with facts, which is worded for the shell.
    """
    _current.say(message)


@contextlib.contextmanager
def warnings_of_command(strict: bool = False, events: bool = False) -> Iterator[None]:
    """Show all warnings of a command, also those of Python, in the words of the shell.

    Parameters
    ----------
    strict, events : bool
        As for `WarningSink`.
    """
    global _current
    before, _current = _current, WarningSink(strict, events)
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, UserWarning):
            if _current.observer is None:
                usual(message, category, *place, **more)
        elif _current.observer is not None:
            _current.observer.warn(message, category)
        else:
            _current.say(message)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield
        if _current.refused is not None:
            raise _current.refused
    finally:
        _current = before
