"""Classes and strata of rows; both halves get equally many rows of each stratum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets


def classes_and_strata(
    y: NDArray[Any], *, stratify: bool, owner: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labels, and the stratum of each row: its class number, or 0 without strata.

    `owner` is the class name in errors.
    """
    if y.dtype.kind not in "iubUS":  # whole numbers and strings are always labels
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
            f"{owner} needs at least 2 rows of each class, one per half; class {label!r} has 1"
        )
    return classes, np.asarray(numbers_of)
