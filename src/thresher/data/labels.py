"""Labels of rows -> what each output learns, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.label_checks import (
    LabelledRows,
    missing,
    places_of,
    refuse,
    refuse_words,
    shown,
    single_labels,
    tidy,
)
from thresher.data.targets import Targets
from thresher.errors import DataError, LabelError
from thresher.losses import LOSSES

_TWO = "-1 and 1, or 0 and 1"


class Labels(ABC):
    """What the labels of a stream mean: how many outputs there are, and what each is told.

    Attributes
    ----------
    counted : pair or None
        How many rows have each of the classes, and how many rows there are, where that is known.
    """

    counted: tuple[NDArray[np.int64], int] | None = None

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of outputs."""

    @property
    @abstractmethod
    def classes(self) -> NDArray[Any] | None:
        """Labels of a classifier; None for a regression."""

    @abstractmethod
    def targets(self, block: LabelledRows) -> Targets:
        """Return the labels as each output sees them.

        Raises DataError, naming the row's place, where a label is not one of those expected.
        """

    def count(self, block: LabelledRows) -> None:
        """Set `counted` by all rows, which are in memory."""
        targets = self.targets(block)
        numbers = targets.single() if len(targets) == 1 else targets.numbers
        classes = 0 if self.classes is None else len(self.classes)
        self.counted = np.bincount(numbers, minlength=classes).astype(np.int64), targets.rows

    @property
    def state(self) -> Any:
        """What has been seen of the labels, as JSON can carry it."""
        return None

    @state.setter
    def state(self, seen: Any) -> None:
        if seen is not None:
            raise ValueError("its labels were found as they came, and are all known now")

    def conclude(self) -> None:  # noqa: B027
        """Raise DataError where all rows together are not enough to learn from."""


class NumericLabels(Labels):
    """Labels are numbers to predict.

    Parameters
    ----------
    *losses : str
        Decide which numbers make sense: those that all of them take.
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
        refuse(block, np.isnan(y), lambda row: "the row has no label")
        for loss in self.losses:
            needed = f"loss {loss.name} needs {loss.labels_needed}"
            refuse(block, loss.refuses(y), lambda row, n=needed: f"the label is {y[row]:g}; {n}")
        return Targets.of_values(y)


class TwoClasses(Labels):
    """Labels are -1 and 1, or 0 and 1.

    Parameters
    ----------
    low : float
        What the output is told for the first class.
    others : str
        What an error advises in Python, where labels are others.
    """

    def __init__(self, low: float = -1.0, others: str = "give fit classes= for others") -> None:
        self.low, self.others = low, others
        self.seen: float | None = None  # the first class: -1 or 0, once it was seen

    @property
    def outputs(self) -> int:
        """One."""
        return 1

    @property
    def classes(self) -> NDArray[Any]:
        """The two labels."""
        return np.array([0 if self.seen == 0 else -1, 1])

    def targets(self, block: LabelledRows) -> Targets:
        """Return `low` and 1."""
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
        """Raise the error of a row whose label is missing, or not one of the two."""
        place = block.label_place(row)
        if missing(label):
            raise DataError(f"{place}: {missing(label)}")
        raise LabelError(
            f"{what}; labels must be {_TWO}, for two classes",
            place=place,
            value=label,
            allowed=_TWO,
            hint=self.others,
        )

    @property
    def state(self) -> Any:
        """The first class, once it was seen."""
        return self.seen

    @state.setter
    def state(self, seen: Any) -> None:
        self.seen = seen


class ManyClasses(Labels):
    """Each row has one of several labels; of more than two, each has an output.

    Parameters
    ----------
    classes : sequence
        All labels, in increasing order.
    low : float
        What an output is told of rows of other classes.
    tidied : bool
        Whether whole numbers are made integers.
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
        """One for two classes, else one for each."""
        return 1 if len(self._classes) == 2 else len(self._classes)

    @property
    def classes(self) -> NDArray[Any]:
        """All labels."""
        return self._classes

    def targets(self, block: LabelledRows) -> Targets:
        """Return 1 for an output's own class, else `low`."""
        y = single_labels(block)
        numbers, known = places_of(self._classes, y)
        refuse(block, ~known, lambda row: missing(y[row]) or self._unknown(y[row]))
        if self.outputs == 1:
            return Targets.of_values(np.where(numbers == 1, 1.0, self.low))
        return Targets.of_classes(numbers, self.outputs, self.low)

    def _unknown(self, label: Any) -> str:
        classes = ", ".join(map(shown, self._classes[:20].tolist()))
        if isinstance(label, str) and self._classes.dtype.kind in "fiub":
            return f"the label is the word {label!r}, and the classes are numbers: {classes}"
        few = "; two classes stay two" if len(self._classes) == 2 else ""
        return f"the label {shown(label)} is not among the classes {classes}{few}"


