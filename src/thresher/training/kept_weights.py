"""Losses of models that keep only the largest weights of their learners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Losses, Targets
from thresher.model.model import Model, Output
from thresher.model.predict import learners_of
from thresher.sums import dot

if TYPE_CHECKING:
    from thresher.training.plan import TrainingPlan


class KeptWeights:
    """The weights that a model with `target_nnz` keeps.

    Parameters
    ----------
    kept : sequence of Output
    plan : TrainingPlan
    """

    def __init__(self, kept: Sequence[Output], plan: TrainingPlan) -> None:
        model = Model.of(kept, n_features=2**64, classes=None, loss=plan.loss)
        self._learners = learners_of(model, 0)

    def loss(
        self,
        batch: _core.Batch,
        targets: Targets,
        losses: Losses,
        weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the weighted sum over rows of the mean loss over outputs."""
        raw = np.column_stack([learner.predict(batch) for learner in self._learners])
        found = targets.row_losses(raw, losses)
        return float(found.sum()) if weights is None else dot(found, weights)
