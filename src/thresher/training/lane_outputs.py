"""Many models as the outputs of one trainer, one lane for each output."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.matrix_source import MatrixBlock
from thresher.data.targets import Targets
from thresher.data.used_columns import UsedColumns
from thresher.errors import DataError, OutOfMemoryError, setting
from thresher.model.model import Output
from thresher.rules import RULES
from thresher.training.lane_bytes import bytes_of
from thresher.training.lanes import Lane, LaneTeam
from thresher.training.outputs import Order, Outputs, Paused
from thresher.training.plan import TrainingPlan
from thresher.training.target_scale import TargetScale

_WORK = 1 << 26  # nonzeros times lanes that are learned in one call
_MOST = 1 << 22  # nonzeros that are learned in one call

Seen = Callable[[Targets, int, Order], NDArray[np.uint8]]
"""Maps the targets of a block, the number of its first row, and some of its rows (None: all) to an
array of rows x clocks: 1 if the clock sees the row, else 0.
"""

Before = Callable[[NDArray[np.float64], Targets, int, int], None]
"""Receives predictions of the rows first:last of a block, made before the rows are learned."""


class LaneOutputs(Outputs):
    """Lanes of a team as outputs: all lanes for a trainer, or the lanes of one model.

    Parameters
    ----------
    team : LaneTeam
    averages : sequence of bool
        For each lane, whether its model is the mean of its weights over all steps.
    plan : LanePlan
        The plan that made the team.
    lanes : array of int, optional
        Numbers of the lanes to use; by default all.
    scale : TargetScale, optional
        The scale of the targets of each clock, if they are standardised.

    Attributes
    ----------
    before : callable or None
        Receives the predictions of each row before the row is learned.
    """

    def __init__(
        self,
        team: LaneTeam,
        averages: Sequence[bool],
        plan: LanePlan,
        lanes: NDArray[np.int64] | None = None,
        scale: TargetScale | None = None,
    ) -> None:
        self.team, self.averages, self.plan, self.full = team, averages, plan, set()
        self.lanes = np.arange(len(team)) if lanes is None else lanes
        self.scale = scale
        self.before: Before | None = None

    def part(self, lanes: NDArray[np.int64]) -> LaneOutputs:
        """Return some of the lanes, as the outputs of one model."""
        return LaneOutputs(self.team, self.averages, self.plan, lanes, self.scale)

    def __len__(self) -> int:
        return len(self.lanes)

    # ---- learning ------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Number of rows learned by the lane that learned the most."""
        return int(self.team.steps().max())

    @property
    def tally(self) -> tuple[float, float]:
        """Sums of losses and weights."""
        return float(self.team.loss_sums().sum()), float(self.team.weight_sums().sum())

    @property
    def rate(self) -> float:
        """Learning rate of the last step of the first lane."""
        return float(self.team.rates()[0])

    def learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        order: Order,
        first: int,
        last: int,
        paused: Paused = None,
        row: int = 0,
    ) -> None:
        """Let each lane learn the rows that its clock sees."""
        if self.plan.block is not None:
            rows = np.arange(first, last) if order is None else order[first:last]
            self._learn_copies(self.plan.block, targets, weights, rows)
            return
        seen = None if self.plan.seen is None else self.plan.seen(targets, row, None)
        found = self._learn(self.read_by_lanes(batch), targets, weights, seen, order, first, last)
        if self.before is not None and found is not None:
            self.before(found, targets, first, last)

    def _learn_copies(
        self,
        block: MatrixBlock,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        rows: NDArray[np.int64],
    ) -> None:
        """Learn a contiguous copy of the rows: faster than random access to each row."""
        seen = None if self.plan.seen is None else self.plan.seen(targets, 0, rows)
        own = None if weights is None else weights[rows]
        try:
            self._learn(block.take(rows), targets.of_rows(rows), own, seen, None, 0, len(rows))
        except _core.DataError as error:
            found = re.fullmatch(r"row (\d+): (.*)", str(error), re.DOTALL)
            if found is None:
                raise
            raise DataError(f"row {rows[int(found[1])]}: {found[2]}") from None

    def _learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        seen: NDArray[np.uint8] | None,
        order: Order,
        first: int,
        last: int,
    ) -> NDArray[np.float64] | None:
        batch.set_targets(targets.values, weights)
        classes = (targets.starts, targets.numbers) if targets.values is None else None
        if self.scale is not None:
            found = self._learn_standardised(batch, targets[0], weights, seen, order, first, last)
        else:
            found = self.team.learn(
                batch, order, first, last, seen, classes, targets.low, self.before is not None
            )
        if self.plan.store == "hashed":
            self.plan.check_bytes(self.team.store_bytes)
        return found

    def _learn_standardised(
        self,
        batch: _core.Batch,
        y: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        seen: NDArray[np.uint8] | None,
        order: Order,
        first: int,
        last: int,
    ) -> NDArray[np.float64] | None:
        """Learn targets that each clock standardises by the rows it sees."""
        assert self.scale is not None
        if seen is not None:
            seen = np.ascontiguousarray(seen[:, : self.scale.clocks])
        clocks = self._clocks(self.lanes)
        found = []
        while first < last:
            made = self.scale.standardise(y, weights, order, first, last, seen)
            scaled = made.labels, made.units
            raw = self.team.learn(
                batch, order, first, made.end, seen, before=self.before is not None, scaled=scaled
            )
            if raw is not None:
                rows = np.arange(first, made.end) if order is None else order[first : made.end]
                labels, sds = made.labels[rows][:, clocks], made.sds[rows][:, clocks]
                found.append(y[rows, None] + sds * (raw - labels))
            first = made.end
        return np.concatenate(found) if found else None

    def next_pass(self) -> None:
        """Let the rates decay."""
        self.team.next_pass()

    def widen(self, width: int) -> None:
        """Accept more features, if the memory limit allows it."""
        self.plan.check_bytes(self.plan.bytes_of(width))
        self.team.widen(width)

    # ---- results -------------------------------------------------------------------------------

    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions."""
        return self.predict_lanes(batch, self.lanes, rows, average)

    def read_by_lanes(self, batch: _core.Batch) -> _core.Batch:
        """Return the rows of a batch with the column numbers of the lanes.

        If the lanes have only the columns that occur, the batch must have all rows of the matrix.
        """
        used = self.plan.used
        return batch if used is None else used.block.batch

    def predict_lanes(
        self,
        batch: _core.Batch,
        lanes: NDArray[np.int64],
        rows: Order,
        average: bool,
        finite: bool = True,
    ) -> NDArray[np.float64]:
        """Return raw predictions of some lanes; parameters are those of `LaneTeam.predict`."""
        raw = self.team.predict(self.read_by_lanes(batch), lanes, rows, average, finite=finite)
        return raw if self.scale is None else self.scale.restored(raw, self._clocks(lanes))

    def _clocks(self, lanes: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self.plan.lanes[lane].clock for lane in lanes.tolist()], np.int64)

    def output(self, number: int, average: bool = False) -> Output:
        """Return the weights and the intercept of a lane."""
        lane = int(self.lanes[number])
        return self._output(lane, average, float(self.team.intercepts(average)[lane]))

    def _output(self, lane: int, average: bool, intercept: float) -> Output:
        """Return an output in the user's units, with the column numbers of the rows."""
        keys, weights = self.team.weights(lane, average)
        if self.plan.used is not None:
            keys = self.plan.used.numbers[keys]
        output, scale = Output(keys, weights, intercept), self.scale
        return output if scale is None else scale.output(output, self.plan.lanes[lane].clock)

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return the weights and the intercept of each lane: means where `averages` is true."""
        intercepts = {mean: self.team.intercepts(mean) for mean in set(self.averages)}
        found = []
        for lane in self.lanes.tolist():
            mean = self.averages[lane]
            found.append(self._output(lane, mean, float(intercepts[mean][lane])).largest(target))
        return found

    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each lane."""
        return np.asarray(self.team.nonzeros(average)[self.lanes])

    def states(self) -> list[bytes]:
        """Return the states of the lanes, one for each thread, and the scale of the targets."""
        scale = [] if self.scale is None else [self.scale.state()]
        return [*self.team.states(), *scale]

    def restore(self, states: Sequence[bytes]) -> None:
        """Continue from states of lanes that were split over threads in the same way."""
        if self.scale is not None:
            *states, scale = states
            self.scale.restore(scale)
        self.team.restore(states)


