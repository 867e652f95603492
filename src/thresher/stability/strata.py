"""Classes of the rows, and the strata that both halves get an equal share of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets


def classes_and_strata(
    y: NDArray[Any], *, stratify: bool, owner: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labels, and the number of each row's class, or 0 if it does not matter.

    `owner` is who needs them, for the message.
    """
    if y.dtype.kind not in "iubUS":  # whole numbers and words are labels
        check_classification_targets(y)
    classes, numbers_of, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        raise ValueError(
            f"{owner} needs rows of at least 2 classes; y has one class, {classes.tolist()[0]!r}"
        )
    if not stratify:
        return classes, np.zeros(len(y), np.int64)
    if counts.min() < 2:
        label = classes[counts.argmin()].item()
        raise ValueError(
            f"{owner} needs at least 2 rows of each class, one for each half; class {label!r} has 1"
        )
    return classes, np.asarray(numbers_of)
