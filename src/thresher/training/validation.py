"""The loss on validation rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from thresher import _core
from thresher.data.unseen_labels import UnseenLabels
from thresher.errors import DataError
from thresher.model.model import Output
from thresher.training.capacity import Capacity
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
    capacity: Capacity,
    kinds: Mapping[str, str],
    kept: Sequence[Output] | None = None,
    warn: Callable[[Warning], None] | None = None,
    computed: bool = True,
) -> tuple[float, int]:
    """Return the weighted mean loss on all rows of a source, and a digest of the rows.

    Parameters
    ----------
    source : Source or MatrixSource
    plan : TrainingPlan
    outputs : Outputs
        Only the weights that the model would keep are used.
    capacity : Capacity
        Makes the outputs grow for new features of these rows.
    kinds : mapping
        The kind of each column of a table.
    kept : sequence of Output, optional
        Weights to use instead of those of the outputs.
    warn : function, optional
        Called with a warning if training did not see the labels of some rows.
    computed : bool
        As in `InputDigests`.
    """
    unseen = UnseenLabels()
    total, weight, digest = 0.0, 0.0, 0
    if kept is None and plan.target is not None:
        kept = outputs.outputs(plan.average, plan.target)
    few = None if kept is None else KeptWeights(kept, plan)
    for block in source.blocks(dtype=plan.dtype, kinds=kinds):
        capacity.grow_for(block, outputs)
        targets, known = unseen.targets(plan.labels, block)
        if source.traced:
            digest = _core.mix_keys(digest, block.digest if computed else block.stored_digest)
        weights = block.weights
        if weights is None and source.traced:  # the same summation order as with weights
            weights = np.ones(block.rows)
        if len(targets) == 1 and not known.all():  # these rows are left out
            weights = np.where(known, 1.0 if weights is None else weights, 0.0)
        rows = block.batch, targets, outputs.losses(plan.losses), weights
        try:
            total += outputs.loss_on(*rows, plan.average) if few is None else few.loss(*rows)
        except _core.DataError as error:
            raise DataError(f"validation rows: {block.located(error)}") from None
        weight += float(block.rows if weights is None else weights.sum())
    if weight == 0:
        raise DataError(f"{source}: no rows to compute a loss on")
    warning = unseen.warning("validation rows", left_out=plan.labels.outputs == 1)
    if warn is not None and warning is not None:
        warn(warning)
    return total / weight, digest