@dataclass(frozen=True)
class LanePlan(TrainingPlan):
    """A plan of many models that learn from the same rows: their common settings, and lanes.

    Attributes
    ----------
    lanes : tuple of Lane
    averages : tuple of bool
        For each lane, whether its model is the mean of its weights over all steps.
    waiting : tuple of bool
        For each lane, whether its rate is computed from the first rows.
    seen : callable or None
        Returns which clocks see which rows; None: all clocks see all rows.
    block : MatrixBlock or None
        Rows in memory, which are copied before they are learned; None: they are not copied.
    used : UsedColumns or None
        The rows, if the lanes have only the columns that occur. Then `block` is its block.
    limit : float
        Largest number of bytes of the lanes.
    n_jobs : int or None
        Number of threads. The other attributes are those of `TrainingPlan`.
    """

    lanes: tuple[Lane, ...] = ()
    averages: tuple[bool, ...] = ()
    waiting: tuple[bool, ...] = ()
    seen: Seen | None = None
    block: MatrixBlock | None = None
    used: UsedColumns | None = None
    limit: float = math.inf
    n_jobs: int | None = None

    @classmethod
    def of(cls, plan: TrainingPlan, lanes: Sequence[Lane], **more: Any) -> LanePlan:
        """Return a plan of these lanes.

        Parameters
        ----------
        plan : TrainingPlan
            The common settings.
        lanes : sequence of Lane
        **more
            The other attributes.
        """
        return cls(**{**vars(plan), "lanes": tuple(lanes), **more})

    @property
    def core(self) -> str:
        """The rule's name in the core."""
        return RULES[self.rule].core

    @property
    def chunk(self) -> int:
        """Nonzeros to learn between two checks of the time and of Ctrl-C."""
        return max(1, min(_MOST, _WORK // len(self.lanes)))

    @property
    def waits_for_rows(self) -> bool:
        """Whether the rate of some lanes is computed from the first rows."""
        return any(self.waiting)

    def with_rate(self, alpha: float) -> LanePlan:
        """Return the plan with a rate computed from the first rows."""
        rate = RULES[self.rule].rate_from_rows
        name = RULES[self.rule].core_names.get(rate, rate)
        lanes = tuple(
            replace(lane, numbers={**lane.numbers, name: alpha}) if waits else lane
            for lane, waits in zip(self.lanes, self.waiting, strict=True)
        )
        params = {**self.params, rate: alpha}
        return replace(self, params=params, lanes=lanes, waiting=(False,) * len(lanes))

    def make(self, features: int) -> LaneOutputs:
        """Make the lanes; their store can hold this number of features, or those that occur."""
        if self.used is not None:
            features = self.used.block.width
        if self.waits_for_rows:  # the lanes are made again when the rate is known
            features = min(features, 1)
        team = LaneTeam(self.core, self.store, self.dtype, features, self.lanes, self.n_jobs)
        scale = None
        if self.standardised:
            scale = self.factory(1).scale(1 + max(lane.clock for lane in self.lanes))
        return LaneOutputs(team, self.averages, self, scale=scale)

    def bytes_of(self, features: int) -> int:
        """Estimate the memory of the lanes with this number of features."""
        return bytes_of(self.core, self.store, self.dtype, self.lanes, features, self.n_jobs)

    def check_bytes(self, needed: float) -> None:
        """Raise OutOfMemoryError if the needed bytes exceed the limit."""
        if needed > self.limit:
            raise OutOfMemoryError(
                (f"{len(self.lanes)} models need {needed:,.0f} bytes, and ",
                 setting("memory_limit"), f" is {self.limit:,}"),
                parameter="memory_limit",
                value=self.limit,
                hint=("train fewer models, or use ", setting("store", "hashed")),
            )  # fmt: skip
