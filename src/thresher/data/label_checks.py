"""Checks of labels: whether they are present, of one type, and among the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.errors import DataError, InputError, setting

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.matrix_source import LabelArray

LabelledRows: TypeAlias = "Block | LabelArray"

NO_LABEL = "the row has no label"


def tidy(labels: NDArray[Any]) -> NDArray[Any]:
    """Return floats that are all whole numbers as integers: a label prints as 3, not as 3.0."""
    if labels.dtype.kind == "f":
        whole = labels.astype(np.int64)
        if (whole == labels).all():
            return whole
    return labels


def single_labels(block: LabelledRows) -> NDArray[Any]:
    """Return one label per row; raise InputError if rows have lists of labels."""
    labels: NDArray[Any] | None = block.labels
    if labels is None:
        raise InputError(
            "rows have lists of labels",
            place=block.label_place(0),
            hint=("set ", setting("multilabel", True), " to learn them"),
        )
    return labels


def distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the labels that occur, in increasing order; fast if there are two whole numbers.

    Parameters
    ----------
    labels : array of shape (rows,)

    Examples
    --------
    >>> distinct(np.array([1, -1, 1])).tolist()
    [-1, 1]
    """
    if labels.dtype == np.int64 and labels.flags.c_contiguous:
        pair = _core.two_values(labels)
        if pair is not None and pair[0] != pair[1]:
            return np.array(pair[:2])
    elif labels.dtype.kind in "iub" and len(labels):
        low, high = labels.min(), labels.max()
        if low != high and ((labels == low) | (labels == high)).all():
            return np.array([low, high], labels.dtype)
    return np.unique(labels)


def places_of(
    classes: NDArray[Any], labels: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the index of each label among the classes, and whether it is one of them."""
    words = labels.dtype.kind not in "fiub"
    numbers = np.zeros(len(labels), np.intp)
    if words == (classes.dtype.kind in "fiub"):  # numbers and strings: none is among the classes
        return numbers, np.zeros(len(labels), bool)
    if not words and len(classes) == 2:  # NaN equals no class
        second = labels == classes[1]
        return second.astype(np.intp), second | (labels == classes[0])
    text = words and classes.dtype.kind != "S"
    if labels.dtype.kind == "O":
        known = np.array([isinstance(label, str) for label in labels], bool)
    elif labels.dtype.kind == "f":
        known = np.asarray(labels == labels, bool)
    else:  # no label is missing
        found = labels.astype(str, copy=False) if text else labels
        places = np.minimum(np.searchsorted(classes, found), len(classes) - 1)
        return places, np.asarray(classes[places] == found)
    found = labels[known].astype(str) if text else labels[known]
    places = np.minimum(np.searchsorted(classes, found), len(classes) - 1)
    numbers[known] = places
    known[known] = classes[places] == found
    return numbers, known


def two_targets(
    classes: NDArray[Any], labels: NDArray[Any], low: float
) -> NDArray[np.float64] | None:
    """Return the targets of two classes in one pass: `low` and 1.

    Parameters
    ----------
    classes : array of two labels
    labels : array of shape (rows,)
    low : float

    Returns
    -------
    array of float64, or None
        None: some labels are not among the classes, or the labels are not of these number types.

    Examples
    --------
    >>> two_targets(np.array([0, 1]), np.array([1, 0, 1]), -1.0).tolist()
    [1.0, -1.0, 1.0]
    """
    plain = labels.dtype in (np.int64, np.float64) and labels.flags.c_contiguous
    if not plain or classes.dtype not in (labels.dtype, np.int64):
        return None
    first, second = classes.astype(labels.dtype).tolist()
    return _core.two_targets(labels, first, second, low)


def refuse_words(block: LabelledRows, y: NDArray[Any], expected: str) -> None:
    """Raise DataError if labels are not numbers."""
    if y.dtype.kind not in "fiub" and len(y):
        what = f"the label is {y[:1].tolist()[0]!r}; {expected}"
        what = NO_LABEL if missing(y[0]) else what
        raise DataError(f"{block.label_place(0)}: {what}")


def shown(label: Any) -> str:
    """Return a label as text for a message."""
    return f"{label:g}" if isinstance(label, float | np.floating) else str(label)


def missing(label: Any) -> bool:
    """Tell whether a label is missing: NaN or None."""
    return label is None or (isinstance(label, float) and bool(np.isnan(label)))


def missing_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell for each label of an array whether it is missing: NaN or None."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels), bool)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), bool)
    return np.array([missing(label) for label in labels.tolist()], bool)


def no_label(block: LabelledRows, row: int) -> DataError:
    """Return the error of a training row without a label; files can leave such rows out."""
    hint = ("leave such rows out with ", setting("unlabelled", "skip", "scan"))
    in_file = hasattr(block, "file")
    return InputError(NO_LABEL, place=block.label_place(row), hint=hint if in_file else None)


def refuse_missing(block: LabelledRows, none: NDArray[np.bool_]) -> None:
    """Raise DataError for the first row without a label."""
    if none.any():
        raise no_label(block, int(none.argmax()))


def refuse(block: LabelledRows, bad: NDArray[np.bool_], what: Callable[..., str | None]) -> None:
    """Raise DataError for the first bad row.

    Parameters
    ----------
    block : Block
    bad : array of bool
        For each row, whether it is bad.
    what : callable
        Returns what is wrong with a row; None: it has no label.
    """
    if bad.any():
        row = int(bad.argmax())
        text = what(row)
        if text is None:
            raise no_label(block, row)
        raise DataError(f"{block.label_place(row)}: {text}")
