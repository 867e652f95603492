"""The only training loop over blocks: passes, shuffling, records, early stopping, checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import Position
from thresher.data.input_digests import InputDigests
from thresher.data.read_options import Stopped
from thresher.data.targets import Targets
from thresher.data.visits import Visit
from thresher.errors import DataError
from thresher.model.model import Output
from thresher.rules import RULES
from thresher.training import model_names, order_watch, resuming
from thresher.training.arriving_classes import add_classes, arrivals, drop_missing_classes
from thresher.training.capacity import Capacity
from thresher.training.class_weights import row_weights
from thresher.training.early_stopping import EarlyStopping
from thresher.training.first_rows import ColumnWatch, warn_of_offsets
from thresher.training.hooks import Hooks
from thresher.training.name_cache import NameCache
from thresher.training.observer import Interrupted
from thresher.training.outputs import Outputs
from thresher.training.plan import TrainingPlan
from thresher.training.records import Records, mean_since
from thresher.training.regular_checkpoints import RegularCheckpoints
from thresher.training.run_options import RunOptions
from thresher.training.separate_outputs import SeparateOutputs
from thresher.training.validation import mean_loss
from thresher.training.validation_metric import judged_by

if TYPE_CHECKING:
    from thresher.data.matrix_source import MatrixSource
    from thresher.data.source import Source


class Trainer:
    """Trains outputs on the rows of a source, in passes.

    The result depends only on the plan and the rows: it is bit-identical for any size of blocks,
    and after any interruption.

    Parameters
    ----------
    plan : TrainingPlan
    source : Source or MatrixSource
    options : RunOptions, optional
    outputs : Outputs, optional
        Outputs to train further; by default new ones.
    hooks : Hooks, optional
        Extra training steps of the rule.
    records : Records, optional
        Records of the rows learned before; by default empty. Models that train together have
        `NoRecords`.
    capacity : Capacity, optional
    valid : Source or MatrixSource, optional
        Rows to compute the loss on after each pass.
    order : OrderWatch or None
        Watches the order of the labels; None: it is not watched.

    Attributes
    ----------
    number : int
        Number of passes done.
    passes_kept : int
        Number of passes of the final weights: fewer than `number` if an earlier pass was best.
    first_row : int
        Number of rows of this pass in earlier blocks.
    stopped : bool
        Whether training has stopped.
    complete : bool
        Whether the run was not ended by `tol` or a callback.
    whole_passes : bool
        Whether the last pass learned all rows.
    rows_of_pass : int
        Number of rows learned in the last pass.
    unit_weights : bool
        Whether all rows so far had weight 1.
    refits : bool
        Whether the weights kept by target_nnz are learned again afterwards.
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
        capacity: Capacity | None = None,
        valid: Source | MatrixSource | None = None,
        order: order_watch.OrderWatch | None = None,
    ) -> None:
        self.plan, self.source, self.options = plan, source, options or RunOptions()
        self.order, self.learns_once = order, False
        self._kinds: Mapping[str, str] = {}  # kinds of columns, if earlier rows decided them
        self.requested, self.refits = plan.params, plan.refits  # before rows give the rate
        self.hooks, self.valid, self.capacity = hooks or Hooks(), valid, capacity or Capacity(plan)
        self.records = records or Records(plan.average, plan.target)
        self.fresh = outputs is None
        self.outputs = plan.make(self.capacity.size) if outputs is None else outputs
        self.records.steps = self.outputs.steps
        if isinstance(self.outputs, SeparateOutputs):
            self.outputs.full = {i for i, m in enumerate(self.outputs) if self.hooks.is_full(m)}
            self.outputs.n_jobs = plan.params.get("n_jobs")
        self.number = self.passes_kept = self.block = self.first_row = 0
        self.position: Position | None = None  # after the last block learned in this pass
        self.passes_before = self.rows_of_pass = 0  # passes of the fit that this one continues
        self.origin = ""  # checksum of the state that the fit continues, if it is from a file
        self.older = False  # whether the checkpoint is of version 0.1.0, without these attributes
        self.steps_before, self.pass_tally = self.records.steps, self.outputs.tally  # of a pass
        self.input_digests = InputDigests()
        self.names = NameCache() if source.named and not source.rereadable else None
        self.first_names: _core.FirstNames | None = None  # `fit` sets it; see model_names.py
        self.columns = ColumnWatch(source, plan.owner, self.options.observer)
        self.early_stopping = EarlyStopping(plan.tol, plan.patience)
        self.valid_digest: int | None = None  # of the validation rows
        self.stopped = self.ended = self._due = False  # `_due`: whether a record is due
        self.complete = self.whole_passes = self.unit_weights = True
        self.last_block: Any = None  # the block of `_last_prepared`
        self.resumed: Iterator[Visit] | None = None  # rest of a pass that a resumed run has opened
        self._last_prepared: tuple[Targets, NDArray[np.float64] | None, list[int]] | None = None
        self.begun = False  # whether rows were seen
        self._checkpoints = RegularCheckpoints(self.options)
        if self.fresh and not plan.waits_for_rows:  # otherwise `set_plan` calls it
            self.hooks.begin(self)

    # ---- runs ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Make all passes that remain."""
        try:
            while self.number < self.plan.passes and not (self.stopped or self.ended):
                self._pass()
        except Stopped:  # while waiting for rows: the state is that after the last block
            if self.records.steps == 0:
                raise
            self.interrupt()
        best = self.early_stopping
        if not self.ended:
            self.passes_kept = self.number
        if best.states and best.best_pass != self.number and not self.ended:
            self.outputs.restore(best.states)
            self.complete, self.passes_kept = False, best.best_pass
            self.rows_of_pass = self.records.steps // max(self.number, 1)
        if RULES[self.plan.rule].steers and self.plan.target is not None and not self.ended:
            assert isinstance(self.outputs, SeparateOutputs)
            for learner in self.outputs:  # the penalty acts when a weight is read
                learner.steer()
        self.ended = True
        self._forget()
        self.options.observer.tell(
            "trained", mean_loss=self.mean_loss, seconds=self.records.seconds
        )

    @property
    def examples(self) -> int:
        """Number of rows learned so far, over all passes."""
        return self.records.steps

    @property
    def mean_loss(self) -> float:
        """Mean progressive loss of all rows so far."""
        return mean_since(self.outputs.tally)

    def once(self, number: int = 0, block: int = 0) -> None:
        """Learn all rows of the source once, without ending a pass.

        If the source is a part of the rows, the numbers of the pass and of its first block decide
        how rows are shuffled.
        """
        self.number, self.block, self.learns_once = number, block, True
        for visit in self._visits():
            self._visit(visit)
            if self.stopped:
                break
        self._record_if_due()
        order_watch.conclude(self)
        self._forget()

    def _forget(self) -> None:
        """Free memory that only training needs."""
        if self.outputs.scale is not None:
            self.outputs.scale.forget()

    def _pass(self) -> None:
        for visit in self._visits():
            self._visit(visit, traced=self.source.traced)
            self._pause()
            if self.stopped:
                self.whole_passes = False
                break
        else:
            self.input_digests.end(self.source.traced and not self.reorders)
        self._end_pass()

    def _visits(self) -> Iterator[Visit]:
        if self.resumed is not None:
            visits, self.resumed = self.resumed, None
            return visits
        return self.visits_after(self.position, self.block)

    def visits_after(self, position: Position | None, block: int = 0) -> Iterator[Visit]:
        """Return the rest of the pass after a position."""
        return self.source.visits(
            self.number, self.plan.shuffle, self.plan.seed, position, block, dtype=self.plan.dtype,
            names=model_names.requested(self, position), kinds=self._kinds or None,
        )  # fmt: skip

    def _visit(self, visit: Visit, traced: bool = False) -> None:
        """Learn the rows of a visit, and report it; `traced`: also update the input digests."""
        self._learn(visit)
        order_watch.see(self, visit, self._last_prepared)
        if traced:
            self.input_digests.add(visit.block, compare=not self.reorders)
        self.position, self.block = visit.end, self.block + 1
        self.first_row += 0 if self.plan.in_memory else visit.block.rows
        if self.names is not None:
            self.names.add(visit.block, self.outputs, self.plan.average)
        self.options.observer.progress(self)

    @property
    def reorders(self) -> bool:
        """Whether each pass has another order of the blocks."""
        return self.plan.shuffle not in (False, "within") and self.source.shuffles

    # ---- learning ------------------------------------------------------------------------------

    def _learn(self, visit: Visit) -> None:
        """Learn the rows of a visit.

        If a row is bad, the rows before it are learned, and the error names its place.
        """
        block, position, whole = visit.block, visit.first, False
        targets, weights, new = self._prepared(visit)
        try:
            while position < visit.last and not self._no_more():
                count = new.count(position)
                if count:
                    add_classes(self.outputs, count)
                    new[:] = [later for later in new if later != position]
                mark = self.records.next_mark()
                end = min(visit.last, position + mark - self.records.steps, *new[-1:])
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
            if not (whole and new):  # otherwise a later visit of the block reaches them
                drop_missing_classes(self.plan.labels, self.outputs)

    def _no_more(self) -> bool:
        """Make a record if it is due; return whether all outputs have stopped learning."""
        self._record_if_due()
        full = 0 < len(self.outputs) == len(self.outputs.full)
        self.stopped |= full or self.records.stopped
        return self.stopped

    def _prepared(self, visit: Visit) -> tuple[Targets, NDArray[np.float64] | None, list[int]]:
        """Return the targets, weights and new classes of a block, and make the outputs grow."""
        block = visit.block
        if self._last_prepared is not None and block is self.last_block:
            return self._last_prepared
        if self.plan.waits_for_rows and block.rows:
            self.set_plan(self.plan.with_rate(self.plan.rate_for(block)))
        new = arrivals(self.plan.labels, self.outputs, visit)
        targets = self.plan.labels.targets(block)
        self.capacity.grow_for(block, self.outputs)
        weights = row_weights(block, targets, self.plan.class_factors())
        self.unit_weights &= weights is None or bool((weights == 1.0).all())
        watched = self.records.watch is not None and not self.begun
        if watched and targets.rows and len(targets):
            scale, plan = self.outputs.scale, self.plan
            if scale is not None and scale.sd > 0:  # of rows learned before
                plan = replace(plan, known_scale=scale.known)
            self.records.expect(*plan.zero_loss(targets, weights))
        if self.fresh and not RULES[self.plan.rule].scales_columns:
            self.columns.see(block)
        if self.fresh and not self.begun and block.rows:
            warn_of_offsets(self.source, block, self.options.observer)
        self.begun = self.begun or block.rows > 0
        self._last_prepared, self.last_block = (targets, weights, new), block
        return self._last_prepared

    def set_plan(self, plan: TrainingPlan) -> None:
        """Replace the plan, and make new outputs by it."""
        self.plan, self.outputs = plan, plan.make(self.capacity.size)
        self.hooks.begin(self)

    # ---- records and the end of a pass ---------------------------------------------------------

    def _record_if_due(self) -> None:
        if self._due:
            self.record()

    def record(self, valid: float | None = None, end: bool = False) -> None:
        """Add a record of the rows since the last one, and warn if training diverges."""
        self._due = False
        counted = end or self.records.steps >= self.capacity.count_from_row
        self.records.add(self.outputs, counted, self.options.observer.warn, valid, end)
        warning = None if self.outputs.scale is None else self.outputs.scale.warning()
        if warning is not None:
            self.options.observer.warn(f"{self.plan.owner}: {warning}")

    def _end_pass(self) -> None:
        # First, because it may be interrupted: the state is still that after the last block.
        if self.outputs.scale is not None:
            self.outputs.scale.fixed = True  # later passes have the mean and sd of all rows
        valid = None if self.valid is None else self.valid_loss(self.valid)
        if self.records.steps == 0:
            raise DataError(f"{self.source}: no rows to learn from")
        self.number, self.position, self.block = self.number + 1, None, 0
        self.first_row, self.rows_of_pass = 0, self.records.steps - self.steps_before
        self.steps_before = self.records.steps
        self.input_digests.begin()
        self.record(valid, end=True)
        order_watch.conclude(self)
        loss = mean_since(self.outputs.tally, self.pass_tally) if valid is None else valid
        judged, more = judged_by(self, loss)
        facts = {"number": self.number, "loss": loss, "record": self.records.last, **more}
        self.options.observer.tell("pass", **facts)
        full = len(self.outputs.full) == len(self.outputs)
        kept = None if self.valid is None else self.outputs
        if self.records.stopped:
            self.stopped, self.complete = True, full
        elif self.early_stopping.stops_after(self.number, judged, kept):
            self.stopped, self.complete = True, False
        self.plan.labels.conclude()
        if full or self.hooks.ended(self.outputs):
            self.stopped = True
        self.pass_tally = self.outputs.tally
        if self.number < self.plan.passes and not self.stopped:
            self.outputs.next_pass()
            self._pause()

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each column of a table."""
        return self._kinds or self.source.kinds

    @kinds.setter
    def kinds(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds

    def valid_loss(
        self, source: Source | MatrixSource, kept: Sequence[Output] | None = None
    ) -> float:
        """Return the loss on the validation rows, of the outputs or of the weights `kept`."""
        rows = source, self.plan, self.outputs, self.capacity, self.kinds
        warn = self.options.observer.warn if self.valid_digest is None else None  # once
        loss, digest = mean_loss(*rows, kept, warn, self.input_digests.computed)
        if self.valid_digest not in (None, digest):
            raise DataError(f"{source}: the rows have changed since they were last read")
        self.valid_digest = digest
        return loss

    # ---- pauses --------------------------------------------------------------------------------

    def _pause(self) -> None:
        """Between two visits: stop if the observer says so, or write a checkpoint if it is due."""
        if self.options.observer.stops():
            self.interrupt()
        self._checkpoints.write_if_due(self.write_checkpoint)

    def interrupt(self) -> NoReturn:
        """Stop between two visits or after the last one; a resumed run continues from here."""
        if self.options.checkpoint is None:
            raise KeyboardInterrupt
        self.write_checkpoint()
        raise Interrupted(self.records.steps)

    def write_checkpoint(self) -> None:
        """Write the state of the run."""
        self._record_if_due()
        digest = self.options.write(resuming.checkpoint_of(self))
        self.options.observer.tell("checkpoint", examples=self.records.steps, digest=digest)

    def resume(self) -> bool:
        """Continue from the checkpoint; return False if there is none. See `resuming.resume`."""
        self.first_names = None  # the names before the checkpoint are not known
        return resuming.resume(self)
