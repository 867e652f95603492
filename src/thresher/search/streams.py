"""A search over a source: rows are read in blocks, and never held all at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.block import Block
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError
from thresher.search.folds import check_classes, fold_numbers
from thresher.search.grid import Point, check_single_labels, lanes_of, runs_of
from thresher.search.groups import Group, check_class_weight
from thresher.search.progress import SearchProgress
from thresher.search.readings import Found, Job, Store, losses_of, readings_of
from thresher.training.labels import OF_THE_SHELL, Labels, ManyClasses, TwoClasses, Values
from thresher.training.scores import Score

OF_FIT = "give fit classes= for others"  # what `others` is in Python
_TELL = 0.2  # seconds between reports of progress


def source_splits(cv: Any, source: Source) -> int:
    """Return the number of folds of a source; 0: rows are scored before they are learned.

    None is 5 folds, or 0 where the source can be read only once. Raises ParameterError for other
    ways to split, and for folds of what can be read only once.
    """
    if cv == "progressive" and isinstance(cv, str):
        return 0
    folds = 5 if cv is None else cv
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or folds < 2:
        raise ParameterError(
            f"cv must be a number of folds >= 2, or 'progressive', on a source, whose rows are not "
            f"held; got {cv!r}"
        )
    if not source.rereadable and cv is not None:
        raise ParameterError(
            f"cv={cv}: {source} can be read only once, and rows of folds are read again to be "
            f"scored; cv='progressive' scores each row before it is learned"
        )
    return int(folds) if source.rereadable else 0


@dataclass
class Survey:
    """What one look at all rows tells: how wide they are, and the labels of each fold.

    Attributes
    ----------
    labels : callable
        Takes what outputs are told of rows of other classes; returns Labels.
    width : int
        Number of features; 0: any, or not known yet.
    features : int
        Different features, at most; 0: not known.
    """

    labels: Callable[[float], Labels]
    width: int
    features: int


class StreamSearch:
    """Trains and scores the models of a grid on a source.

    Parameters
    ----------
    estimator : estimator
    source : Source
    splits : int
        Number of folds; 0: each row is scored before it is learned.
    named : mapping of str to Score
    limit : int
        Bytes that models may take.
    n_jobs : int or None
    tell : callable
        Is told of progress.
    classes : array, optional
        All labels, where they are known.
    whole : bool
        Whether each point also has a model that learns from all rows, kept in `models`.
    others : str
        What an error says of labels besides -1 and 1, or 0 and 1, where none are known.

    Attributes
    ----------
    models : dict of int to estimator
        The models of all rows, by the number of their point, where `whole` is true; those that
        diverged are not among them.
    rows : int
        Rows of the source.
    group : Group
        The models that learn now, or learned last.
    """

    def __init__(
        self,
        estimator: Any,
        source: Source,
        splits: int,
        named: Mapping[str, Score],
        limit: int,
        n_jobs: int | None,
        tell: Callable[[SearchProgress], Any],
        classes: Any = None,
        whole: bool = False,
        others: str = OF_THE_SHELL,
    ) -> None:
        self.estimator, self.source, self.splits, self.named = estimator, source, splits, named
        self.limit, self.n_jobs, self.tell, self.given = limit, n_jobs, tell, classes
        self.readings = self.rows = 0
        self.whole, self.others, self.models = whole, others, dict[int, Any]()
        self._told = 0.0

    # ---- before learning -----------------------------------------------------------------------

    def _check(self, points: Sequence[Point]) -> None:
        name = type(self.estimator).__name__
        check_single_labels(name, self.estimator, self.source, None)
        for point in points:
            for param in ("certify", "levels"):
                if point.params.get(param):
                    raise ParameterError(f"{name}: {param} needs rows in memory, and not a source")
            if point.params.get("class_weight") == "balanced":
                raise ParameterError(
                    f"{name}: class_weight='balanced' needs rows in memory; give a source a dict "
                    f"of weights"
                )
            if (
                point.params.get("store", "dense") == "dense"
                and self.source.named
                and self.source.bits is None
            ):
                raise ParameterError(
                    f"{name}: features with names need store='hashed', or bits= in scan to number "
                    f"them"
                )
            if not self.source.rereadable and point.params["passes"] != 1:
                raise ParameterError(
                    f"{name}: {self.source} can be read only once: passes must be 1; got "
                    f"{point.params['passes']}"
                )
        if self.estimator.rule == "mirror-descent" and not (
            self.source.rereadable or self.source.bits
        ):
            raise ParameterError(
                f"{name}: the number of features decides its norm, and {self.source} can be read "
                f"only once; give scan bits="
            )
        if not self.source.rereadable and len(runs_of(points)) > 1:
            raise ParameterError(
                f"{self.source} can be read only once: all points of the grid must have the same "
                f"shuffle, store, dtype, class_weight and random_state"
            )

    def _survey(self, points: Sequence[Point]) -> Survey:
        source = self.source
        width = 0 if source.bits is None else 1 << source.bits
        dense = any(point.params.get("store", "dense") == "dense" for point in points)
        classifies = self.estimator.task == "classifier"
        if not source.rereadable:
            if not classifies:
                return Survey(self._values, width, width)
            if self.given is None:
                return Survey(lambda low: TwoClasses(low, self.others), width, width)
            return Survey(lambda low: ManyClasses(self.given, low), width, width)
        if not classifies and width:
            return Survey(self._values, width, width)
        classes, widest = self._look(classifies)
        if width == 0 and (dense or not source.named):
            width = widest if widest < 2**64 else 0
        if dense and width == 0:
            raise ParameterError(
                f"{source}: features have numbers too large for a dense store; store='hashed' "
                f"takes them, and bits= in scan folds them"
            )
        features = min(width or 2**62, source.distinct or 2**62)
        labels = (lambda low: ManyClasses(classes, low)) if classifies else self._values
        return Survey(labels, width, 0 if features == 2**62 else features)

    def _values(self, low: float) -> Labels:
        return Values(self.estimator._loss())

    def _look(self, classifies: bool) -> tuple[Any, int]:
        """Read all rows for their labels and width; check that no fold misses a class."""
        counts: dict[Any, NDArray[np.int64]] = {}
        first = widest = 0
        folds = max(self.splits, 1)
        held_out = np.zeros(folds, np.int64)
        for block in self.source.blocks():
            self.see(block)
            widest = max(widest, block.width or 2**64)
            held_out += np.bincount(fold_numbers(first, block.rows, folds), minlength=folds)
            if classifies and block.rows:
                starts, labels = block.label_sets()
                fold = fold_numbers(first, block.rows, folds)
                fold = np.repeat(fold, np.diff(starts))
                for label in np.unique(labels).tolist():
                    found = np.bincount(fold[labels == label], minlength=folds)
                    counts[label] = counts.get(label, 0) + found
            first += block.rows
        if first == 0:
            raise DataError(f"{self.source}: no rows to learn from")
        if not held_out.all():
            raise ParameterError(
                f"cv: fold {held_out.argmin()} has none of the {first} rows of {self.source}; use "
                f"fewer folds, or 'progressive'"
            )
        if not classifies:
            return None, widest
        try:
            classes = ManyClasses(sorted(counts) if self.given is None else self.given).classes
        except TypeError:
            raise ParameterError(
                f"{self.source}: labels are partly numbers and partly words"
            ) from None
        table = np.array([counts.get(label, np.zeros(folds, int)) for label in classes.tolist()])
        if self.splits:
            check_classes((table.sum(axis=1, keepdims=True) - table).T, classes)
        return classes, widest

    def see(self, block: Block) -> None:
        """Look at a block before anything is learned, where all are read; may raise DataError."""

    def _plan(self, points: Sequence[Point], survey: Survey) -> list[tuple[Store, list[Job]]]:
        plan: list[tuple[Store, list[Job]]] = []
        labels = survey.labels(-1.0)
        classes = labels.outputs if labels.outputs > 1 else 2
        for run in runs_of(points):
            params = run[0].params
            if labels.classes is not None and not isinstance(labels, TwoClasses):
                check_class_weight(params.get("class_weight"), labels.classes)
            dense = params.get("store", "dense") == "dense"
            store = Store(
                self.estimator.rule,
                str(params.get("store", "dense")),
                str(params.get("dtype", "float64")),
                (survey.width or 1) if dense else survey.width,
                survey.features,
                self.n_jobs,
            )
            jobs = [
                Job(
                    point,
                    split,
                    lanes_of(
                        self.estimator.rule,
                        point.params,
                        None,
                        max(survey.width, 1),
                        split,
                        classes,
                    ),
                )
                for split in range(max(self.splits, 1) + (self.whole and self.splits > 0))
                for point in run
            ]
            groups = readings_of(jobs, store.bytes_of, self.limit)
            if len(groups) > 1 and not self.source.rereadable:
                raise MemoryError(
                    f"{self.source} can be read only once, and models of this grid take "
                    f"{store.bytes_of(jobs):,} bytes; memory_limit is {self.limit:,}"
                )
            plan += [(store, group) for group in groups]
        return plan

    # ---- learning and scoring ------------------------------------------------------------------

    def go(self, points: Sequence[Point]) -> dict[tuple[int, int], Found]:
        """Train and score all models: what is found, by numbers of point and fold."""
        self._check(points)
        survey = self._survey(points)
        plan = self._plan(points, survey)
        self.readings, self._began = len(plan), time.perf_counter()
        found: dict[tuple[int, int], Found] = {}
        for number, (store, jobs) in enumerate(plan, 1):
            self._number = number
            low = jobs[0].point.low
            with store.team(jobs) as team:
                self.group = Group(
                    self.estimator,
                    self.source,
                    self.splits,
                    self.named,
                    self.limit,
                    store,
                    jobs,
                    team,
                    survey.labels(low),
                    low,
                    self._report,
                )
                for job, one in zip(jobs, self.group.go(), strict=True):
                    found[job.point.number, job.split] = one
                    if self.whole and job.split == self.splits and not one.failure:
                        self.models[job.point.number] = self.group.view(job.point.number, job.split)
        return found

    def _report(self, number: int, passes: int, rows: int, group: Group) -> None:
        """Tell of progress, but not too often."""
        self.rows = max(self.rows, rows)
        seconds = time.perf_counter() - self._began
        if seconds - self._told >= _TELL:
            self._told = seconds
            at = self._number, self.readings, number, passes, rows, len(group.team), seconds
            self.tell(SearchProgress(*at, losses_of(group.team, group.jobs)))

    def model(self, number: int) -> Any:
        """Return the model of a point as an estimator, after the only reading of the source."""
        return self.group.view(number)
