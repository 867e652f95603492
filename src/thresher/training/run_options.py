"""Options of a call of fit that do not change its result: observer and checkpoints."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from thresher.atomic import check_place
from thresher.errors import ParameterError, setting
from thresher.training import checkpoint as checkpoints
from thresher.training.checkpoint import CheckpointPart, TrainingCheckpoint
from thresher.training.observer import Observer


@dataclass(frozen=True)
class RunOptions:
    """Observer, checkpoints and other options of a call of fit.

    Attributes
    ----------
    observer : Observer
        Receives progress, and may stop the run.
    checkpoint : str or None
        File to write the state of the run to; None: the run cannot be resumed.
    every : float
        Seconds between two checkpoints. With inf, a checkpoint is written only when the observer
        stops the run.
    resume : bool
        Continue from the checkpoint; if there is none, start from the beginning.
    names : bool
        Whether to look up the names of features, if the source has names.
    all_names : bool
        Whether to keep the names of zero weights, too, if they may become nonzero later.
    seed : int or None
        Seed of the shuffling of a source; None: it is drawn from `random_state`.
    part : CheckpointPart or None
        The place of the state within the file, if it is the file of a longer run.
    metric : str or None
        What early stopping judges the validation rows by; None: by their loss.
    """

    observer: Observer = field(default_factory=Observer)
    checkpoint: str | None = None
    every: float = 60.0
    resume: bool = False
    names: bool = True
    seed: int | None = None
    part: CheckpointPart | None = None
    metric: str | None = None
    all_names: bool = False

    @classmethod
    def of(
        cls,
        observer: Observer | None = None,
        checkpoint: str | PathLike[str] | None = None,
        every: float = 60.0,
        resume: bool = False,
        names: bool = True,
        seed: int | None = None,
        metric: str | None = None,
    ) -> RunOptions:
        """Check the arguments of `fit`, and return them as options."""
        if observer is not None and not isinstance(observer, Observer):
            raise ParameterError(
                parameter="observer", value=observer, allowed="a thresher.Observer"
            )
        if checkpoint is not None and not isinstance(checkpoint, str | PathLike):
            raise ParameterError(parameter="checkpoint", value=checkpoint, allowed="a path")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ParameterError(parameter="seed", value=seed, allowed="a whole number >= 0")
        if isinstance(every, bool) or not isinstance(every, int | float) or not every >= 0:
            raise ParameterError(parameter="every", value=every, allowed="a number of seconds >= 0")
        if resume and checkpoint is None:
            raise ParameterError(
                (setting("resume", True), " needs ", setting("checkpoint"), ", the file to "
                 "continue from"),
                parameter="checkpoint",
            )  # fmt: skip
        if metric is not None and not isinstance(metric, str):
            raise ParameterError(parameter="metric", value=metric, allowed="the name of a metric")
        if metric is not None:
            from thresher.evaluation.metric import full_name

            metric = full_name(metric)
        path = None if checkpoint is None else os.fspath(checkpoint)
        if path is not None:
            check_place(path)
        part = checkpoint if isinstance(checkpoint, CheckpointPart) else None
        watching = observer or Observer()
        return cls(watching, path, float(every), bool(resume), names, seed, part, metric)

    def of_fit(self) -> dict[str, Any]:
        """Return the arguments of `fit` for the observer and the checkpoint."""
        file = self.checkpoint if self.part is None else self.part
        return {
            "observer": self.observer, "checkpoint": file, "every": self.every,
            "resume": self.resume,
        }  # fmt: skip

    def write(self, saved: TrainingCheckpoint) -> str:
        """Write a checkpoint; return its digest."""
        assert self.checkpoint is not None
        return saved.write(self.checkpoint) if self.part is None else self.part.write(saved)

    def read(self) -> TrainingCheckpoint:
        """Read the checkpoint; raise FileNotFoundError if there is none."""
        assert self.checkpoint is not None
        return checkpoints.read(self.checkpoint) if self.part is None else self.part.read()
