"""Weights of rows, those of their classes included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError, setting
from thresher.training.labels import Arriving, Labels
from thresher.training.targets import Targets

if TYPE_CHECKING:
    from thresher.data.block import Block


def row_weights(
    block: Block, targets: Targets, labels: Labels, by_class: Mapping[Any, float] | None
) -> NDArray[np.float64] | None:
    """Return the weights of the rows of a block, times those of their classes; None: all 1.

    Parameters
    ----------
    block : Block
    targets : Targets
        Of the block.
    labels : Labels
    by_class : mapping or None
        Weights of classes; those that are not named weigh 1.
    """
    if not by_class:
        return block.weights
    classes = labels.classes
    assert classes is not None
    unknown = set(by_class) - set(classes.tolist())
    if unknown and not isinstance(labels, Arriving):
        raise ParameterError(
            (setting("class_weight"), f" has weights of {sorted(map(str, unknown))}, which are no "
             f"classes; these are {classes.tolist()[:20]}"),
            parameter="class_weight",
            value=dict(by_class),
        )  # fmt: skip
    factors = np.array([float(by_class.get(label, 1.0)) for label in classes.tolist()])
    weights: NDArray[np.float64] = factors[targets.single()]
    return weights if block.weights is None else weights * block.weights
