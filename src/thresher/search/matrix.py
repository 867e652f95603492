"""A search over rows in memory: lanes taken through the rows, and scored on those left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection._validation import _score
from sklearn.utils import _safe_indexing, compute_class_weight
from sklearn.utils.validation import _check_method_params, column_or_1d

from thresher.data import as_batch, nonzeros
from thresher.errors import ParameterError
from thresher.model import Output
from thresher.search.folds import Split, check_classes, seen_by
from thresher.search.grid import Point, lanes_of, runs_of
from thresher.search.progress import SearchProgress
from thresher.search.readings import (
    OVERFLOWS,
    Found,
    Job,
    Store,
    losses_of,
    nonzeros_of,
    places,
    readings_of,
    records_of,
)
from thresher.search.views import view_of
from thresher.training.lanes import LaneTeam
from thresher.training.scores import Score, Tally

_CHUNK = 1 << 22  # nonzeros times lanes between two looks at the clock and at Ctrl-C
_TELL = 0.2  # seconds between reports of progress
_ANSWERS = 1 << 24  # predictions held at once


class Rows:
    """Rows in memory, checked as the estimator checks them.

    Parameters
    ----------
    estimator : estimator
    X, y : as of `fit`
    sample_weight : array, optional
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
        self.given, self.labels = X, y
        checker = clone(estimator)
        if checker.task == "classifier":
            self.X, self.y = checker._checked(X, y, reset=True)
            classes = np.unique(self.y)
            if len(classes) < 2:
                raise ValueError(
                    f"{type(checker).__name__} needs rows of at least 2 classes; y has one class, "
                    f"{classes.tolist()[0]!r}"
                )
            self.classes: NDArray[Any] | None = classes
            self.numbers = np.searchsorted(classes, self.y).astype(np.int32)
        else:
            self.X, y = checker._validated(X, y, reset=True)
            self.y, self.classes = column_or_1d(y, warn=True), None
        self.weights = checker._checked_weights(sample_weight, self.X)
        fitted = ("n_features_in_", "feature_names_in_")
        self.facts = {name: value for name, value in vars(checker).items() if name in fitted}
        if self.classes is not None:
            self.facts["classes_"] = self.classes

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def outputs(self) -> int:
        """Number of classes where each has an output, else 1."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def check_splits(self, splits: Sequence[Split]) -> None:
        """Raise ParameterError where a split has no row of one of the classes to learn from."""
        if self.classes is not None:
            k = len(self.classes)
            counts = [np.bincount(self.numbers[split.train], minlength=k) for split in splits]
            check_classes(np.array(counts), self.classes)

    def check_labels(self, loss: str | None) -> None:
        """Raise ValueError for labels that a loss for regressions does not take."""
        if self.classes is None and loss == "poisson" and (self.y < 0).any():
            raise ValueError("loss 'poisson' needs y >= 0")
        if (
            self.classes is None
            and loss == "clipped_square"
            and ((self.y < 0) | (self.y > 1)).any()
        ):
            raise ValueError("loss 'clipped_square' needs y in [0, 1]")

    def told(self, low: float) -> tuple[NDArray[np.float64], Any]:
        """Return the labels as lanes see them, and the class of each row where there are many."""
        if self.classes is None:
            return np.ascontiguousarray(self.y, np.float64), None
        if self.outputs == 1:
            return np.where(self.numbers == 1, 1.0, low), None
        return self.numbers.astype(np.float64), (np.arange(self.count + 1), self.numbers)

    def weights_for(self, class_weight: Any, rows: NDArray[np.int64]) -> Any:
        """Return the weight of each row, where classes are weighed as `rows` have them."""
        if class_weight is None or self.classes is None:
            return self.weights
        balance = compute_class_weight(class_weight, classes=self.classes, y=self.y[rows])
        if not (np.isfinite(balance).all() and (balance >= 0).all()):
            raise ParameterError(
                f"class_weight must hold finite numbers >= 0; got {class_weight!r}"
            )
        weights = np.asarray(balance[self.numbers], np.float64)
        return weights if self.weights is None else weights * self.weights


@dataclass
class MatrixSearch:
    """Trains and scores the models of a grid on splits of rows in memory.

    Attributes
    ----------
    estimator : estimator
    rows : Rows
    splits : list of Split
    scorer : callable
        As scikit-learn's.
    score_params : dict
        What the scorer takes beside.
    limit : int
        Bytes that models may take.
    n_jobs : int or None
    error_score : float or "raise"
    tell : callable
        Is told of progress.
    quick : Score, optional
        The scorer's score as sums over rows, for splits that test rows of all classes.
    """

    estimator: Any
    rows: Rows
    splits: list[Split]
    scorer: Any
    score_params: dict[str, Any]
    limit: int
    n_jobs: int | None
    error_score: Any
    tell: Callable[[SearchProgress], Any]
    quick: Score | None = None

    def plan(self, points: Sequence[Point]) -> list[tuple[Store, list[Job]]]:
        """Return the models of each reading. Nothing is trained."""
        plan = []
        features = min(self.rows.width, nonzeros(self.rows.X))
        for run in runs_of(points):
            params = run[0].params
            self._check_run(run)
            kind = (
                str(params.get("store", "dense")),
                str(params.get("dtype", "float64")),
                self.rows.width,
            )
            seen = features if kind[0] == "hashed" else self.rows.width
            store = Store(self.estimator.rule, *kind, seen, self.n_jobs)
            for splits in self._together(params):
                jobs = [self._job(point, split) for split in splits for point in run]
                plan += [(store, group) for group in readings_of(jobs, store.bytes_of, self.limit)]
        return plan

    def _check_run(self, run: Sequence[Point]) -> None:
        for point in run:
            self.rows.check_labels(point.params.get("loss"))
        self.rows.weights_for(run[0].params.get("class_weight"), self.splits[0].train)

    def _together(self, params: dict[str, Any]) -> list[list[int]]:
        """Group the splits that can train together."""
        balanced = params.get("class_weight") == "balanced"  # by the rows of each split
        alone = [i for i, s in enumerate(self.splits) if balanced or s.alone(params["shuffle"])]
        shared = [i for i in range(len(self.splits)) if i not in alone]
        return [*([shared] if shared else []), *([i] for i in alone)]

    def _job(self, point: Point, split: int) -> Job:
        learned = len(self.splits[split].train)
        classes = 1 if self.rows.classes is None else len(self.rows.classes)
        made = lanes_of(self.estimator.rule, point.params, learned, self.rows.width, split, classes)
        return Job(point, split, made)

    def go(self, plan: Sequence[tuple[Store, list[Job]]]) -> dict[tuple[int, int], Found]:
        """Train and score all models: what is found, by numbers of point and split."""
        seen = seen_by(self.splits, self.rows.count)
        found: dict[tuple[int, int], Found] = {}
        self._began, self._told = time.perf_counter(), 0.0
        for number, (store, jobs) in enumerate(plan, 1):
            self._reading = number, len(plan), jobs[0].point.params["passes"]
            began = time.perf_counter()
            with store.team(jobs) as team:
                batch = self._learn(team, jobs, seen)
                each = (time.perf_counter() - began) / len(jobs)
                counts, records = nonzeros_of(team, jobs), records_of(team, jobs)
                for i, scores, failure, seconds in self._score(team, batch, jobs):
                    key = jobs[i].point.number, jobs[i].split
                    found[key] = Found(scores, failure, counts[i], each, seconds, records[i])
        return found

    # ---- learning ------------------------------------------------------------------------------

    def _learn(self, team: LaneTeam, jobs: Sequence[Job], seen: NDArray[np.uint8]) -> Any:
        params = jobs[0].point.params
        split = self.splits[jobs[0].split]
        low = jobs[0].point.low
        labels, classes = self.rows.told(low)
        batch = as_batch(
            self.rows.X, labels, self.rows.weights_for(params.get("class_weight"), split.train)
        )
        alone = split.alone(params["shuffle"])
        chunk = self._chunk(len(team))
        for number, order in enumerate(self._orders(params, split if alone else None)):
            if number:
                team.next_pass()
            rows = self.rows.count if order is None else len(order)
            for first in range(0, rows, chunk):
                last = min(rows, first + chunk)
                team.learn(batch, order, first, last, None if alone else seen, classes, low)
                self._tell(number + 1, last, team, jobs)
        return batch

    def _orders(
        self, params: dict[str, Any], split: Split | None
    ) -> Iterator[NDArray[np.int64] | None]:
        """Yield the order of rows in each pass; those of a split alone are as in a fit to it."""
        ordering = clone(self.estimator).set_params(**params)
        rows = self.rows.count if split is None else len(split.train)
        for order in ordering._orders(rows, ordering._generator()):
            if split is None:
                yield order
            else:
                yield split.train if order is None else split.train[order]

    def _chunk(self, lanes: int) -> int:
        per_row = max(1.0, nonzeros(self.rows.X) / max(self.rows.count, 1)) * lanes
        return max(1, int(16 * _CHUNK / per_row))

    def _tell(self, number: int, rows: int, team: LaneTeam, jobs: Sequence[Job]) -> None:
        """Tell of progress: at the end of a pass, and now and then before."""
        reading, readings, passes = self._reading
        seconds = time.perf_counter() - self._began
        if rows < self.rows.count and seconds - self._told < _TELL:
            return
        self._told = seconds
        told = reading, readings, number, passes, rows, len(team), seconds
        self.tell(SearchProgress(*told, losses_of(team, jobs)))

    # ---- scoring -------------------------------------------------------------------------------

    def _score(
        self, team: LaneTeam, batch: Any, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any, str, float]]:
        """Yield the number of each job, its scores or why it has none, and the time it took."""
        lanes, failures, done = places(jobs), team.divergences, 0
        for number in dict.fromkeys(job.split for job in jobs):
            test = self.splits[number].test
            X, y = _safe_indexing(self.rows.given, test), _safe_indexing(self.rows.labels, test)
            params = _check_method_params(self.rows.given, self.score_params, indices=test)
            own = [i for i, job in enumerate(jobs) if job.split == number]
            true = self._truth(test)
            for i, raw, seconds in self._answers(team, batch, jobs, lanes, own, test):
                failure = next((failures[lane] for lane in lanes[i] if failures[lane]), "")
                if not failure and raw is not None and not np.isfinite(raw).all():
                    failure = OVERFLOWS
                scores: Any = None
                began = time.perf_counter()
                if not failure and true is not None and raw is not None:
                    scores = self._quick_score(jobs[i], raw, true)
                elif not failure:
                    view = self._view(team, jobs[i], lanes[i])
                    view._rows, view._known = X, raw
                    scores = _score(view, X, y, self.scorer, params, self.error_score)
                yield i, scores, failure, seconds + time.perf_counter() - began
            done += len(test)
            self._tell(jobs[0].point.params["passes"] + 1, done, team, jobs)

    def _truth(self, test: NDArray[np.int64]) -> NDArray[Any] | None:
        """Return what the quick score compares with; None where the scorer itself has to decide."""
        if self.quick is None or self.rows.classes is None:
            return None if self.quick is None else np.asarray(self.rows.y[test], np.float64)
        numbers = self.rows.numbers[test]
        return numbers if len(np.unique(numbers)) == len(self.rows.classes) else None

    def _quick_score(self, job: Job, raw: NDArray[np.float64], true: NDArray[Any]) -> float:
        assert self.quick is not None
        classes = 0 if self.rows.classes is None else len(self.rows.classes)
        tally = Tally({"score": self.quick}, str(job.lanes[0].words["loss"]), classes)
        tally.add(raw, true, None)
        return tally.result()["score"]

    def _answers(
        self,
        team: LaneTeam,
        batch: Any,
        jobs: Sequence[Job],
        lanes: Sequence[NDArray[np.int64]],
        own: Sequence[int],
        test: NDArray[np.int64],
    ) -> Iterator[tuple[int, NDArray[np.float64] | None, float]]:
        """Yield the raw predictions of some jobs, a few at a time, and the time they took."""
        few = max(1, _ANSWERS // (len(test) * self.rows.outputs))
        for average in (False, True):
            asked = [i for i in own if jobs[i].point.average == average]
            for first in range(0, len(asked), few):
                some, began = asked[first : first + few], time.perf_counter()
                wanted = np.concatenate([lanes[i] for i in some])
                raw = team.predict(batch, wanted, test, average, finite=False)
                seconds = (time.perf_counter() - began) / len(some)
                for k, i in enumerate(some):
                    k *= self.rows.outputs
                    cut = jobs[i].point.params.get("target_nnz") is not None
                    own_raw = np.ascontiguousarray(raw[:, k : k + self.rows.outputs])
                    yield i, None if cut else own_raw, seconds

    def _view(self, team: LaneTeam, job: Job, lanes: NDArray[np.int64]) -> Any:
        average = job.point.average

        def ask() -> list[Output]:
            intercepts = team.intercepts(average)
            return [Output(*team.weights(lane, average), float(intercepts[lane])) for lane in lanes]

        return view_of(
            self.estimator, job.point.params, ask, width=self.rows.width, facts=self.rows.facts
        )
