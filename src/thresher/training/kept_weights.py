"""Losses of models that keep only the largest weights of their learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Losses, Targets
from thresher.model.model import Model
from thresher.model.predict import learners_of
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.training.plan import TrainingPlan


class KeptWeights:
    """The weights that a model with `target_nnz` keeps of the current outputs.

    Parameters
    ----------
    outputs : Outputs
    plan : TrainingPlan
    """

    def __init__(self, outputs: Outputs, plan: TrainingPlan) -> None:
        kept = outputs.outputs(plan.average, plan.target)
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
        return float(found.sum() if weights is None else found @ weights)
