"""The loss on rows that are not learned from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from thresher import _core
from thresher.errors import DataError
from thresher.training.capacity import Room
from thresher.training.kept_weights import KeptWeights
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.data.matrix_source import MatrixSource
    from thresher.data.source import Source
    from thresher.training.plan import TrainingPlan


def mean_loss(
    source: Source | MatrixSource,
    plan: TrainingPlan,
    outputs: Outputs,
    room: Room,
    kinds: Mapping[str, str],
) -> tuple[float, int]:
    """Return the mean loss on all rows of a source, by their weights, and a digest of the rows.

    Parameters
    ----------
    source : Source or MatrixSource
    plan : TrainingPlan
    outputs : Outputs
        As they stand; of their weights, those that the model would keep.
    room : Room
        Of the outputs, which may have to grow for these rows.
    kinds : mapping
        What columns of tables are taken for.
    """
    total, weight, digest = 0.0, 0.0, 0
    kept = None if plan.target is None else KeptWeights(outputs, plan)
    for block in source.blocks(dtype=plan.dtype, kinds=kinds):
        room.see(block, outputs)
        targets = plan.labels.targets(block)
        digest = _core.mix_keys(digest, block.digest) if source.traced else 0
        weights = block.weights
        if weights is None and source.traced:  # the same order of summation with and without
            weights = np.ones(block.rows)
        asked = block.batch, targets, plan.losses, weights
        try:
            total += outputs.loss_on(*asked, plan.average) if kept is None else kept.loss(*asked)
        except _core.DataError as error:
            raise DataError(f"validation rows: {block.located(error)}") from None
        weight += float(block.rows if weights is None else weights.sum())
    if weight == 0:
        raise DataError(f"{source}: no rows to compute a loss on")
    return total / weight, digest
