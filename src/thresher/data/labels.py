"""Turns the labels of rows into the targets of outputs, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.label_checks import (
    LabelledRows,
    missing,
    missing_labels,
    no_label,
    places_of,
    refuse,
    refuse_missing,
    refuse_words,
    shown,
    single_labels,
    tidy,
    two_targets,
)
from thresher.data.targets import Targets
from thresher.errors import DataError, LabelError
from thresher.losses import LOSSES

_TWO = "-1 and 1, or 0 and 1"


class Labels(ABC):
    """The kind of labels that rows have: how many outputs there are, and the targets of each.

    Attributes
    ----------
    counted : pair or None
        The number of rows of each class, and the number of all rows, if they are known.
    """

    counted: tuple[NDArray[np.int64], int] | None = None

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of outputs."""

    @property
    @abstractmethod
    def classes(self) -> NDArray[Any] | None:
        """All labels of a classifier; None for a regression."""

    @abstractmethod
    def targets(self, block: LabelledRows) -> Targets:
        """Return the targets of each output.

        Raises DataError with the place of the row if a label is missing or not allowed.
        """

    def count(self, block: LabelledRows) -> None:
        """Set `counted` from a block that holds all rows."""
        targets = self.targets(block)
        numbers = targets.single() if len(targets) == 1 else targets.numbers
        classes = 0 if self.classes is None else len(self.classes)
        self.counted = np.bincount(numbers, minlength=classes).astype(np.int64), targets.rows

    @property
    def state(self) -> Any:
        """The labels found so far, as JSON types, for a checkpoint."""
        return None

    @state.setter
    def state(self, seen: Any) -> None:
        if seen is not None:
            raise ValueError("its labels were found while reading, but are all given now")

    def conclude(self) -> None:  # noqa: B027
        """Raise DataError if all rows together do not suffice to learn from."""


class NumericLabels(Labels):
    """Labels are numbers to predict.

    Parameters
    ----------
    *losses : str
        Losses that the labels must be allowed for.
    """

    def __init__(self, *losses: str) -> None:
        self.losses = tuple(LOSSES[loss] for loss in losses)

    @property
    def outputs(self) -> int:
        """One."""
        return 1

    @property
    def classes(self) -> None:
        """None."""
        return None

    def targets(self, block: LabelledRows) -> Targets:
        """Return the labels themselves."""
        y = single_labels(block)
        refuse_words(block, y, "a number was expected")
        y = np.ascontiguousarray(y, np.float64)
        refuse_missing(block, np.isnan(y))
        for loss in self.losses:
            needed = f"loss {loss.name} needs {loss.labels_needed}"
            refuse(block, loss.refuses(y), lambda row, n=needed: f"the label is {y[row]:g}; {n}")
        return Targets.of_values(y)


class TwoClasses(Labels):
    """Labels are -1 and 1, or 0 and 1.

    Parameters
    ----------
    low : float
        Target of the first class.
    others : str
        Advice in the error about other labels.
    """

    def __init__(
        self, low: float = -1.0, others: str = "give fit classes= for other labels"
    ) -> None:
        self.low, self.others = low, others
        self.seen: float | None = None  # the first class, -1 or 0, after its first row

    @property
    def outputs(self) -> int:
        """One."""
        return 1

    @property
    def classes(self) -> NDArray[Any]:
        """The two labels."""
        return np.array([0 if self.seen == 0 else -1, 1])

    def targets(self, block: LabelledRows) -> Targets:
        """Return the targets: `low` for the first class, 1 for the second."""
        y = single_labels(block)
        if y.dtype.kind not in "fiub" and len(y):
            self._refuse(block, 0, y[0], f"the label is {y[0]!r}")
        strange = (y != 1) & (y != -1) & (y != 0)
        if strange.any():
            row = int(strange.argmax())
            self._refuse(block, row, y[row], f"the label is {y[row]:g}")
        first = y[(y != 1).argmax()] if len(y) else 1.0
        if first != 1 and self.seen is None:
            self.seen = float(first)
        other = (y != 1) & (y != self.seen)
        if other.any():
            row = int(other.argmax())
            what = f"the label is {y[row]:g}, after labels of {self.seen:g}"
            self._refuse(block, row, y[row], what)
        return Targets.of_values(np.where(y == 1, 1.0, self.low))

    def _refuse(self, block: LabelledRows, row: int, label: Any, what: str) -> None:
        """Raise the error of a row whose label is missing or not allowed."""
        if missing(label):
            raise no_label(block, row)
        raise LabelError(
            f"{what}; labels must be {_TWO}, for two classes",
            place=block.label_place(row),
            value=label,
            allowed=_TWO,
            hint=self.others,
        )

    @property
    def state(self) -> Any:
        """The first class, -1 or 0; None before its first row."""
        return self.seen

    @state.setter
    def state(self, seen: Any) -> None:
        self.seen = seen


