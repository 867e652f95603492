"""The labels of the rows: their task, balance and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.overview.label_choice import LabelChoice, task_of
from thresher.overview.row_order import ClassOrder, NumberOrder, OrderFacts, SetOrder

__all__ = ["LabelCounter", "LabelFacts", "add_given", "are_sets", "label_text"]

_MOST_CLASSES = 4096
_TOLD = 30  # classes in JSON


@dataclass(frozen=True)
class LabelFacts:
    """What is known of the labels.

    Attributes
    ----------
    columns : tuple of str
        Columns of labels; empty in files without columns.
    task : str
        "two classes", "classes", "multilabel", "regression", "one class" or "" (unknown).
    remark : str
        Why the task is not certain.
    rows : int
        Rows with a label; in multilabel data, all rows.
    missing : int
        Rows without a label.
    classes : int or None
        Number of different labels; None: too many, in a regression.
    counts : tuple of (label, rows)
        The most frequent labels.
    words : bool
        Whether labels are words.
    per_row : float or None
        Mean number of labels per row in multilabel data.
    separator : str
        What is between the labels of a cell.
    minimum, maximum, mean : float or None
        Of labels that are numbers.
    order : OrderFacts or None
    """

    columns: tuple[str, ...] = ()
    task: str = ""
    remark: str = ""
    rows: int = 0
    missing: int = 0
    classes: int | None = None
    counts: tuple[tuple[Any, int], ...] = ()
    words: bool = False
    per_row: float | None = None
    separator: str = ""
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    order: OrderFacts | None = None
    reason: str = ""
    candidates: tuple[str, ...] = ()
    usual: bool = False

    @property
    def rarest(self) -> int:
        """Rows of the rarest label among those that were counted."""
        return min((rows for _, rows in self.counts), default=0)

    @property
    def plain_two(self) -> bool:
        """Whether the labels are -1 and 1, or 0 and 1."""
        found = {label for label, _ in self.counts}
        return self.task == "two classes" and found in ({-1.0, 1.0}, {0.0, 1.0})

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found["columns"], found["candidates"] = list(self.columns), list(self.candidates)
        found["counts"] = [[label, rows] for label, rows in self.counts[:_TOLD]]
        found["order"] = None if self.order is None else self.order.to_json()
        return found


class LabelCounter:
    """Counts labels, and follows their order.

    Parameters
    ----------
    choice : LabelChoice
    multilabel : bool
        Whether rows have any number of labels.

    Examples
    --------
    >>> counter = LabelCounter(LabelChoice(("y",)), multilabel=False)
    >>> counter.add(["yes", "no", None, "yes"])
    >>> facts = counter.facts()
    >>> facts.task, facts.counts, facts.missing
    ('two classes', (('yes', 2), ('no', 1)), 1)
    """

    def __init__(self, choice: LabelChoice, multilabel: bool) -> None:
        self.choice, self.multilabel = choice, multilabel
        self.rows = self.missing = self.empty = 0
        self._codes: dict[Any, int] = {}
        self._too_many = False
        self._classes, self._numbers, self._sets = ClassOrder(), NumberOrder(), SetOrder()
        self._words = 0
        self._whole = True
        self._low, self._high, self._total = np.inf, -np.inf, 0.0
        self._pairs = 0

    def add(self, labels: Sequence[Any] | NDArray[Any]) -> None:
        """Add one label per row: numbers or words, None or NaN without label."""
        array = np.asarray(labels)
        if array.dtype.kind in "biuf":
            values = array.astype(np.float64)
            known = ~np.isnan(values)
            self._add_known(values[known], len(values))
            return
        cells = [None if value is None or value != value else value for value in labels]
        known_cells = [value for value in cells if value is not None]
        if known_cells and all(isinstance(value, int | float) for value in known_cells):
            self._add_known(np.array(known_cells, np.float64), len(cells))
            return
        self.rows += len(known_cells)
        self.missing += len(cells) - len(known_cells)
        self._words += sum(isinstance(value, str) for value in known_cells)
        self._add_codes([_plain(value) for value in known_cells])

    def add_encoded(self, values: Sequence[Any], places: NDArray[np.int64]) -> None:
        """Add one label per row, given as places in different values; None without label."""
        used = np.bincount(places, minlength=len(values)) > 0
        known = np.array([value is not None for value in values], bool)
        own = [value for value, one in zip(values, used & known, strict=True) if one]
        if all(isinstance(value, float) for value in own):
            numbers = np.array([value if one else np.nan for value, one in
                                zip(values, known, strict=True)], np.float64)  # fmt: skip
            rows = numbers[places]
            self._add_known(rows[~np.isnan(rows)], len(rows))
            return
        rows_known = known[places]
        self.rows += int(rows_known.sum())
        self.missing += len(places) - int(rows_known.sum())
        self._words += 1
        if self._too_many:
            return
        codes = np.zeros(len(values), np.int64)
        codes[used & known] = self._coded(own)
        self._classes.add(codes[places[rows_known]])

    def _add_known(self, values: NDArray[np.float64], rows: int) -> None:
        self.rows += len(values)
        self.missing += rows - len(values)
        if not len(values):
            return
        self._numbers.add(values)
        self._low, self._high = min(self._low, values.min()), max(self._high, values.max())
        self._total += float(values.sum())
        self._whole = self._whole and bool(np.all(values == np.floor(values)))
        if self._too_many:
            return
        different, places = np.unique(values, return_inverse=True)
        if len(different) > _MOST_CLASSES:
            self._too_many = True
            return
        codes = self._coded(different.tolist())
        self._classes.add(codes[places])

    def _add_codes(self, labels: Sequence[Any]) -> None:
        if not self._too_many and labels:
            self._classes.add(self._coded(labels))

    def _coded(self, labels: Sequence[Any]) -> NDArray[np.int64]:
        codes = self._codes
        found = np.array([codes.setdefault(label, len(codes)) for label in labels], np.int64)
        self._too_many = len(codes) > _MOST_CLASSES
        return found

    def add_counted(self, other: LabelCounter) -> None:
        """Add rows that another one counted, with one label each at most; their order is lost."""
        names, counts = list(other._codes), other._classes.counts.tolist()
        self._sets.add_counts(dict(zip(names, counts, strict=True)), other.rows + other.missing)
        self.rows += other.rows + other.missing
        self._pairs += other.rows
        self.empty += other.missing

    def add_sets(self, sets: Sequence[set[Any]], missing: int = 0) -> None:
        """Add any number of labels per row."""
        self.rows += len(sets)
        self.missing += missing
        self._pairs += sum(map(len, sets))
        self.empty += sum(not own for own in sets)
        self._words += sum(isinstance(label, str) for own in sets for label in own)
        self._sets.add(sets)

    def facts(self) -> LabelFacts:
        """Return the facts about all rows so far."""
        choice = self.choice
        about: dict[str, Any] = {
            "columns": choice.columns,
            "reason": choice.reason,
            "candidates": choice.candidates,
            "usual": choice.usual,
        }
        if self.multilabel:
            counts = self._sets.counts.most_common()
            return LabelFacts(
                task="multilabel",
                rows=self.rows,
                missing=self.empty,
                classes=len(counts),
                counts=tuple(counts),
                words=bool(self._words),
                per_row=self._pairs / max(self.rows, 1),
                separator=choice.separator,
                order=self._sets.facts(),
                **about,
            )
        names = list(self._codes)
        values = None
        if not self._too_many:
            counted = self._classes.counts.tolist()
            values = Counter(dict(zip(names, counted, strict=True)))
        name = choice.columns[0] if choice.columns else ""
        task, remark = task_of(values, self.rows, name, self._whole)
        if values is None and self._words:
            task, remark = "classes", "more than 4,096 different words"
        numeric = not self._words and self.rows > 0
        if task == "regression":
            order = self._numbers.facts()
        else:
            order = None if self._too_many else self._classes.facts(names)
        return LabelFacts(
            task=task,
            remark=remark,
            rows=self.rows,
            missing=self.missing,
            classes=None if values is None else len(values),
            counts=() if values is None else tuple(values.most_common()),
            words=bool(self._words),
            minimum=float(self._low) if numeric else None,
            maximum=float(self._high) if numeric else None,
            mean=self._total / self.rows if numeric else None,
            order=order,
            **about,
        )


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(value) if isinstance(value, int) else value


def label_text(label: Any) -> str:
    """Return a label as text: whole numbers without a point.

    Examples
    --------
    >>> label_text(1.0), label_text(0.5), label_text("yes")
    ('1', '0.5', 'yes')
    """
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() and abs(label) < 1e15 else f"{label:g}"
    return str(label)


def are_sets(y: Any) -> bool:
    """Tell whether labels are a matrix of 0 and 1, with one column per label."""
    return getattr(y, "ndim", 1) == 2 and y.shape[1] > 1


def add_given(labels: LabelCounter, y: Any, begin: int, end: int) -> None:
    """Add labels that were given as an array or matrix."""
    part = y[begin:end]
    if labels.multilabel:
        dense = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
        labels.add_sets([set(np.flatnonzero(row).tolist()) for row in dense])
    else:
        cells = np.asarray(part)
        labels.add(cells if cells.dtype.kind in "biuf" else cells.ravel().tolist())
