"""Models of a grid as lanes: as many train at the same time as memory allows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from thresher.data import nonzeros
from thresher.data.labels import Labels
from thresher.data.matrix_source import MatrixSource
from thresher.data.read_options import Stopped
from thresher.data.used_columns import UsedColumns
from thresher.errors import OutOfMemoryError, setting
from thresher.search.fits import Finished, Fits
from thresher.search.grid import GridPoint, lanes_of, runs_of
from thresher.search.model_groups import (
    GroupStore,
    ModelJob,
    ModelResult,
    groups_of,
    nonzeros_of,
    records_of,
)
from thresher.search.progress_reporter import ProgressReporter
from thresher.search.scores import Scores
from thresher.search.splits import Splits
from thresher.search.trained import TrainedModels
from thresher.training.class_weights import class_factors
from thresher.training.lane_outputs import LanePlan
from thresher.training.lanes import Lane
from thresher.training.order_watch import OrderWatch
from thresher.training.plan import TrainingPlan
from thresher.training.records import NoRecords
from thresher.training.run_options import RunOptions
from thresher.training.seeds import seed_of, stream_seed
from thresher.training.trainer import Trainer


@dataclass(frozen=True)
class ModelGroup:
    """Models that train together, from one reading of the rows per pass.

    Attributes
    ----------
    plan : TrainingPlan
        The options that they share.
    splits : list of int
        The splits that they learn from.
    jobs : list of ModelJob
    """

    plan: TrainingPlan
    splits: list[int]
    jobs: list[ModelJob]


class LaneFits(Fits):
    """Trains many models side by side, from one reading of the rows per pass.

    Parameters
    ----------
    estimator : estimator
        Not fitted; the models copy its attributes about the columns of the rows.
    splits : Splits
        Splits of a matrix or a source.
    scores : Scores
    limit : int
        Largest size of all models together, in bytes.
    n_jobs : int or None
        Number of threads.
    watched : bool
        Whether the order of the labels was watched already, by the run that this one resumes.
    """

    def __init__(
        self,
        estimator: Any,
        splits: Splits,
        scores: Scores,
        limit: int,
        n_jobs: int | None,
        watched: bool = False,
    ) -> None:
        self.estimator, self.splits, self.scores = estimator, splits, scores
        self.limit, self.n_jobs = limit, n_jobs
        self._watched = watched  # whether a group watches the order of the labels
        self._lanes: dict[tuple[int, int | None], list[Lane]] = {}  # by point and steps

    # ---- planning ------------------------------------------------------------------------------

    def plan(self, points: Sequence[GridPoint]) -> list[ModelGroup]:
        """Return the groups of models that train together, without training them."""
        found = []
        for run in runs_of(points):
            plan, splits = self._common(run), self.splits
            store = GroupStore(
                plan.rule, plan.store, plan.dtype, plan.width, self._features(plan), self.n_jobs
            )
            self._lanes = {}
            for group in splits.together(run[0].params):
                jobs = [self._job(plan, point, split) for split in group for point in run]
                groups = groups_of(jobs, store.bytes_of, self.limit)
                found += [ModelGroup(plan, group, some) for some in groups]
                if len(found) > 1 and not splits.source.rereadable:
                    raise OutOfMemoryError(
                        (f"{splits.source} can be read only once, but the models of this grid need "
                         f"{store.bytes_of(jobs):,} bytes; ", setting("memory_limit"),
                         f" is {self.limit:,}"),
                        parameter="memory_limit",
                        value=self.limit,
                    )  # fmt: skip
        return found

    def _common(self, run: Sequence[GridPoint]) -> TrainingPlan:
        """Return the options that the models of a run share, checked."""
        return TrainingPlan.resolve(
            self.estimator.rule,
            self.estimator.task,
            run[0].params,
            self.splits.source,
            owner=type(self.estimator).__name__,
            known=self.splits.labels(run),
            width=self.splits.width,
            standardised=run[0].standardised,
        )

    def _features(self, plan: TrainingPlan) -> int:
        """Return the largest possible number of features in the store; 0: not known."""
        source, used = self.splits.source, self._used(plan)
        if used is not None:
            return used.block.width
        if isinstance(source, MatrixSource) and plan.store == "hashed":
            return min(source.width(), nonzeros(source.block.X))
        return self.splits.features

    def _used(self, plan: TrainingPlan) -> UsedColumns | None:
        """Return the rows without empty columns, if a store has a cell for each column."""
        return self.splits.used_columns if plan.store == "dense" else None

    def _job(self, plan: TrainingPlan, point: GridPoint, split: int) -> ModelJob:
        labels = self._labels(plan, split)
        factors = class_factors(point.params.get("class_weight"), labels, plan.owner, strict=False)
        steps, sets = self.splits.steps_in(split, factors), self.splits.source.multilabel
        classes = plan.labels.outputs if sets else max(plan.labels.outputs, 2)
        width = max(self.splits.width or 0, 1)
        params = point.lane_params or point.params
        same = self._lanes.get((point.number, steps))  # of another split with as many rows
        if same is None:
            facts = plan.rule, params, steps, width, split, classes, plan.standardised, sets
            same = self._lanes[point.number, steps] = lanes_of(*facts)
        lanes = [Lane(lane.numbers, lane.words, split, lane.target) for lane in same]
        return ModelJob(point, split, lanes)

    # ---- training and scoring ------------------------------------------------------------------

    def go(
        self, group: ModelGroup, report: ProgressReporter, run: RunOptions
    ) -> Iterator[Finished]:
        """Train and score the models of a group."""
        began = time.perf_counter()
        trained = self._begin(group, replace(run, observer=report))
        report.begin(trained)
        try:
            if run.resume:
                trained.trainer.resume()
            trained.trainer.run()
            each = (time.perf_counter() - began) / len(group.jobs)
            yield from self._score(trained, each, report)
        except Stopped:
            if not trained.trainer.ended:
                raise
            trained.trainer.interrupt()  # while models were scored: they will be scored again
        finally:
            trained.team.close()

    def _begin(self, group: ModelGroup, run: RunOptions) -> TrainedModels:
        """Make the models of a group, and their trainer."""
        jobs, params = group.jobs, group.jobs[0].point.params
        labels = self._labels(group.plan, group.splits[0])
        lanes = [lane for job in jobs for lane in job.lanes]
        source, seen = self.splits.visited(group.splits, params["shuffle"])
        in_memory, owner = isinstance(source, MatrixSource), group.plan.owner
        shuffle, seed = params["shuffle"], seed_of if in_memory else stream_seed
        if not in_memory and shuffle is not False:
            shuffle = "within"
        used, block = self._used(group.plan), None
        if isinstance(source, MatrixSource) and shuffle:
            block = source.block if used is None else used.block
        plan = LanePlan.of(
            group.plan,
            lanes,
            averages=tuple(job.point.average for job in jobs for _ in job.lanes),
            waiting=tuple(job.point.waits for job in jobs for _ in job.lanes),
            labels=labels,
            seen=seen,
            block=block,
            used=used,
            limit=float("inf") if in_memory else self.limit,
            n_jobs=self.n_jobs,
            passes=1 if self.splits.progressive else params["passes"],
            shuffle=False if self.splits.progressive else shuffle,
            seed=seed(params["random_state"], owner),
        )
        if isinstance(source, MatrixSource):
            source.chunk = plan.chunk
        trainer = Trainer(
            plan,
            source,
            run,
            hooks=self.scores.begin(jobs, labels),
            records=NoRecords(self.scores.at_once(len(lanes))),
            order=None if self._watched else OrderWatch(),  # all groups have the same rows
        )
        self._watched = True
        return TrainedModels(self.estimator, jobs, trainer, self.splits.whole)

    def _labels(self, plan: TrainingPlan, split: int) -> Labels:
        """Return the labels; with class_weight="balanced", with the rows per class of the split."""
        labels = copy(plan.labels)
        if plan.params.get("class_weight") == "balanced":
            labels.counted = self.splits.counted(split)
        return labels

    def _score(
        self, trained: TrainedModels, each: float, report: ProgressReporter
    ) -> Iterator[Finished]:
        """Score trained models, and keep those of all rows."""
        counts = nonzeros_of(trained.team, trained.jobs)
        records = records_of(trained.team, trained.jobs)
        for i, scores, failure, seconds in self.scores.of(trained, report):
            job = trained.jobs[i]
            kept = job.split == self.splits.whole and not failure
            result = ModelResult(scores, failure, counts[i], each, seconds, records[i])
            yield Finished(job.point, job.split, result, trained.model(i) if kept else None)
