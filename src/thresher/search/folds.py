"""Splits of rows: the rows that a model learns from, and the rows that it is scored on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from thresher.data.label_checks import shown
from thresher.data.row_folds import fold_numbers as fold_numbers
from thresher.data.unseen_labels import UnseenLabelWarning
from thresher.errors import ParameterError, SplitError, setting


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to score on.

    Attributes
    ----------
    train, test : array of int64
        Numbers of rows.
    sorted : bool
        Whether `train` is strictly increasing.
    repeats : bool
        Whether a row is in `train` more than once.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    sorted: bool
    repeats: bool

    def trains_separately(self, shuffle: Any) -> bool:
        """Tell whether its models need their own order of rows, and so train separately."""
        return self.repeats if shuffle is not False else not self.sorted


def split_of(train: Any, test: Any, rows: int) -> Split:
    """Return a split from row numbers or masks."""
    train, test = (_numbers(part, rows) for part in (train, test))
    increasing = bool((np.diff(train) > 0).all())
    repeats = not increasing and len(np.unique(train)) < len(train)
    return Split(train, test, increasing, repeats)


def splits_of(parts: Iterable[tuple[Any, Any]], rows: int) -> list[Split]:
    """Return the splits of a splitter; raise ParameterError if there are none."""
    splits = [split_of(train, test, rows) for train, test in parts]
    if not splits:
        raise ParameterError("cv: there are no splits")
    return splits


def _numbers(part: Any, rows: int) -> NDArray[np.int64]:
    part = np.asarray(part)
    numbers = np.flatnonzero(part) if part.dtype == bool else part.astype(np.int64)
    numbers = np.where(numbers < 0, numbers + rows, numbers)
    if len(numbers) == 0:
        raise ParameterError(
            (setting("cv"), ": a split has no rows to learn from, or none to score on"),
            parameter="cv",
        )
    if numbers.min() < 0 or numbers.max() >= rows:
        raise ParameterError(
            (setting("cv"), f": a split has rows that do not exist; there are {rows}"),
            parameter="cv",
        )
    return np.ascontiguousarray(numbers, np.int64)


def seen_by(splits: list[Split], rows: int) -> NDArray[np.uint8]:
    """Return an array of shape (rows, splits): 1 if a split learns from a row, else 0."""
    seen = np.zeros((rows, len(splits)), np.uint8)
    for number, split in enumerate(splits):
        seen[split.train, number] = 1
    return seen


def check_classes(counts: NDArray[np.int64], classes: NDArray[Any]) -> None:
    """Warn if the training rows of a split lack one of several classes.

    Its test rows of this class count as errors. With two classes, nothing could be learned: that
    is a SplitError.

    Parameters
    ----------
    counts : array of shape (splits, classes)
        Number of training rows.
    classes : array
    """
    lacking = np.argwhere(counts == 0)
    if len(classes) > 2 and len(lacking) and (np.count_nonzero(counts, axis=1) >= 2).all():
        names = [shown(label) for label in np.unique(classes[lacking[:, 1]]).tolist()]
        more = f" and {len(names) - 5:,} others" if len(names) > 5 else ""
        warnings.warn(
            UnseenLabelWarning(
                f"the training rows of {len(set(lacking[:, 0].tolist()))} of {len(counts)} splits "
                f"have no row of the class {', '.join(names[:5])}{more}; test rows of it count as "
                f"errors",
                hint=("use fewer splits with ", setting("cv"), ", or leave the class out"),
            ),
            stacklevel=2,
        )
        return
    for split, number in lacking[:1]:
        raise SplitError(
            (setting("cv"), f": the training part of split {split} has no row of class "
             f"{classes.tolist()[number]!r}"),
            parameter="cv",
            hint="use fewer or stratified splits, or leave the class out",
        )  # fmt: skip


def check_split_classes(y: Any, splits: list[Split], task: str) -> None:
    """Raise SplitError if the training rows of a split lack one of the classes of all rows.

    Rows with any number of labels may lack a label.

    Parameters
    ----------
    y : labels of all rows
    splits : list of Split
    task : {"classifier", "regressor"}
    """
    if task != "classifier" or issparse(y) or np.ndim(y) != 1:
        return
    try:
        classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    except TypeError:  # the estimator refuses such labels
        return
    counts = [np.bincount(numbers[split.train], minlength=len(classes)) for split in splits]
    check_classes(np.array(counts), classes)
