"""Models of complementary halves as lanes, which all learn from one reading of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from thresher import _core
from thresher.data.matrix_source import MatrixSource
from thresher.data.source import Source
from thresher.data.targets import Targets
from thresher.errors import DivergenceError, ParameterError
from thresher.progress.verbose import StatusLine
from thresher.rules import RULES
from thresher.search.grid import OF_THE_RUN, GridPoint, check_searchable, lanes_of, point_of
from thresher.search.model_groups import ModelJob, places
from thresher.stability.halves import without_refit
from thresher.stability.null_outputs import NullLabels, NullOutputs, NullPlan
from thresher.stability.stream_halves import HalfAssigner
from thresher.training.lane_outputs import LaneOutputs
from thresher.training.observer import Observer
from thresher.training.order_watch import OrderWatch
from thresher.training.outputs import Order
from thresher.training.plan import TrainingPlan
from thresher.training.records import NoRecords
from thresher.training.run_options import RunOptions
from thresher.training.trainer import Trainer

_MANY = 1 << 20  # feature numbers that are collected before they are sorted
# Parameters that all models must share, or that none of them may have.
_SHARED = frozenset((*OF_THE_RUN, "loss", "tol", "patience", "warm_start", "callback"))


def checked_lanes(
    owner: str, estimator: Any, varied: str | None, values: Sequence[Mapping[str, Any]]
) -> list[GridPoint]:
    """Return one point per value of the parameter that is varied.

    Raises ParameterError if the models cannot train as lanes.
    """
    check_searchable(estimator)
    if varied in _SHARED:
        able = sorted(set(RULES[estimator.rule].parameters) - _SHARED)
        raise ParameterError(
            f"{owner}: param_name must be a parameter that may differ between models that train "
            f"together, one of {', '.join(able)}; got {varied!r}"
        )
    plain = without_refit(clone(estimator))
    points = [point_of(plain, number, value, together=True) for number, value in enumerate(values)]
    if points[0].params.get("class_weight") == "balanced":
        raise ParameterError(
            f"{owner}: class_weight='balanced' depends on all rows of a half; give a dict of "
            f"weights"
        )
    return points


class HalfMembership:
    """The rows of a block that each half learns from; a value for `LanePlan.seen`.

    Parameters
    ----------
    assigner : HalfAssigner
    stratify : bool
        Whether the rows of each class are divided separately.
    """

    def __init__(self, assigner: HalfAssigner, stratify: bool) -> None:
        self.assigner, self.stratify = assigner, stratify
        self._last: Targets | None = None
        self._strata, self._numbers = np.zeros(0, np.int64), np.zeros(0, np.uint64)

    def __call__(self, targets: Targets, row: int, rows: Order) -> NDArray[np.uint8]:
        """Return an array of shape (rows, halves): 1 if a half has a row, else 0."""
        if targets is not self._last:
            if row == 0:
                self.assigner.counts.clear()
            self._strata = np.zeros(targets.rows, np.int64)
            if self.stratify:
                self._strata = targets.single().astype(np.int64)
            self._numbers, self._last = self.assigner.numbered(self._strata), targets
        if rows is None:
            return self.assigner.members(self._strata, self._numbers)
        return self.assigner.members(self._strata[rows], self._numbers[rows])


class HalfModels(Observer):
    """The models of all halves, values of a parameter and outputs, which train together.

    Parameters
    ----------
    plan : TrainingPlan
        The options that they share.
    source : Source or MatrixSource
    points : sequence of GridPoint
        One per value of the parameter, checked.
    membership : HalfMembership
        The rows of each half.
    rows : int or None
        Number of rows of a half, if known before training.
    limit : int
        Largest size of all models together, in bytes.
    n_jobs : int or None
        Number of threads.
    nulls : sequence of NullLabels
        Labels without signal; as many further models learn each of them.

    Attributes
    ----------
    seen : SeenFeatures
        The features that occur in a source.
    line : StatusLine
        Shows progress.
    """

    def __init__(
        self,
        plan: TrainingPlan,
        source: Source | MatrixSource,
        points: Sequence[GridPoint],
        membership: HalfMembership,
        rows: int | None,
        limit: int,
        n_jobs: int | None,
        nulls: Sequence[NullLabels] = (),
    ) -> None:
        self.points, self.halves, self.seen = points, 2 * membership.assigner.pairs, SeenFeatures()
        classes = max(plan.labels.outputs, 2)
        self.jobs = [
            ModelJob(point, half, lanes_of(plan.rule, point.params, rows, max(plan.width, 1), half,
                                      classes, plan.standardised))
            for point in points
            for half in range(self.halves)
        ]  # fmt: skip
        lanes = [lane for job in self.jobs for lane in job.lanes]
        lane_plan = NullPlan.of(
            plan,
            lanes,
            averages=tuple(job.point.average for job in self.jobs for _ in job.lanes),
            waiting=tuple(job.point.waits for job in self.jobs for _ in job.lanes),
            seen=membership,
            block=source.block if isinstance(source, MatrixSource) else None,
            limit=limit,
            n_jobs=n_jobs,
            labels_without_signal=tuple(nulls),
        )
        if plan.store == "dense":
            lane_plan.check_bytes(lane_plan.bytes_of(max(plan.width, 1)))
        if isinstance(source, MatrixSource):
            source.chunk = lane_plan.chunk
        self.line = StatusLine(verbose=0)
        options, records = RunOptions(observer=self), NoRecords()
        self.trainer = Trainer(lane_plan, source, options, records=records, order=OrderWatch())

    @property
    def outputs(self) -> NullOutputs:
        """The lanes."""
        assert isinstance(self.trainer.outputs, NullOutputs)
        return self.trainer.outputs

    def progress(self, trainer: Trainer) -> None:
        """Add the features of a block; raise DivergenceError if a half diverges.

        Parameters
        ----------
        trainer : Trainer
        """
        if trainer.number == 0 and not trainer.plan.in_memory:
            self.seen.see(trainer.last_block.native)
        self.line.show(f"{trainer.examples:,} rows, {len(self.outputs)} models")
        each = len(self.jobs[0].lanes)
        for lane, what in enumerate(self.outputs.team.divergences):
            if what:
                half = lane // each % self.halves
                raise DivergenceError(f"half {half % 2 + 1} of pair {half // 2 + 1}: {what}")
        for null in self.outputs.nulls:
            for what in filter(None, null.team.divergences):
                raise DivergenceError(
                    f"with permuted labels: {what}; permutations=0 leaves these models out"
                )

    def supports(self, outputs: LaneOutputs) -> Iterator[list[NDArray[np.int64]]]:
        """Yield, for each half, the features that it selects, by value of the parameter.

        Parameters
        ----------
        outputs : LaneOutputs
            The lanes of the labels, or of labels without signal.
        """
        lanes = places(self.jobs)
        for half in range(self.halves):
            found = []
            for value, point in enumerate(self.points):
                own = outputs.part(lanes[value * self.halves + half])
                keys = [o.keys for o in own.outputs(target=point.params.get("target_nnz"))]
                found.append(np.unique(np.concatenate(keys)).astype(np.int64))
            yield found


class SeenFeatures:
    """The features that occur in a stream."""

    def __init__(self) -> None:
        self._known, self._new = np.zeros(0, np.int64), [np.zeros(0, np.int64)]
        self._waiting = 0

    def see(self, block: _core.Block) -> None:
        """Add the nonzero features of a block."""
        keys = np.asarray(block.keys).astype(np.int64)[np.asarray(block.values) != 0]
        self._new.append(keys)
        self._waiting += len(keys)
        if self._waiting > max(_MANY, len(self._known)):
            self.features()

    def features(self) -> NDArray[np.int64]:
        """Return all features that were added, in increasing order."""
        self._known = np.unique(np.concatenate([self._known, *self._new]))
        self._new, self._waiting = [], 0
        return self._known
