"""Centring of the rows by their mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.errors import ReadOnceError, setting
from thresher.training.hooks import Hooks
from thresher.training.separate_outputs import SeparateOutputs

if TYPE_CHECKING:
    from thresher.training.trainer import Trainer


def make_hooks(params: Mapping[str, Any], mean: Any = None) -> Hooks:
    """Return the hooks of a rule with the parameter `center`."""
    return Centring(mean) if params["center"] else Hooks()


class Centring(Hooks):
    """Gives the learners the mean of the rows before the first step.

    Parameters
    ----------
    mean : array of shape (features,), optional
        The mean of the rows; by default it is computed from the source.
    """

    def __init__(self, mean: Any = None) -> None:
        self.mean = mean

    def begin(self, trainer: Trainer) -> None:
        """Pass the mean to the learners."""
        source, mean, owner = trainer.source, self.mean, trainer.plan.owner
        if mean is None and not source.rereadable:
            raise ReadOnceError(
                (setting("center", True), f" must read the rows twice, and {source} can be read "
                 "only once"),
                source=str(source),
                owner=owner,
                parameter="center",
                value=True,
            )  # fmt: skip
        if mean is None:
            keys, means = source.mean()
        else:
            mean = np.ascontiguousarray(mean, np.float64).ravel()
            width = len(mean) if trainer.capacity.grows else trainer.plan.width
            if mean.shape != (width,) or not np.isfinite(mean).all():
                raise ValueError(f"mean must be {width} finite numbers, one for each feature")
            keys = np.flatnonzero(mean).astype(np.uint64)
            means = mean[keys]
        trainer.capacity.widen(int(keys[-1]) + 1 if len(keys) else 0, trainer.outputs)
        assert isinstance(trainer.outputs, SeparateOutputs)
        for learner in trainer.outputs:
            learner.center(keys, means)
