"""Which rows a model learns from, and which it is scored on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError, SplitError, setting


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to score on.

    Attributes
    ----------
    train, test : array of int64
        Numbers of rows.
    sorted : bool
        Whether those to learn from come in the order in which they lie, each once.
    repeats : bool
        Whether some of them come more than once.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    sorted: bool
    repeats: bool

    def alone(self, shuffle: Any) -> bool:
        """Tell whether its models need an order of rows of their own, and so train apart."""
        return self.repeats if shuffle is not False else not self.sorted


def split_of(train: Any, test: Any, rows: int) -> Split:
    """Return a split, given by numbers of rows or by masks."""
    train, test = (_numbers(part, rows) for part in (train, test))
    increasing = bool((np.diff(train) > 0).all())
    repeats = not increasing and len(np.unique(train)) < len(train)
    return Split(train, test, increasing, repeats)


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
    """Return which rows each split learns from: an array of rows x splits."""
    seen = np.zeros((rows, len(splits)), np.uint8)
    for number, split in enumerate(splits):
        seen[split.train, number] = 1
    return seen


def check_classes(counts: NDArray[np.int64], classes: NDArray[Any]) -> None:
    """Raise ParameterError where a fold has no row of one of the classes to learn from.

    Parameters
    ----------
    counts : array of shape (splits, classes)
        Rows to learn from.
    classes : array
    """
    for split, number in np.argwhere(counts == 0)[:1]:
        raise SplitError(
            (setting("cv"), f": the training part of split {split} has no row of class "
             f"{classes.tolist()[number]!r}"),
            parameter="cv",
            hint="use fewer or stratified splits, or leave the class out",
        )  # fmt: skip


def fold_numbers(first: int, rows: int, folds: int) -> NDArray[np.int64]:
    """Return the fold of each of some rows of a source, by a hash of the row's number.

    The hash is SplitMix64 of seed 0, whose n-th number is that of the n-th row, modulo the number
    of folds: the same rows are in the
    same folds on any machine, in any version, and however the rows are cut into blocks.

    Parameters
    ----------
    first : int
        Number of the first row, counted from 0 over all files.
    rows : int
        How many.
    folds : int

    Examples
    --------
    >>> fold_numbers(0, 10, 5).tolist()
    [0, 0, 4, 4, 2, 0, 3, 0, 4, 0]
    """
    z = np.arange(first + 1, first + rows + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z % np.uint64(folds)).astype(np.int64)
