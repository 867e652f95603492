"""The interface of training in a search: lanes, or plain fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from thresher.search.grid import GridPoint
from thresher.search.model_groups import ModelResult
from thresher.search.progress_reporter import ProgressReporter
from thresher.training.run_options import RunOptions


class Finished(NamedTuple):
    """A model that was trained and scored.

    Attributes
    ----------
    point : GridPoint
    split : int
        Number of the split.
    result : ModelResult
    model : estimator or None
        The fitted model, if it learned from all rows and is kept.
    """

    point: GridPoint
    split: int
    result: ModelResult
    model: Any


class Fits(ABC):
    """How some points of a grid are trained and scored on the splits of the rows."""

    @abstractmethod
    def plan(self, points: Sequence[GridPoint]) -> list[Any]:
        """Return the groups of models that train together, without training them."""

    @abstractmethod
    def go(self, group: Any, report: ProgressReporter, run: RunOptions) -> Iterator[Finished]:
        """Train and score the models of a group; `run` has the checkpoint."""
