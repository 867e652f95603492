"""The one loop over rows: passes, orders, records, early stopping, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import Position
from thresher.data.labels import ArrivingClasses
from thresher.data.read_options import Stopped
from thresher.data.targets import Targets
from thresher.data.visits import Visit
from thresher.errors import DataError, OutOfMemoryError, setting
from thresher.rules import RULES
from thresher.training import resuming
from thresher.training.capacity import Room
from thresher.training.class_weights import row_weights
from thresher.training.hooks import Hooks
from thresher.training.input_digests import Trail
from thresher.training.name_cache import NameKeeper
from thresher.training.observer import Interrupted
from thresher.training.outputs import Outputs
from thresher.training.plan import TrainingPlan, alpha_for
from thresher.training.records import Records, mean_since
from thresher.training.run_options import RunOptions
from thresher.training.separate_outputs import Alone
from thresher.training.shared_outputs import Together
from thresher.training.validation import mean_loss

if TYPE_CHECKING:
    from thresher.data.matrix_source import MatrixSource
    from thresher.data.source import Source


class Trainer:
    """Trains outputs on the rows of a source, in passes.

    What is learned is a function of plan and rows alone: neither how rows are cut into blocks nor
    whether the run was interrupted and resumed changes a bit of it.

    Parameters
    ----------
    plan : TrainingPlan
    source : Source or MatrixSource
    options : RunOptions, optional
    outputs : Outputs, optional
        Outputs to continue training; by default new ones.
    hooks : Hooks, optional
        Extra steps of the rule.
    records : Records, optional
        Those of rows learned before; by default new ones. Models that train together keep none:
        `NoRecords`.
    room : Room, optional
    valid : Source or MatrixSource, optional
        Rows to compute the loss on after each pass.

    Attributes
    ----------
    number : int
        Passes that are done.
    passes_kept : int
        Passes whose result is kept: fewer where the best one was not the last.
    first_row : int
        Rows of the pass in the blocks before the present one.
    stopped : bool
        Whether no more rows are to be learned.
    complete : bool
        Whether neither `tol` nor a callback ended the run.
    whole_passes : bool
        Whether the last pass learned from all rows.
    rows_of_pass : int
        Rows that the last pass learned from.
    unit_weights : bool
        Whether all rows so far had a weight of 1.
    """

    def __init__(
        self,
        plan: TrainingPlan,
        source: Source | MatrixSource,
        options: RunOptions | None = None,
        *,
        outputs: Outputs | None = None,
        hooks: Hooks | None = None,
        records: Records | None = None,
        room: Room | None = None,
        valid: Source | MatrixSource | None = None,
    ) -> None:
        self.plan, self.source, self.options = plan, source, options or RunOptions()
        self.requested = plan.params  # before rows have decided any of them
        self._kinds: Mapping[str, str] = {}  # of columns, where rows learned before have decided
        self.hooks, self.valid, self.room = hooks or Hooks(), valid, room or Room(plan)
        self.records = records or Records(plan.average, plan.target)
        self.fresh = outputs is None
        self.outputs = plan.make(self.room.size) if outputs is None else outputs
        self.records.steps = self.outputs.steps
        if isinstance(self.outputs, Alone):
            self.outputs.full = {i for i, m in enumerate(self.outputs) if self.hooks.is_full(m)}
        self.number = self.passes_kept = self.block = self.first_row = 0
        self.position: Position | None = None  # behind what was learned of the pass
        self.passes_before = 0  # of the fit that this one continues
        self.older = False  # whether version 0.1.0 began the run, and did not note its course
        self.rows_of_pass = 0  # learned in the last pass
        self.steps_before = self.records.steps  # of the pass
        self.trail = Trail()
        once = source.named and not source.rereadable
        self.names = NameKeeper() if once else None
        self.best: list[bytes] = []
        self.best_loss, self.best_pass, self.stale = float("inf"), 0, 0
        self.pass_tally = self.outputs.tally  # at the start of the pass
        self.valid_digest: int | None = None  # of the validation rows
        self.stopped = self.ended = False
        self.complete = self.whole_passes = self.unit_weights = True
        self.last_block: Any = None  # the block that is learned; its targets are in `_seen`
        self.resumed: Iterator[Visit] | None = None  # what a resumed run has begun to read
        self._seen: tuple[Targets, NDArray[np.float64] | None, list[int]] | None = None
        self._due = self.begun = False  # a record is due; rows have come
        self._written = time.monotonic()
        if self.fresh:
            self.hooks.begin(self)

    # ---- runs ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Make all passes that are left."""
        try:
            while self.number < self.plan.passes and not (self.stopped or self.ended):
                self._pass()
        except Stopped:  # while it waited for rows: the state is that behind the last block
            if self.records.steps == 0:
                raise
            self.interrupt()
        self.passes_kept = self.number
        if self.best and self.best_pass != self.number and not self.ended:
            self.outputs.restore(self.best)
            self.complete, self.passes_kept = False, self.best_pass
            self.rows_of_pass = self.records.steps // max(self.number, 1)
        if RULES[self.plan.rule].steers and self.plan.target is not None and not self.ended:
            assert isinstance(self.outputs, Alone)
            for learner in self.outputs:  # its penalty acts whenever a weight is read
                learner.steer()
        self.ended = True
        self.options.observer.tell(
            "trained", mean_loss=self.mean_loss, seconds=self.records.seconds
        )

    @property
    def examples(self) -> int:
        """Rows learned so far, over all passes."""
        return self.records.steps

    @property
    def mean_loss(self) -> float:
        """Mean progressive loss of all rows so far."""
        return mean_since(self.outputs.tally)

    def once(self, number: int = 0, block: int = 0) -> None:
        """Learn all rows of the source once, after those learned before: no pass ends.

        The numbers of the pass and of its first block, if the source holds only a part of the rows,
        decide how rows are shuffled.
        """
        self.number, self.block = number, block
        for visit in self._visits():
            self._visit(visit)
            if self.stopped:
                break
        self._record_if_due()

    def _pass(self) -> None:
        for visit in self._visits():
            self._visit(visit, traced=self.source.traced)
            self._pause()
            if self.stopped:
                self.whole_passes = False
                break
        self._end_pass()

    def _visits(self) -> Iterator[Visit]:
        if self.resumed is not None:
            visits, self.resumed = self.resumed, None
            return visits
        return self.visits_after(self.position, self.block)

    def visits_after(self, position: Position | None, behind: int = 0) -> Iterator[Visit]:
        """Return what is left of the pass behind a position."""
        names = False if self.names is None else "blocks"
        return self.source.visits(
            self.number, self.plan.shuffle, self.plan.seed, position, behind,
            dtype=self.plan.dtype, names=names, kinds=self._kinds or None,
        )  # fmt: skip

    def _visit(self, visit: Visit, traced: bool = False) -> None:
        """Learn the rows of a visit, and tell of it; `traced`: the input may be read again."""
        self._learn(visit)
        if traced:
            self.trail.see(visit.block, compare=not self.reorders)
        self.position, self.block = visit.end, self.block + 1
        self.first_row += 0 if self.plan.in_memory else visit.block.rows
        if self.names is not None:
            self.names.see(visit.block, self.outputs, self.plan.average)
        self.options.observer.progress(self)

    @property
    def reorders(self) -> bool:
        """Whether blocks come in another order in each pass."""
        return self.plan.shuffle not in (False, "within") and self.source.shuffles

    # ---- learning ------------------------------------------------------------------------------

    def _learn(self, visit: Visit) -> None:
        """Learn the rows of a visit.

        A bad row stops all outputs before it; the error names its place.
        """
        block, position, whole = visit.block, visit.first, False
        targets, weights, arrivals = self._prepared(visit)
        try:
            while position < visit.last and not self._no_more():
                count = arrivals.count(position)
                if count:
                    self._begin_outputs(count)
                    arrivals[:] = [later for later in arrivals if later != position]
                mark = self.records.next_mark()
                end = min(visit.last, position + mark - self.records.steps, *arrivals[-1:])
                try:
                    self.outputs.learn(
                        block.batch, targets, weights, visit.order, position, end,
                        self.hooks.paused, self.first_row,
                    )  # fmt: skip
                finally:
                    self.records.steps = self.outputs.steps
                position = end
                self._due = self.records.steps == mark
            whole = not self.stopped
        except _core.DataError as error:
            raise block.located(error) from None
        finally:
            if not (whole and arrivals):  # else they come in a later visit of the block
                self._settle()

    def _no_more(self) -> bool:
        """Record what is due; tell whether no output learns any more."""
        self._record_if_due()
        full = 0 < len(self.outputs) == len(self.outputs.full)
        self.stopped = self.stopped or full or self.records.stopped
        return self.stopped

    def _prepared(self, visit: Visit) -> tuple[Targets, NDArray[np.float64] | None, list[int]]:
        """Return targets, weights and arriving classes of a block, and make room for it."""
        block = visit.block
        if self._seen is not None and block is self.last_block:
            return self._seen
        if self.plan.waits_for_rows and block.rows:
            self.set_plan(self.plan.with_rate(alpha_for(block)))
        arrivals = self._arrivals(visit)
        targets = self.plan.labels.targets(block)
        self.room.see(block, self.outputs)
        weights = row_weights(block, targets, self.plan.class_factors())
        self.unit_weights &= weights is None or bool((weights == 1.0).all())
        watched = self.records.watch is not None and not self.begun
        if watched and targets.rows and len(targets):
            self.records.expect(*self.plan.zero_loss(targets, weights))
        self.begun = self.begun or block.rows > 0
        self._seen, self.last_block = (targets, weights, arrivals), block
        return self._seen

    def set_plan(self, plan: TrainingPlan) -> None:
        """Make the outputs anew, with what is known now."""
        self.plan, self.outputs = plan, plan.make(self.room.size)
        self.hooks.begin(self)

    def _arrivals(self, visit: Visit) -> list[int]:
        """Take new classes; return when each comes, the last first."""
        labels = self.plan.labels
        if not isinstance(labels, ArrivingClasses):
            return []
        found = labels.arrivals(visit.block, visit.order)
        if found:
            assert isinstance(self.outputs, Together)
            self.outputs.expect(labels.lane_of)
        return found[::-1]

    def _begin_outputs(self, count: int) -> None:
        assert isinstance(self.outputs, Together)
        try:
            self.outputs.add(count)
        except MemoryError:
            raise OutOfMemoryError(
                "no memory for the weights of another class in a dense store",
                hint=(setting("store", "hashed"), " needs memory for the features seen alone, and ",
                      setting("bits", call="scan"), " bounds the width"),
            ) from None  # fmt: skip

    def _settle(self) -> None:
        """Forget classes whose first row was not reached."""
        labels = self.plan.labels
        if isinstance(labels, ArrivingClasses):
            assert isinstance(self.outputs, Together)
            self.outputs.settle()
            labels.keep(len(self.outputs))

    # ---- records and the end of a pass ---------------------------------------------------------

    def _record_if_due(self) -> None:
        if self._due:
            self.record()

    def record(self, valid: float | None = None, end: bool = False) -> None:
        """Add a record of the rows since the one before, and warn where training diverges."""
        self._due = False
        counted = end or self.records.steps >= self.room.counted_from
        self.records.add(self.outputs, counted, self.options.observer.warn, valid, end)

    def _end_pass(self) -> None:
        # First, as it may be interrupted: the state is still that behind the last block.
        valid = None if self.valid is None else self._valid_loss(self.valid)
        if self.records.steps == 0:
            raise DataError(f"{self.source}: no rows to learn from")
        self.number, self.position, self.block = self.number + 1, None, 0
        self.first_row, self.rows_of_pass = 0, self.records.steps - self.steps_before
        self.steps_before = self.records.steps
        self.trail.begin()
        self.record(valid, end=True)
        loss = mean_since(self.outputs.tally, self.pass_tally) if valid is None else valid
        self.options.observer.tell("pass", number=self.number, loss=loss, record=self.records.last)
        full = len(self.outputs.full) == len(self.outputs)
        if self.records.stopped:
            self.stopped, self.complete = True, full
        else:
            self._judge(loss)
        self.plan.labels.conclude()
        if full or self.hooks.ended(self.outputs):
            self.stopped = True
        self.pass_tally = self.outputs.tally
        if self.number < self.plan.passes and not self.stopped:
            self.outputs.next_pass()
            self._pause()

    def _judge(self, loss: float) -> None:
        """Decide whether to go on, by the loss of the pass."""
        if self.plan.tol is None:
            return
        self.stale = 0 if loss < self.best_loss - self.plan.tol else self.stale + 1
        if loss < self.best_loss:
            self.best_loss, self.best_pass = loss, self.number
            if self.valid is not None:
                self.best = self.outputs.states()
        if self.stale >= self.plan.patience:
            self.stopped, self.complete = True, False

    @property
    def kinds(self) -> Mapping[str, str]:
        """What columns of tables are taken for."""
        return self._kinds or self.source.kinds

    @kinds.setter
    def kinds(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds

    def _valid_loss(self, source: Source | MatrixSource) -> float:
        loss, digest = mean_loss(source, self.plan, self.outputs, self.room, self.kinds)
        if self.valid_digest not in (None, digest):
            raise DataError(f"{source}: the rows have changed since they were read before")
        self.valid_digest = digest
        return loss

    # ---- pauses --------------------------------------------------------------------------------

    def _pause(self) -> None:
        """Between two visits: stop, or write a checkpoint, where it is time."""
        if self.options.observer.stops():
            self.interrupt()
        due = time.monotonic() - self._written >= self.options.every
        if self.options.checkpoint is not None and due:
            try:
                self.write_checkpoint()
            except OSError as error:  # a full disk: training goes on, and may find room later
                self._written = time.monotonic()
                self.options.observer.warn(f"no checkpoint was written: {error}")

    def interrupt(self) -> NoReturn:
        """Stop here, between two visits or after the last one; a resumed run continues."""
        if self.options.checkpoint is None:
            raise KeyboardInterrupt
        self.write_checkpoint()
        raise Interrupted(self.records.steps)

    def write_checkpoint(self) -> None:
        """Write where the run stands."""
        self._record_if_due()
        assert self.options.checkpoint is not None
        digest = resuming.checkpoint_of(self).write(self.options.checkpoint)
        self._written = time.monotonic()
        self.options.observer.tell("checkpoint", examples=self.records.steps, digest=digest)

    def resume(self) -> bool:
        """Continue from the checkpoint; False where there is none.

        Raises ModelFileError where it is not of this run, DataError where the input has changed.
        """
        return resuming.resume(self)