class LabelSets(Labels):
    """Each row has any number of labels, and each label an output.

    Parameters
    ----------
    classes : sequence
        All labels, in increasing order.
    low : float
        What an output is told of rows without its label.
    """

    def __init__(self, classes: Sequence[Any] | NDArray[Any], low: float = -1.0) -> None:
        self._classes, self.low = tidy(np.unique(np.asarray(classes))), low
        if len(self._classes) < 1:
            raise DataError("no row has a label")

    @property
    def outputs(self) -> int:
        """One for each label."""
        return len(self._classes)

    @property
    def classes(self) -> NDArray[Any]:
        """All labels."""
        return self._classes

    def targets(self, block: LabelledRows) -> Targets:
        """Return 1 where a row has the output's label, else `low`."""
        starts, labels = block.label_sets()
        rows = np.repeat(np.arange(block.rows), np.diff(starts))
        numbers, known = places_of(self._classes, labels)
        unknown = np.zeros(block.rows, bool)
        unknown[rows[~known]] = True
        refuse(block, unknown, lambda row: "a label is not among those of the training data")
        return Targets(self.outputs, None, starts, numbers.astype(np.int32), self.low)


class LabelColumns(Labels):
    """Each row has any number of labels, which a table of 0 and 1 tells: a column for each.

    Parameters
    ----------
    classes : array
        The label of each column.
    low : float
        What an output is told of rows without its label.
    """

    def __init__(self, classes: NDArray[Any], low: float = -1.0) -> None:
        self._classes, self.low = classes, low

    @property
    def outputs(self) -> int:
        """One for each label."""
        return len(self._classes)

    @property
    def classes(self) -> NDArray[Any]:
        """All labels."""
        return self._classes

    def targets(self, block: LabelledRows) -> Targets:
        """Return 1 where a row has the output's label, else `low`."""
        starts, columns = block.label_sets()
        if len(columns) and int(columns.max()) >= self.outputs:
            raise DataError(f"y must have {self.outputs} columns, one for each label")
        return Targets(self.outputs, None, starts, columns.astype(np.int32), self.low)


class ArrivingClasses(Labels):
    """Labels become known as they come, and each has an output from then on.

    Parameters
    ----------
    low : float
        What an output is told of rows without its label.
    sets : bool
        Whether rows have any number of labels; else they have one each.
    came : sequence
        Labels that came before, in the order in which they did.
    like : dtype, optional
        Of the labels, where it can hold them all; by default whole numbers are integers.
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
        """One for each label that came."""
        return len(self.arrived)

    @property
    def classes(self) -> NDArray[Any]:
        """Labels that came, in increasing order."""
        labels = np.sort(np.array(self.arrived))
        if self.like is None:
            return tidy(labels)
        same = labels.astype(self.like)
        return same if (same == labels).all() else labels

    @property
    def lane_of(self) -> NDArray[np.int64]:
        """When each of the classes came, counted from 0."""
        return np.argsort(np.array(self.arrived)).astype(np.int64)

    def arrivals(self, block: LabelledRows, order: NDArray[np.int64] | None) -> list[int]:
        """Take the new labels of a block; return when each comes, in places of the order."""
        if not self.sets:
            y = single_labels(block)
            none = np.array([bool(missing(label)) for label in y.tolist()], bool)
            refuse(block, none, lambda row: "the row has no label")
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
        """Forget all labels but those that came first."""
        self.arrived = self.arrived[:count]

    def targets(self, block: LabelledRows) -> Targets:
        """Return what each output is told; all labels must have come."""
        starts, labels = block.label_sets()
        numbers, known = places_of(self.classes, labels)
        unknown = np.zeros(block.rows, bool)
        unknown[np.repeat(np.arange(block.rows), np.diff(starts))[~known]] = True
        refuse(block, unknown, lambda row: "a label is not among those of the training data")
        return Targets(self.outputs, None, starts, numbers.astype(np.int32), self.low)

    @property
    def state(self) -> Any:
        """The labels that came."""
        return self.arrived

    @state.setter
    def state(self, seen: Any) -> None:
        self.arrived = list(seen)

    def conclude(self) -> None:
        """Raise DataError where rows have one label each and all have the same."""
        if not self.sets and len(self.arrived) < 2:
            raise DataError(
                f"a classifier needs rows of at least 2 classes; found {self.classes.tolist()}"
            )
