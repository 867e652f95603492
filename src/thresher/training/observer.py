"""Observers: they receive the events of training, and may stop it."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer


class Interrupted(Exception):
    """An observer stopped training, and a checkpoint was written.

    Parameters
    ----------
    examples : int
        Number of rows learned so far.
    """

    def __init__(self, examples: int = 0) -> None:
        super().__init__(f"interrupted after {examples:,} examples")
        self.examples = examples


class Observer:
    """Receives the events of training, and may stop it. The base class does nothing.

    Pass a subclass to ``fit(..., observer=...)`` to show progress, or to stop training.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import FTRLClassifier, Observer
    >>> class Passes(Observer):
    ...     def tell(self, event, **facts):
    ...         if event == "pass":
    ...             print(event, facts["number"])
    >>> X, y = np.eye(4), [0, 1, 0, 1]
    >>> _ = FTRLClassifier(passes=2, random_state=0).fit(X, y, observer=Passes())
    pass 1
    pass 2
    """

    def progress(self, trainer: Trainer) -> None:
        """Receive the progress after some rows have been learned.

        Parameters
        ----------
        trainer : Trainer
            The state of training: ``examples`` learned so far, passes done (``number``),
            ``mean_loss``, and the history of records (``records.history``).
        """

    def tell(self, event: str, **facts: Any) -> None:
        """Receive any other event.

        Parameters
        ----------
        event : {"pass", "record", "stage", "checkpoint", "resumed", "trained", "candidate", "note"}
            Rules that learn row by row send "pass", rules that need all rows send "record". A race
            of rules (`thresher.SparseClassifier`) sends "candidate".
        **facts
            Facts of the event: ``message`` of a note; ``number``, ``loss`` and ``record`` of a
            pass; the fields of `thresher.Progress` of a record; ``examples`` and ``digest`` of a
            checkpoint; ``mean_loss`` and ``seconds`` of finished training; ``number``,
            ``candidates``, ``name``, ``loss``, ``nonzeros`` and ``message`` of a candidate.
        """

    def warn(self, message: str | Warning, category: type[Warning] = UserWarning) -> None:
        """Receive a warning. By default a Python warning at the line that called Thresher.

        Parameters
        ----------
        message : str or Warning
            A text, or a warning with facts such as `thresher.errors.DataWarning`.
        category : type of warning
            The category of a text.
        """
        warnings.warn(message, category, stacklevel=_caller())

    def stops(self) -> bool:
        """Return whether to stop now; training then writes a checkpoint, if it has a file."""
        return False


def _caller() -> int:
    """Return the number of calls between `Observer.warn` and the code that called Thresher."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("thresher"):
        level, frame = level + 1, frame.f_back
    return level
