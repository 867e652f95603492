"""Reads a source once before a search: the number of features, and the labels of each fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.labels import ManyClasses, TwoClasses
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError, SplitError, setting
from thresher.losses import Task
from thresher.search.folds import check_classes, fold_numbers


class Survey:
    """Facts about the rows of a source, from one reading.

    Raises SplitError if a fold has no rows, or if its training rows lack a class.

    Parameters
    ----------
    source : Source
        Must be readable again.
    folds : int
        0: no folds.
    task : {"classifier", "regressor"}
    given : array or "binary", optional
        All labels, if known; "binary": -1 and 1, or 0 and 1.

    Attributes
    ----------
    classes : array or None
        Labels of a classifier.
    counts : array of shape (classes, folds)
        Number of rows of each class in each fold.
    rows : array of shape (folds,)
        Number of rows of each fold.
    widest : int
        The largest feature number plus 1; 2^64 if numbers are 2^63 or larger.
    digest : list of int
        Number of blocks, and a digest of all of them, if the source is traced.
    """

    def __init__(self, source: Source, folds: int, task: Task, given: Any = None) -> None:
        self.source, self.folds, self.widest = source, max(folds, 1), 0
        self.digest = [0, 0]
        self.rows = np.zeros(self.folds, np.int64)
        self.classes: NDArray[Any] | None = None
        self.counts = np.zeros((0, self.folds), np.int64)
        found = self._read(task == "classifier", isinstance(given, str))
        self._check_rows()
        if task == "classifier":
            known = None if isinstance(given, str) else given
            try:
                self.classes = ManyClasses(sorted(found) if known is None else known).classes
            except TypeError:
                raise ParameterError(
                    f"{source}: labels are partly numbers and partly words"
                ) from None
            nothing = np.zeros(self.folds, np.int64)
            self.counts = np.array([found.get(k, nothing) for k in self.classes.tolist()])
            if folds:
                others = self.counts.sum(axis=1, keepdims=True) - self.counts
                check_classes(others.T, self.classes)

    def _read(self, classifies: bool, binary: bool) -> dict[Any, NDArray[np.int64]]:
        """Read all rows; return the number of rows of each label, by fold."""
        counts: dict[Any, NDArray[np.int64]] = {}
        first, two = 0, TwoClasses()
        for block in self.source.blocks():
            self.widest = max(self.widest, block.width or 2**64)
            fold = fold_numbers(first, block.rows, self.folds)
            self.rows += np.bincount(fold, minlength=self.folds)
            if binary:
                two.targets(block)  # raises an error for other labels
            if classifies and block.rows:
                starts, labels = block.label_sets()
                fold = np.repeat(fold, np.diff(starts))
                for label in np.unique(labels).tolist():
                    found = np.bincount(fold[labels == label], minlength=self.folds)
                    counts[label] = counts.get(label, 0) + found
            first += block.rows
            if self.source.traced:
                self.digest = [self.digest[0] + 1, _core.mix_keys(self.digest[1], block.digest)]
        return counts

    def _check_rows(self) -> None:
        rows = int(self.rows.sum())
        if rows == 0:
            raise DataError(f"{self.source}: no rows to learn from")
        if not self.rows.all():
            fold = self.rows.argmin()
            raise SplitError(
                (setting("cv"), f": fold {fold} has none of the {rows} rows of {self.source}"),
                parameter="cv",
                hint="use fewer folds, or 'progressive'",
            )
