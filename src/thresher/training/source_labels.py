"""How the labels of a source become targets: the object that converts them, by task and classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.labels import (
    ArrivingClasses,
    Labels,
    LabelSets,
    ManyClasses,
    NumericLabels,
    TwoClasses,
)
from thresher.data.matrix_source import MatrixSource
from thresher.errors import ParameterError, ReadOnceError
from thresher.losses import LOSSES, Task
from thresher.training.outputs_factory import OutputsFactory
from thresher.training.shared_outputs import SharedOutputs

if TYPE_CHECKING:
    from thresher.data.source import Source
    from thresher.training.fitted import FittedState
    from thresher.training.fitting import Specification


def labels_for(
    rule: str,
    task: Task,
    loss: str,
    params: Mapping[str, Any],
    source: Source | MatrixSource,
    owner: str,
    classes: Any = None,
) -> Labels:
    """Return the object that converts labels to targets; see `TrainingPlan.resolve`."""
    if task == "regressor":
        return NumericLabels(loss)
    low = LOSSES[loss].low
    multilabel = source.multilabel
    if isinstance(classes, str) and classes == "binary" and not multilabel:
        two = TwoClasses(low)
        if params.get("class_weight") == "balanced" and source.rereadable:
            two.counted = _counts_of_two(source)
        return two
    if classes is None and not source.rereadable and multilabel:
        classes = "arriving"
    if isinstance(classes, str):
        if classes not in ("binary", "arriving"):
            raise ParameterError(
                owner=owner,
                parameter="classes",
                value=classes,
                allowed="an array of labels, 'binary' or 'arriving'",
            )
        if source.rereadable:  # the source is read for its labels before training
            classes = None
        elif OutputsFactory(rule, params, None, 1, 1).is_shared(2):
            return ArrivingClasses(low, multilabel)
    if isinstance(classes, str) or (classes is None and not source.rereadable):
        raise ReadOnceError(
            f"{source} can be read only once, and its classes are not known",
            source=str(source),
            owner=owner,
            parameter="classes",
            hint="use partial_fit with classes=",
        )
    counted = None
    if classes is None:
        classes, counted = source.label_counts()
    labels: Labels = LabelSets(classes, low)
    if not multilabel:
        labels = ManyClasses(classes, low, tidied=not isinstance(source, MatrixSource))
    labels.counted = counted
    return labels


def known_labels(spec: Specification, source: Source | MatrixSource, before: FittedState) -> Labels:
    """Return the labels of a source, as they are known from the training that it continues."""
    if spec.task == "regressor":
        return NumericLabels(spec.loss)
    sets, low, classes = source.multilabel, LOSSES[spec.loss].low, before.classes
    assert classes is not None
    if sets != bool(before.multilabel):
        raise ParameterError(
            f"rows had {'one label' if sets else 'lists of labels'} when training started, and "
            f"have {'lists of labels' if sets else 'one'} now",
            owner=spec.owner,
        )
    in_memory = source.labels_given
    if not isinstance(before.outputs, SharedOutputs):
        return LabelSets(classes, low) if sets else ManyClasses(classes, low, tidied=False)
    by_lane = np.empty(len(classes), classes.dtype)
    by_lane[before.outputs.lane_of] = classes
    return ArrivingClasses(low, sets, by_lane.tolist(), classes.dtype if in_memory else None)


def _counts_of_two(source: Source | MatrixSource) -> tuple[NDArray[np.int64], int]:
    """Return the number of rows of each of two classes, and the number of all rows."""
    found, (counts, rows) = source.label_counts()
    ones = int(counts[found == 1].sum()) if found.dtype.kind in "fiub" else 0
    return np.array([rows - ones, ones], np.int64), rows
