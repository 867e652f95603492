"""Labels that training did not see, in rows that a model is evaluated on.

Such rows count as errors. In a loss, every output of several has the target of "other class" for
them; with two classes, which have one output, they are left out of the loss. A warning says how
many there are, and which labels they have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.label_checks import (
    NO_LABEL,
    LabelledRows,
    missing,
    places_of,
    shown,
    single_labels,
)
from thresher.data.labels import ArrivingClasses, Labels, LabelSets, ManyClasses, TwoClasses
from thresher.data.targets import Targets
from thresher.errors import DataError, DataWarning

if TYPE_CHECKING:
    from thresher.data.matrix_source import MatrixBlock

_SHOWN = 5  # labels in a warning


class UnseenLabelWarning(DataWarning):
    """Rows of an evaluation have labels that training did not see; they count as errors."""


class UnseenLabels:
    """Counts the rows of an evaluation, and those whose label training did not see.

    Attributes
    ----------
    rows : int
        All rows.
    unseen : int
        Rows with a label that training did not see.
    counts : Counter
        How often each of these labels occurs.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.data.labels import ManyClasses
    >>> from thresher.data.matrix_source import LabelArray
    >>> found = UnseenLabels()
    >>> labels = ManyClasses(["elm", "oak", "yew"])
    >>> targets, known = found.targets(labels, LabelArray(np.array(["oak", "ash", "yew"])))
    >>> known.tolist(), targets[1].tolist()
    ([True, False, True], [1.0, -1.0, -1.0])
    >>> print(found.warning("test rows"))
    1 of 3 test rows has a label that training did not see: ash (1); it counts as an error
    """

    def __init__(self) -> None:
        self.rows = self.unseen = 0
        self.counts: Counter[Any] = Counter()

    def targets(self, labels: Labels, block: LabelledRows) -> tuple[Targets, NDArray[np.bool_]]:
        """Return the targets of a block, and for each row whether training saw its label.

        Parameters
        ----------
        labels : Labels
            The labels of training.
        block : Block, MatrixBlock or LabelArray
        """
        if isinstance(labels, TwoClasses):
            targets, known = self._of_two(labels, block)
        elif isinstance(labels, ManyClasses):
            targets, known = self._of_many(labels, block)
        elif isinstance(labels, LabelSets | ArrivingClasses):
            targets, known = self._of_sets(labels, block)
        else:
            targets = labels.targets(block)
            known = np.ones(targets.rows, bool)
        self.rows += len(known)
        self.unseen += int((~known).sum())
        return targets, known

    def _of_two(self, labels: TwoClasses, block: LabelledRows) -> tuple[Targets, NDArray[np.bool_]]:
        y = _present(block)
        known = np.zeros(len(y), bool)
        if y.dtype.kind in "fiub":
            first = y[(y == -1) | (y == 0)]
            if labels.seen is None and len(first):
                labels.seen = float(first[0])
            known = (y == 1) | (y == labels.seen)
        self.counts.update(y[~known].tolist())
        return Targets.of_values(np.where(known & (y == 1), 1.0, labels.low)), known

    def _of_many(
        self, labels: ManyClasses, block: LabelledRows
    ) -> tuple[Targets, NDArray[np.bool_]]:
        y = _present(block)
        numbers, known = places_of(labels.classes, y)
        self.counts.update(y[~known].tolist())
        if labels.outputs == 1:
            return Targets.of_values(np.where(known & (numbers == 1), 1.0, labels.low)), known
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
        own = numbers[known].astype(np.int32)
        return Targets(labels.outputs, None, starts, own, labels.low), known

    def _of_sets(
        self, labels: LabelSets | ArrivingClasses, block: LabelledRows
    ) -> tuple[Targets, NDArray[np.bool_]]:
        if isinstance(labels, ArrivingClasses) and not labels.sets:
            _present(block)
        starts, found = block.label_sets()
        rows = np.repeat(np.arange(block.rows), np.diff(starts))
        numbers, seen = places_of(labels.classes, found)
        self.counts.update(found[~seen].tolist())
        known = np.ones(block.rows, bool)
        known[rows[~seen]] = False
        each = np.bincount(rows[seen], minlength=block.rows)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
        own = numbers[seen].astype(np.int32)
        return Targets(labels.outputs, None, starts, own, labels.low), known

    def count(self, classes: Any, y: Any) -> NDArray[np.bool_]:
        """Count labels in memory; return for each whether it is among the classes.

        Parameters
        ----------
        classes, y : array
        """
        y = np.asarray(y)
        known = places_of(np.asarray(classes), y)[1] if len(y) else np.ones(0, bool)
        self.rows, self.unseen = self.rows + len(y), self.unseen + int((~known).sum())
        self.counts.update(y[~known].tolist())
        return known

    def warning(self, what: str = "rows", left_out: bool = False) -> UnseenLabelWarning | None:
        """Return the warning; None if training saw all labels.

        Parameters
        ----------
        what : str
            The rows, in the plural.
        left_out : bool
            Whether they do not count, as in the loss of two classes.
        """
        if not self.unseen:
            return None
        listed = [f"{shown(label)} ({n:,})" for label, n in self.counts.most_common(_SHOWN)]
        more = len(self.counts) - len(listed)
        names = ", ".join(listed) + (f" and {more:,} others" if more else "")
        has, it = ("has", "it counts as an error") if self.unseen == 1 else (
            "have", "they count as errors")  # fmt: skip
        it = f"the loss is that of the other {self.rows - self.unseen:,}" if left_out else it
        return UnseenLabelWarning(
            f"{self.unseen:,} of {self.rows:,} {what} {has} a label that training did not see: "
            f"{names}; {it}"
        )


def class_numbers(targets: Targets, known: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the class number of each row; -1 for rows whose label training did not see.

    Parameters
    ----------
    targets : Targets
        Of rows with one label each.
    known : array of bool
    """
    numbers = np.full(len(known), -1, np.intp)
    found = targets.single()
    numbers[known] = found[known] if len(found) == len(known) else found
    return numbers


def evaluation_rows(
    labels: Labels, block: MatrixBlock, warn: Callable[[Any], None]
) -> tuple[Any, Targets]:
    """Return validation rows in memory, and their targets; those left out of a loss are missing.

    Parameters
    ----------
    labels : Labels
    block : MatrixBlock
    warn : function
        Called with a warning if training did not see some labels.
    """
    unseen = UnseenLabels()
    targets, known = unseen.targets(labels, block)
    warning = unseen.warning("validation rows", left_out=len(targets) == 1)
    if warning is None:
        return block.X, targets
    warn(warning)
    if len(targets) > 1:
        return block.X, targets
    rows = np.flatnonzero(known)
    return block.X[rows], targets.of_rows(rows)


def _present(block: LabelledRows) -> NDArray[Any]:
    """Return one label per row; raise DataError if a row has none."""
    y = single_labels(block)
    none = np.isnan(y) if y.dtype.kind == "f" else np.array([missing(k) for k in y.tolist()])
    if none.any():
        raise DataError(f"{block.label_place(int(none.argmax()))}: {NO_LABEL}")
    return y
