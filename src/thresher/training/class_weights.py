"""Weights of rows: sample weights times class weights; a weight repeats its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.labels import ArrivingClasses, Labels, TwoClasses
from thresher.data.targets import Targets
from thresher.errors import BalanceError, ParameterError, setting

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.matrix_source import MatrixBlock

_MOST_STEPS = 32  # of a row, as in the core (core/repeats.hpp)


def class_factors(
    class_weight: Any, labels: Labels, owner: str, strict: bool = True
) -> NDArray[np.float64] | None:
    """Return the factor of each class for the weights of its rows; None: all are 1.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    labels : Labels
        With `counted` if class_weight is "balanced".
    owner : str
        The class that has the parameter, for messages.
    strict : bool
        Whether a weight of an unknown class is an error even if every known class has a weight.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        if labels.counted is None:
            raise BalanceError(
                (setting("class_weight", "balanced"), " needs the number of rows of each class "
                 "before training, and so rows that can be read twice"),
                owner=owner,
                parameter="class_weight",
                value="balanced",
                hint="give a dict of weights",
            )  # fmt: skip
        counts, rows = labels.counted
        return np.asarray(rows / (len(counts) * np.maximum(counts, 1).astype(np.float64)))
    if not isinstance(class_weight, dict):
        raise ParameterError(
            owner=owner,
            parameter="class_weight",
            value=class_weight,
            allowed="a dict, 'balanced' or None",
        )
    classes = labels.classes
    if classes is None:
        raise ParameterError(
            (setting("class_weight"), " needs classes, and the task is a regression"),
            owner=owner,
            parameter="class_weight",
            value=class_weight,
        )
    # With `ArrivingClasses` labels, unknown classes may still arrive.
    several = [-1, 0, 1] if isinstance(labels, TwoClasses) else classes.tolist()
    unknown = [label for label in class_weight if label not in several]
    lacking = any(label not in class_weight for label in several)
    if unknown and not isinstance(labels, ArrivingClasses) and (strict or lacking):
        raise ParameterError(
            (setting("class_weight"), f" has weights of {sorted(map(str, unknown))}, which are not "
             f"classes; the classes are {classes.tolist()[:20]}"),
            owner=owner,
            parameter="class_weight",
            value=class_weight,
        )  # fmt: skip
    factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], np.float64)
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ParameterError(
            (setting("class_weight"), f" must have finite numbers >= 0; got {class_weight!r}"),
            owner=owner,
            parameter="class_weight",
            value=class_weight,
        )
    return factors


def row_weights(
    block: Block | MatrixBlock, targets: Targets, factors: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the weights of the rows of a block, times those of their classes; None: all are 1.

    Parameters
    ----------
    block : Block or MatrixBlock
    targets : Targets
        The targets of the block's rows.
    factors : array or None
        The result of `class_factors`.
    """
    if factors is None:
        return block.weights
    weights: NDArray[np.float64] = factors[targets.single()]
    return weights if block.weights is None else weights * block.weights


def steps_in(weights: NDArray[np.float64] | None, rows: int) -> int:
    """Return how many steps rows with these weights make in a pass.

    Examples
    --------
    >>> steps_in(None, 3)
    3
    >>> steps_in(np.array([0.0, 0.5, 2.0, 2.5, 1000.0]), 5)
    38
    """
    if weights is None:
        return rows
    return int(np.ceil(np.clip(np.nan_to_num(weights), 0.0, _MOST_STEPS)).sum())
