"""The rows that each model of a search learns from: splits of a matrix, or folds of a source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from thresher.data.fold_source import FoldSource
from thresher.data.labels import (
    LabelColumns,
    Labels,
    LabelSets,
    ManyClasses,
    NumericLabels,
    TwoClasses,
)
from thresher.data.matrix_source import MatrixSource
from thresher.data.source import Source
from thresher.data.targets import Targets
from thresher.data.used_columns import UsedColumns, used_columns
from thresher.errors import ReadOnceError
from thresher.losses import check_labels
from thresher.rules import RULES
from thresher.search.folds import Split, check_classes, fold_numbers, seen_by
from thresher.search.grid import GridPoint
from thresher.search.source_checks import width_of
from thresher.search.survey import Survey
from thresher.training.class_weights import steps_in
from thresher.training.lane_outputs import Seen
from thresher.training.outputs import Order
from thresher.training.run_options import RunOptions


def options_of_fit(model: Any, run: RunOptions) -> dict[str, Any]:
    """Return the arguments of `fit` for the observer and the checkpoint.

    Parameters
    ----------
    model : estimator
        One that chooses the rule itself has no checkpoints.
    run : RunOptions
    """
    return run.of_fit() if model.rule in RULES else {"observer": run.observer}


class Splits(ABC):
    """The rows that each model of a search learns from, and facts about all rows.

    Attributes
    ----------
    source : Source or MatrixSource
        All rows.
    scored : int
        The models of the first `scored` splits are scored.
    numbers : range
        The numbers of all splits. The last one may learn from all rows.
    whole : int or None
        The split whose models learn from all rows and are kept.
    progressive : bool
        Whether each row is scored before it is learned.
    classes : array or None
        Labels of a classifier, if all are known.
    width : int or None
        Number of features, 0 for any; None: not known before training.
    features : int
        Largest possible number of different features; 0: not known.
    """

    source: Source | MatrixSource
    scored: int
    numbers: range
    whole: int | None
    progressive = False
    classes: NDArray[Any] | None
    width: int | None
    features: int

    @property
    def used_columns(self) -> UsedColumns | None:
        """The rows without empty columns, if lanes may learn these instead; None: they may not."""
        return None

    @abstractmethod
    def labels(self, points: Sequence[GridPoint]) -> Labels:
        """Return the labels for the models of some points."""

    def together(self, params: Mapping[str, Any]) -> list[list[int]]:
        """Return groups of splits that can train together."""
        balanced = params.get("class_weight") == "balanced"  # each split has other class weights
        separate = [
            n for n in self.numbers if balanced or self.trains_separately(n, params["shuffle"])
        ]
        shared = [n for n in self.numbers if n not in separate]
        return [*([shared] if shared else []), *([n] for n in separate)]

    def trains_separately(self, split: int, shuffle: Any) -> bool:
        """Tell whether the models of a split need their own order of rows."""
        return False

    @abstractmethod
    def steps_in(self, split: int, factors: NDArray[np.float64] | None) -> int | None:
        """Return how many steps a split makes in a pass, if a penalty depends on it.

        `factors` has a factor of the weights of rows for each class; None: all are 1.
        """

    @abstractmethod
    def counted(self, split: int) -> tuple[NDArray[np.int64], int]:
        """Return the number of training rows of a split, per class and in total."""

    @abstractmethod
    def rows_of(self, split: int) -> int | None:
        """Return the number of training rows of a split, if known."""

    @abstractmethod
    def fit(self, model: Any, split: int, run: RunOptions) -> None:
        """Fit an estimator to the training rows of a split."""

    @abstractmethod
    def visited(
        self, splits: Sequence[int], shuffle: Any
    ) -> tuple[Source | MatrixSource, Seen | None]:
        """Return the rows to train some splits on, and a function for the rows of each split."""


class MatrixSplits(Splits):
    """Splits of rows in memory.

    Parameters
    ----------
    source : MatrixSource
    splits : sequence of Split
        Splits whose models are scored.
    classes : array or None
        Labels of a classifier.
    whole : bool
        Whether one more split learns from all rows.
    given : tuple of (X, y, sample_weight), optional
        The arguments of `fit`, for models that are fitted separately.
    renumbers : bool
        Whether lanes may learn the rows without empty columns.
    """

    source: MatrixSource

    def __init__(
        self,
        source: MatrixSource,
        splits: Sequence[Split],
        classes: NDArray[Any] | None,
        whole: bool = False,
        given: tuple[Any, Any, Any] | None = None,
        renumbers: bool = False,
    ) -> None:
        self.source, self.classes, self.parts = source, classes, list(splits)
        self.given, self.renumbers = given, renumbers
        self.scored = len(self.parts)
        self.whole = self.scored if whole else None
        self.width = self.features = source.width()
        self.class_numbers: NDArray[np.intp] | None = None
        if classes is not None and not source.multilabel:
            self.class_numbers = np.searchsorted(classes, np.asarray(source.block.labels))
            check_classes(np.array([self.counted(n)[0] for n in range(self.scored)]), classes)
        if whole:
            everything = np.arange(source.block.rows)
            self.parts.append(Split(everything, everything[:0], sorted=True, repeats=False))
        self.numbers = range(len(self.parts))

    @cached_property
    def used_columns(self) -> UsedColumns | None:
        """The rows without empty columns, if lanes may learn these instead; None: they may not."""
        return used_columns(self.source.block) if self.renumbers else None

    def labels(self, points: Sequence[GridPoint]) -> Labels:
        """Return the labels; raise ValueError if a loss does not allow them."""
        if self.classes is not None and self.source.multilabel:
            return LabelColumns(self.classes, points[0].low)
        if self.classes is not None:
            return ManyClasses(self.classes, points[0].low, tidied=False)
        losses = dict.fromkeys(point.loss for point in points)
        for loss in losses:
            check_labels(loss, self.source.block.labels)
        return NumericLabels(*losses)

    def trains_separately(self, split: int, shuffle: Any) -> bool:
        """Tell whether a split repeats rows, or has its own order of rows."""
        return self.parts[split].trains_separately(shuffle)

    def steps_in(self, split: int, factors: NDArray[np.float64] | None) -> int:
        """Return how many steps a split makes in a pass: one per row, if there are no weights."""
        train, weights = self.parts[split].train, self.source.block.weights
        of_rows = None if weights is None else weights[train]
        if factors is not None:
            assert self.class_numbers is not None
            of_classes = factors[self.class_numbers[train]]
            of_rows = of_classes if of_rows is None else of_classes * of_rows
        return steps_in(of_rows, len(train))

    def counted(self, split: int) -> tuple[NDArray[np.int64], int]:
        """Return the number of training rows of a split, per class and in total."""
        assert self.classes is not None
        assert self.class_numbers is not None
        train = self.parts[split].train
        counts = np.bincount(self.class_numbers[train], minlength=len(self.classes))
        return counts.astype(np.int64), len(train)

    def rows_of(self, split: int) -> int:
        """Return the number of training rows of a split."""
        return len(self.parts[split].train)

    def fit(self, model: Any, split: int, run: RunOptions) -> None:
        """Fit an estimator to the training rows of a split, in their order."""
        assert self.given is not None
        train = self.parts[split].train
        own = (None if part is None else _safe_indexing(part, train) for part in self.given)
        model.fit(*own, **options_of_fit(model, run))

    def visited(self, splits: Sequence[int], shuffle: Any) -> tuple[MatrixSource, Seen | None]:
        """Return the rows to train some splits on, and a function for the rows of each split."""
        block, separate = self.source.block, self.trains_separately(splits[0], shuffle)
        only = self.parts[splits[0]].train if separate else None
        source = MatrixSource(block.X, block.y, block.weights, only)
        if separate:
            return source, None
        seen = seen_by(self.parts, block.rows)
        return source, lambda targets, row, rows: seen if rows is None else seen[rows]


class SourceSplits(Splits):
    """Folds of a source, by a hash of the row's number.

    Parameters
    ----------
    estimator : estimator
    source : Source
    folds : int
        0: no folds; each row is scored before it is learned.
    points : sequence of GridPoint
        All points of the search, checked.
    classes : array or "binary", optional
        All labels, if known; "binary": -1 and 1, or 0 and 1.
    whole : bool
        Whether models that learn from all rows are kept.
    """

    source: Source

    def __init__(
        self,
        estimator: Any,
        source: Source,
        folds: int,
        points: Sequence[GridPoint],
        classes: Any = None,
        whole: bool = False,
    ) -> None:
        self.source, self.folds, self.scored = source, folds, max(folds, 1)
        self.progressive = folds == 0
        self.whole = folds if whole else None
        self.numbers = range(self.scored + (whole and folds > 0))
        self.task, self.given = estimator.task, classes
        self.classes = self.survey = None
        self.width = None if source.bits is None else 1 << source.bits
        self.features = self.width or 0
        known = self.task == "regressor" and self.width is not None
        if source.rereadable and not known:
            self.survey = Survey(source, folds, self.task, classes)
            self.classes = self.survey.classes
            self.width = width_of(source, self.survey.widest, points)
            features = min(self.width or 2**62, source.distinct or 2**62)
            self.features = 0 if features == 2**62 else features

    def labels(self, points: Sequence[GridPoint]) -> Labels:
        """Return the labels for the models of some points."""
        if self.task == "regressor":
            return NumericLabels(*dict.fromkeys(point.loss for point in points))
        kind = LabelSets if self.source.multilabel else ManyClasses
        if self.classes is not None:
            labels: Labels = kind(self.classes, points[0].low)
            labels.counted = self._all_counted()
            return labels
        if self.given is None or isinstance(self.given, str):
            if self.source.multilabel:
                raise ReadOnceError(
                    f"{self.source} can be read only once, and its labels are not known",
                    source=str(self.source),
                    parameter="classes",
                    hint="give fit classes=",
                )
            return TwoClasses(points[0].low)
        return kind(self.given, points[0].low)

    def steps_in(self, split: int, factors: NDArray[np.float64] | None) -> None:
        """Return None: on a stream, the default penalty decreases with the steps so far."""

    def _all_counted(self) -> tuple[NDArray[np.int64], int]:
        assert self.survey is not None
        return self.survey.counts.sum(axis=1), int(self.survey.rows.sum())

    def counted(self, split: int) -> tuple[NDArray[np.int64], int]:
        """Return the number of training rows of a split, per class and in total."""
        counts, rows = self._all_counted()
        if self.progressive or split >= self.folds:
            return counts, rows
        assert self.survey is not None
        return counts - self.survey.counts[:, split], rows - int(self.survey.rows[split])

    def rows_of(self, split: int) -> int | None:
        """Return the number of training rows of a split, if the source was read before."""
        if self.survey is None:
            return None
        rows = int(self.survey.rows.sum())
        return rows if split >= self.folds else rows - int(self.survey.rows[split])

    def fit(self, model: Any, split: int, run: RunOptions) -> None:
        """Fit an estimator to the rows outside a fold, or to all rows."""
        classes = self.given if self.classes is None else self.classes
        classes = {} if self.task == "regressor" else {"classes": classes}
        rows = self.source
        if split < self.folds:
            rows = FoldSource(self.source, split, self.folds, outside=True)
        model.fit(rows, names=False, **options_of_fit(model, run), **classes)

    def held_out(self, split: int) -> Source:
        """Return the rows of a fold."""
        return FoldSource(self.source, split, self.folds)

    def visited(self, splits: Sequence[int], shuffle: Any) -> tuple[Source, Seen | None]:
        """Return the rows to train some splits on, and a function for the rows of each split."""
        return self.source, None if self.progressive else self._seen

    def _seen(self, targets: Targets, row: int, rows: Order) -> NDArray[np.uint8]:
        fold = fold_numbers(row, targets.rows, self.folds)
        return np.asarray(fold[:, None] != np.arange(len(self.numbers)), np.uint8)
