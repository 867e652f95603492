"""Receives the events of training, and may stop it."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer


class Interrupted(Exception):
    """Training was asked to stop, and did, after writing a checkpoint.

    Parameters
    ----------
    examples : int
        Rows learned so far.
    """

    def __init__(self, examples: int = 0) -> None:
        super().__init__(f"interrupted after {examples:,} examples")
        self.examples = examples


class Observer:
    """Is told of training, and may stop it. Does nothing: the command line overrides it.

    Give one to ``fit(..., observer=...)`` to show progress, or to stop at a time of your choice.

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
        """Tell that some rows have been learned, and a checkpoint could be written here.

        Parameters
        ----------
        trainer : Trainer
            Knows where training stands: ``examples`` learned so far, passes done (``number``),
            ``mean_loss``, and the history of records (``records.history``).
        """

    def tell(self, event: str, **facts: Any) -> None:
        """Tell of anything else.

        Parameters
        ----------
        event : {"pass", "record", "checkpoint", "resumed", "trained", "note"}
            "pass" comes from rules that learn row by row, "record" from those that need all rows.
        **facts
            What there is to say: ``message`` of a note; ``number``, ``loss`` and ``record`` of a
            pass; the fields of `thresher.Progress` of a record; ``examples`` and ``digest`` of a
            checkpoint; ``mean_loss`` and ``seconds`` of training that has ended.
        """

    def warn(self, message: str, category: type[Warning] = UserWarning) -> None:
        """Warn of something. By default a Python warning, at the line that called Thresher.

        Parameters
        ----------
        message : str
        category : type of warning
        """
        warnings.warn(message, category, stacklevel=_caller())

    def stops(self) -> bool:
        """Tell whether to stop now. Training then writes a checkpoint, where one is wanted."""
        return False


def _caller() -> int:
    """Return how many calls lie between `Observer.warn` and the code that called Thresher."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("thresher"):
        level, frame = level + 1, frame.f_back
    return level
