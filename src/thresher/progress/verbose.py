"""What `verbose` of estimators, searches and selections prints."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from thresher.progress.display import display_for_stderr
from thresher.progress.lines import ProgressLines
from thresher.progress.texts import bar, duration
from thresher.training.observer import Observer
from thresher.training.run_options import RunOptions

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer

_BAR = 22  # characters


class VerboseObserver(Observer):
    """Prints progress to standard error, and passes everything on to another observer.

    Parameters
    ----------
    inner : Observer
    passes : int or None
        Passes that a rule that needs all rows makes at most, if known.
    """

    def __init__(self, inner: Observer, passes: int | None = None) -> None:
        self.inner, self._lines = inner, ProgressLines(passes, display_for_stderr())

    def progress(self, trainer: Trainer) -> None:
        """Show rows that were learned."""
        self._lines.progress(trainer)
        self.inner.progress(trainer)

    def tell(self, event: str, **facts: Any) -> None:
        """Show an event."""
        self._lines.event(event, facts)
        self.inner.tell(event, **facts)

    def warn(self, message: str | Warning, category: type[Warning] = UserWarning) -> None:
        """Pass a warning on; it starts in a new line."""
        self._lines.display.close()
        self.inner.warn(message, category)

    def stops(self) -> bool:
        """Return whether to stop now."""
        return self.inner.stops()

    def close(self) -> None:
        """End the line that is being overwritten, if there is one."""
        self._lines.finish()


@contextlib.contextmanager
def shown(options: RunOptions, verbose: Any, passes: int | None = None) -> Iterator[RunOptions]:
    """Yield the options of a fit; with `verbose`, its observer prints progress.

    Parameters
    ----------
    options : RunOptions
    verbose : int
        0: nothing is printed.
    passes : int or None
        As for `VerboseObserver`.

    Examples
    --------
    >>> with shown(RunOptions(), verbose=0) as options:
    ...     type(options.observer).__name__
    'Observer'
    """
    if not verbose or isinstance(options.observer, VerboseObserver):
        yield options
        return
    observer = VerboseObserver(options.observer, passes)
    try:
        yield replace(options, observer=observer)
    finally:
        observer.close()


class StatusLine:
    """One line about a search or a selection: overwritten on a terminal, else printed at times.

    A context manager, which erases the line at the end.

    Parameters
    ----------
    verbose : int
        0: nothing is printed.

    Examples
    --------
    >>> with StatusLine(verbose=0) as line:
    ...     line.show("pair 3 of 50", 0.06)
    """

    def __init__(self, verbose: Any) -> None:
        self._display = display_for_stderr() if verbose else None
        self._began, self._last = time.monotonic(), 0.0

    def show(self, text: str, share: float | None = None, last: bool = False) -> None:
        """Show a text, if it is time.

        Parameters
        ----------
        text : str
        share : float, optional
            Share of the work that is done.
        last : bool
            Show it in any case, as a line that stays.
        """
        now, display = time.monotonic(), self._display
        if display is None or (not last and now - self._last < display.interval):
            return
        self._last = now
        if share is not None and 0 < share < 1:
            text += f", {duration((now - self._began) * (1 - share) / share)} left"
        if not display.live:
            display.text(text)
            return
        drawn = bar(share, _BAR)
        display.overwrite(f"{drawn} {text}" if drawn else text)
        if last:
            display.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._display is not None:
            self._display.erase()