class ManyClasses(Labels):
    """Each row has one label; with more than two classes, one output per class (one-vs-rest).

    Parameters
    ----------
    classes : sequence
        All labels, in increasing order.
    low : float
        Target of rows of other classes.
    tidied : bool
        Whether labels that are whole numbers become integers.
    """

    def __init__(
        self, classes: Sequence[Any] | NDArray[Any], low: float = -1.0, tidied: bool = True
    ) -> None:
        found = np.unique(np.asarray(classes))
        self._classes, self.low = tidy(found) if tidied else found, low
        if len(self._classes) < 2:
            raise DataError(
                f"a classifier needs rows of at least 2 classes; found {self._classes.tolist()}"
            )

    @property
    def outputs(self) -> int:
        """One for two classes, else one per class."""
        return 1 if len(self._classes) == 2 else len(self._classes)

    @property
    def classes(self) -> NDArray[Any]:
        """All labels."""
        return self._classes

    def targets(self, block: LabelledRows) -> Targets:
        """Return the targets: 1 for the output's class, `low` for others."""
        y = single_labels(block)
        if self.outputs == 1:
            made = two_targets(self._classes, y, self.low)
            if made is not None:
                return Targets.of_values(made)
        numbers, known = places_of(self._classes, y)
        refuse(block, ~known, lambda row: None if missing(y[row]) else self._unknown(y[row]))
        if self.outputs == 1:
            # Exact, since `low` is -1 or 0. np.where takes five times as long.
            return Targets.of_values(numbers.astype(np.float64) * (1.0 - self.low) + self.low)
        return Targets.of_classes(numbers, self.outputs, self.low)

    def _unknown(self, label: Any) -> str:
        classes = ", ".join(map(shown, self._classes[:20].tolist()))
        if isinstance(label, str) and self._classes.dtype.kind in "fiub":
            return f"the label is the word {label!r}, but the classes are numbers: {classes}"
        few = "; a third class cannot be added" if len(self._classes) == 2 else ""
        return f"the label {shown(label)} is not among the classes {classes}{few}"


class LabelSets(Labels):
    """Each row has any number of labels; there is one output per label.

    Parameters
    ----------
    classes : sequence
        All labels, in increasing order.
    low : float
        Target of rows without the output's label.
    """

    def __init__(self, classes: Sequence[Any] | NDArray[Any], low: float = -1.0) -> None:
        self._classes, self.low = tidy(np.unique(np.asarray(classes))), low
        if len(self._classes) < 1:
            raise DataError("no row has a label")

    @property
    def outputs(self) -> int:
        """One per label."""
        return len(self._classes)

    @property
    def classes(self) -> NDArray[Any]:
        """All labels."""
        return self._classes

    def targets(self, block: LabelledRows) -> Targets:
        """Return the targets: 1 for rows with the output's label, `low` for others."""
        starts, labels = block.label_sets()
        rows = np.repeat(np.arange(block.rows), np.diff(starts))
        numbers, known = places_of(self._classes, labels)
        unknown = np.zeros(block.rows, bool)
        unknown[rows[~known]] = True
        refuse(block, unknown, lambda row: "a label does not occur in the training data")
        return Targets(self.outputs, None, starts, numbers.astype(np.int32), self.low)


