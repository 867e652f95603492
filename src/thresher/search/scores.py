"""The interface of scoring: scores of models that trained together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from thresher.data.labels import Labels
from thresher.search.model_groups import ModelJob
from thresher.search.progress_reporter import ProgressReporter
from thresher.search.trained import TrainedModels
from thresher.training.hooks import Hooks
from thresher.training.records import ANY


class Scored(NamedTuple):
    """The scores of a job.

    Attributes
    ----------
    job : int
        Its number in the group.
    scores : float or dict of float
    failure : str
        Why it has no scores; empty if it has scores.
    seconds : float
        Time of scoring it.
    """

    job: int
    scores: Any
    failure: str
    seconds: float


class Scores(ABC):
    """Scores the models of a search, one group after the other."""

    def begin(self, jobs: Sequence[ModelJob], labels: Labels) -> Hooks:
        """Begin the models of a group; return hooks for the trainer."""
        return Hooks()

    def at_once(self, lanes: int) -> int:
        """Return how many rows `lanes` lanes may learn at once."""
        return ANY

    @abstractmethod
    def of(self, trained: TrainedModels, report: ProgressReporter) -> Iterator[Scored]:
        """Yield the scores of trained models."""

    @abstractmethod
    def of_model(self, model: Any, split: int) -> Any:
        """Return the scores of a fitted estimator on the held-out rows of a split."""
