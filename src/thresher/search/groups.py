"""Models that learn from the same reading of a source, and are scored as it goes or in another."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from thresher import _core
from thresher.data.block import Block
from thresher.data.source import Source
from thresher.errors import DataError, ParameterError
from thresher.model import Output
from thresher.search.folds import fold_numbers
from thresher.search.readings import (
    OVERFLOWS,
    Found,
    Job,
    Store,
    nonzeros_of,
    places,
    records_of,
)
from thresher.search.views import view_of
from thresher.training.labels import Labels, Values
from thresher.training.lanes import LaneTeam
from thresher.training.names import NameKeeper
from thresher.training.scores import Score, Tally

_ANSWERS = 1 << 22  # predictions held at once


def check_class_weight(by_class: Any, classes: NDArray[Any]) -> None:
    """Raise ParameterError for weights of what are no classes."""
    unknown = set(by_class or ()) - set(classes.tolist())
    if unknown:
        raise ParameterError(
            f"class_weight has weights of {sorted(map(str, unknown))}, which are no classes; "
            f"these are {classes.tolist()[:20]}"
        )


class Group:
    """Models that learn from the same reading.

    Parameters
    ----------
    estimator : estimator
    source : Source
    splits : int
        Number of folds; 0: each row is scored before it is learned.
    named : mapping of str to Score
    limit : int
        Bytes that models may take.
    store : Store
    jobs : sequence of Job
    team : LaneTeam
    labels : Labels
    low : float
        What outputs are told of rows of other classes.
    report : callable
        Is told the number of the pass, of passes and of rows so far, and the group.
    """

    average = False  # names are kept of weights that live, and not of their means

    def __init__(
        self,
        estimator: Any,
        source: Source,
        splits: int,
        named: Mapping[str, Score],
        limit: int,
        store: Store,
        jobs: Sequence[Job],
        team: LaneTeam,
        labels: Labels,
        low: float,
        report: Callable[[int, int, int, Group], None],
    ) -> None:
        self.estimator, self.source, self.splits, self.limit = estimator, source, splits, limit
        self.store, self.jobs, self.team, self.report = store, jobs, team, report
        self.labels, self.low, self.lanes = labels, low, places(jobs)
        self.clocks = max(splits, *(job.split + 1 for job in jobs))  # one more has all rows
        self.params = jobs[0].point.params
        self.room = self.width = store.width
        once = self.source.named and not self.source.rereadable
        self.names = NameKeeper() if once else None
        self.losses = list(dict.fromkeys(str(job.lanes[0].words["loss"]) for job in jobs))
        classes = labels.outputs if labels.outputs > 1 else 2
        if labels.classes is None:
            classes = 0
        self.weighed, self.overflown = np.zeros(len(jobs)), np.zeros(len(jobs), bool)
        self.tallies = [Tally(named, str(job.lanes[0].words["loss"]), classes) for job in jobs]

    def go(self) -> list[Found]:
        """Learn and score; return what is found of each job."""
        began = time.perf_counter()
        passes = self.params["passes"] if self.splits else 1
        ordering = clone(self.estimator).set_params(**self.params)
        seed = int(ordering._generator().integers(2**31))
        for number in range(passes):
            if number:
                self.team.next_pass()
            for place, first, block in self._blocks(number + 1, passes):
                self._learn(block, first, self._order(seed, place, number, block.rows))
        learned = time.perf_counter()
        if self.splits:
            for _, first, block in self._blocks(passes + 1, passes):
                self._score(block, first)
        scored = time.perf_counter()
        if not self.team.steps().any():
            raise DataError(f"{self.source}: no rows to learn from")
        self._check_weights()
        each = len(self.jobs)
        times = (learned - began) / each, (scored - learned) / each
        failures = self.team.divergences
        counts, found = nonzeros_of(self.team, self.jobs), []
        records = records_of(self.team, self.jobs)
        for i, (tally, lanes, nonzeros, record) in enumerate(
            zip(self.tallies, self.lanes, counts, records, strict=True)
        ):
            scores: Any = tally.result()
            overflow = OVERFLOWS if self.overflown[i] else ""
            failure = next((failures[lane] for lane in lanes if failures[lane]), overflow)
            if list(scores) == ["score"]:
                scores = scores["score"]
            found.append(Found(scores, failure, nonzeros, *times, record))
        return found

    def _check_weights(self) -> None:
        """Raise DataError where nothing has a weight to learn or to score by."""
        if not self.team.weight_sums().any():
            raise DataError(f"{self.source}: the weights of all rows are 0: nothing is learned")
        for job, weight in zip(self.jobs, self.weighed.tolist(), strict=True):
            if weight == 0 and job.split < max(self.splits, 1):
                raise DataError(
                    f"{self.source}: the weights of all rows of fold {job.split} are 0: its models "
                    f"have no score; use fewer folds"
                )

    def _blocks(self, number: int, passes: int) -> Iterator[tuple[int, int, Block]]:
        """Yield blocks, each with its number and that of its first row."""
        first = 0
        names = "blocks" if self.names is not None else False
        for place, block in enumerate(self.source.blocks(dtype=self.store.dtype, names=names)):
            if block.rows:
                yield place, first, block
            first += block.rows
            self.report(number, passes, first, self)

    def _order(self, seed: int, place: int, number: int, rows: int) -> Any:
        if self.params["shuffle"] is False or not self.splits:
            return None
        return _core.path_order(seed, place, number, rows)

    def _learn(self, block: Block, first: int, order: Any) -> None:
        labels, numbers = self._told(block)
        self._make_room(block)
        batch, seen, classes = block.batch, None, None
        batch.set_targets(labels, self._weights(block, numbers))
        if self.splits:
            fold = fold_numbers(first, block.rows, self.splits)
            seen = (fold[:, None] != np.arange(self.clocks)).astype(np.uint8)
        if self.labels.outputs > 1:
            classes = np.arange(block.rows + 1), numbers.astype(np.int32)
        step = block.rows if self.splits else self._few()
        for start in range(0, block.rows, step):
            end = min(block.rows, start + step)
            told = seen, classes, self.low, not self.splits
            try:
                before = self.team.learn(batch, order, start, end, *told)
            except _core.DataError as error:
                raise block.located(error) from None
            if before is not None:
                weights = None if block.weights is None else block.weights[start:end]
                self._add(range(len(self.jobs)), before, numbers[start:end], weights)
        if self.names is not None:
            self.names.see(block, self)  # type: ignore[arg-type]
        if self.store.store == "hashed" and self.team.store_bytes > self.limit:
            raise MemoryError(
                f"models of this grid take {self.team.store_bytes:,} bytes, and more features come;"
                f" memory_limit is {self.limit:,}"
            )

    def _told(self, block: Block) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Return labels as a single output sees them; and numbers of classes, or values."""
        targets = self.labels.targets(block)
        if self.labels.classes is None:
            for loss in self.losses:
                Values(loss).targets(block)  # refuses labels that the loss does not take
            return targets[0], targets[0]
        numbers = targets.single()
        return targets[0] if len(targets) == 1 else numbers.astype(np.float64), numbers

    def _weights(self, block: Block, numbers: NDArray[Any]) -> NDArray[np.float64] | None:
        by_class, classes = self.params.get("class_weight"), self.labels.classes
        if not by_class or classes is None:
            return block.weights
        check_class_weight(by_class, classes)
        factors = np.array([float(by_class.get(label, 1.0)) for label in classes.tolist()])
        weights: NDArray[np.float64] = factors[numbers]
        return weights if block.weights is None else weights * block.weights

    def _make_room(self, block: Block) -> None:
        """Let lanes take the features of a block, where the width was not known beforehand."""
        width = block.width or 2**64
        self.width = max(self.width, width)
        if self.store.store == "hashed" or width <= self.room or self.source.bits is not None:
            return
        self.room = 1 << (width - 1).bit_length()
        wider = replace(self.store, width=self.room, features=self.room)
        needed = wider.bytes_of(self.jobs)
        if needed > self.limit:
            raise MemoryError(
                f"{block.place(0)}: here or soon after, a feature is numbered {width - 1}: models "
                f"of this grid take {needed:,} bytes; memory_limit is {self.limit:,}"
            )
        self.team.widen(self.room)

    def _score(self, block: Block, first: int) -> None:
        _, true = self._told(block)
        fold = fold_numbers(first, block.rows, self.splits)
        batch, weights = block.batch, block.weights
        for split in dict.fromkeys(job.split for job in self.jobs):
            held_out = np.flatnonzero(fold == split)
            for start in range(0, len(held_out), self._few()):
                rows = held_out[start : start + self._few()]
                self._score_rows(batch, split, rows, true[rows], weights)

    def _score_rows(
        self, batch: _core.Batch, split: int, rows: Any, true: Any, weights: Any
    ) -> None:
        """Add rows that the models of a split have not learned from."""
        own_weights = None if weights is None else weights[rows]
        for average in (False, True):
            asked = [
                i
                for i, job in enumerate(self.jobs)
                if job.split == split and job.point.average == average
            ]
            if asked:
                wanted = np.concatenate([self.lanes[i] for i in asked])
                raw = self.team.predict(batch, wanted, rows, average, finite=False)
                self._add(asked, raw, true, own_weights)

    def _few(self) -> int:
        """Return how many rows to have predictions of at once."""
        return max(1, _ANSWERS // len(self.team))

    def _add(self, asked: Sequence[int], raw: Any, true: Any, weights: Any) -> None:
        at = 0
        for i in asked:
            own = raw[:, at : at + len(self.lanes[i])]
            at += len(self.lanes[i])
            self.weighed[i] += len(true) if weights is None else weights.sum()
            if np.isfinite(own).all():
                self.tallies[i].add(own, true, weights)
            else:
                self.overflown[i] = True

    # ---- models --------------------------------------------------------------------------------

    @property
    def learners(self) -> list[OneLane]:
        """All lanes, as the keeper of names asks for them."""
        return [OneLane(self.team, lane) for lane in range(len(self.team))]

    def view(self, point: int, split: int = 0) -> Any:
        """Return the model of a point, of a split, as an estimator."""
        own = point, split
        at = next(i for i, job in enumerate(self.jobs) if (job.point.number, job.split) == own)
        job = self.jobs[at]
        average = job.point.average
        intercepts = self.team.intercepts(average)
        outputs = [
            Output(*self.team.weights(lane, average), float(intercepts[lane]))
            for lane in self.lanes[at].tolist()
        ]
        width = self.width or 2**64
        facts: dict[str, Any] = {"n_features_in_": width}
        if self.labels.classes is not None:
            facts["classes_"] = self.labels.classes
        kinds = self.source.kinds
        view = view_of(
            self.estimator,
            job.point.params,
            lambda: outputs,
            width=width,
            facts=facts,
            names=None if self.names is None else self._named(outputs),
            besides={"kinds": json.dumps(kinds)} if kinds else None,
        )
        view.model_  # noqa: B018  made now: nothing of the search is kept
        return view

    def _named(self, outputs: Sequence[Output]) -> dict[int, str]:
        assert self.names is not None
        known = self.names.names()
        keys = {int(key) for output in outputs for key in output.keys.tolist()}
        return {key: known[key] for key in sorted(keys) if key in known}


@dataclass(frozen=True)
class OneLane:
    """One lane of a team."""

    team: LaneTeam
    lane: int

    def weights(self, average: bool) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return its keys and weights."""
        return self.team.weights(self.lane, average)