class LabelColumns(Labels):
    """Each row has any number of labels, given as a matrix of 0 and 1 with one column per label.

    Parameters
    ----------
    classes : array
        The label of each column.
    low : float
        Target of rows without the output's label.
    """

    def __init__(self, classes: NDArray[Any], low: float = -1.0) -> None:
        self._classes, self.low = classes, low

    @property
    def outputs(self) -> int:
        """One per label."""
        return len(self._classes)

    @property
    def classes(self) -> NDArray[Any]:
        """All labels."""
        return self._classes

    def targets(self, block: LabelledRows) -> Targets:
        """Return the targets: 1 for rows with the output's label, `low` for others."""
        starts, columns = block.label_sets()
        if len(columns) and int(columns.max()) >= self.outputs:
            raise DataError(f"y must have {self.outputs} columns, one per label")
        return Targets(self.outputs, None, starts, columns.astype(np.int32), self.low)


class ArrivingClasses(Labels):
    """Labels are found while reading; each gets an output at its first row.

    Parameters
    ----------
    low : float
        Target of rows without the output's label.
    sets : bool
        Whether rows have any number of labels; by default they have one each.
    arrived : sequence
        Labels found so far, in the order in which they were found.
    like : dtype, optional
        Type of the labels, if it can hold them all; by default whole numbers are integers.
    """

    def __init__(
        self,
        low: float = -1.0,
        sets: bool = False,
        arrived: Sequence[Any] = (),
        like: np.dtype[Any] | None = None,
    ) -> None:
        self.low, self.sets, self.arrived, self.like = low, sets, list(arrived), like

    @property
    def outputs(self) -> int:
        """One per label found so far."""
        return len(self.arrived)

    @property
    def classes(self) -> NDArray[Any]:
        """The labels found so far, in increasing order."""
        labels = np.sort(np.array(self.arrived))
        if self.like is None:
            return tidy(labels)
        same = labels.astype(self.like)
        return same if (same == labels).all() else labels

    @property
    def lane_of(self) -> NDArray[np.int64]:
        """The number of each class in the order in which classes were found, from 0."""
        return np.argsort(np.array(self.arrived)).astype(np.int64)

    def arrivals(self, block: LabelledRows, order: NDArray[np.int64] | None) -> list[int]:
        """Add the new labels of a block.

        Returns the position of the first row of each new label, in the order of the rows.
        """
        if not self.sets:
            y = single_labels(block)
            refuse_missing(block, missing_labels(y))
        starts, labels = block.label_sets()
        if len(labels) == 0:
            return []
        words = labels.dtype.kind not in "fiub"
        if self.arrived and words != isinstance(self.arrived[0], str):
            raise DataError(f"{block.label_place(0)}: labels are partly numbers and partly words")
        labels = labels.astype(str) if words else labels
        at = np.arange(block.rows)
        if order is not None:
            at[order] = np.arange(len(order))
        at = np.repeat(at, np.diff(starts))
        sorting = np.argsort(at, kind="stable")
        found, first = np.unique(labels[sorting], return_index=True)
        new = ~np.isin(found, np.array(self.arrived)) if self.arrived else np.ones(len(found), bool)
        found, places = found[new], at[sorting][first[new]]
        by_place = np.argsort(places, kind="stable")
        self.arrived += found[by_place].tolist()
        places_of: list[int] = places[by_place].tolist()
        return places_of

    def keep(self, count: int) -> None:
        """Keep only the labels that were found first, and remove the others."""
        self.arrived = self.arrived[:count]

    def targets(self, block: LabelledRows) -> Targets:
        """Return the targets of each output; `arrivals` must have added all labels before."""
        starts, labels = block.label_sets()
        numbers, known = places_of(self.classes, labels)
        unknown = np.zeros(block.rows, bool)
        unknown[np.repeat(np.arange(block.rows), np.diff(starts))[~known]] = True
        refuse(block, unknown, lambda row: "a label does not occur in the training data")
        return Targets(self.outputs, None, starts, numbers.astype(np.int32), self.low)

    @property
    def state(self) -> Any:
        """The labels found so far."""
        return self.arrived

    @state.setter
    def state(self, seen: Any) -> None:
        self.arrived = list(seen)

    def conclude(self) -> None:
        """Raise DataError if all rows have the same single label."""
        if not self.sets and len(self.arrived) < 2:
            raise DataError(
                f"a classifier needs rows of at least 2 classes; found {self.classes.tolist()}"
            )
