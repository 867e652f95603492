"""A run over a source: passes, early stopping, checkpoints, and going on from one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import Block, Position
from thresher.data.reading import Stopped
from thresher.errors import DataError, ModelFileError
from thresher.training import checkpoint as checkpoints
from thresher.training.bits import bits_of, check_bits
from thresher.training.checkpoint import Checkpoint
from thresher.training.learning import Learning
from thresher.training.names import NameKeeper
from thresher.training.trail import Trail

if TYPE_CHECKING:
    from thresher.data.source import Source


class Interrupted(Exception):
    """A run was asked to stop, and did, after writing a checkpoint where one was wanted."""


@dataclass
class Watcher:
    """Who is told of a run, and may stop it. Does nothing; the command line overrides it."""

    def progress(self, run: Run, block: Block) -> None:
        """Tell that a block has been learned."""

    def tell(self, event: str, **facts: Any) -> None:
        """Tell of anything else: "pass", "checkpoint", "resumed", "warning"."""

    def stops(self) -> bool:
        """Ask whether to stop now."""
        return False


@dataclass
class Plan:
    """What a run does besides learning.

    Attributes
    ----------
    passes : int
    shuffle : bool
        Whether rows are shuffled within blocks, and blocks where the source can, in each pass anew.
    seed : int
    tol, patience
        As of the estimators.
    checkpoint : path or None
    every : float
        Seconds between checkpoints.
    described : dict
        The options that a resumed run must share; JSON can carry them.
    """

    passes: int = 1
    shuffle: bool = False
    seed: int = 0
    tol: float | None = None
    patience: int = 5
    checkpoint: str | PathLike[str] | None = None
    every: float = 60.0
    described: dict[str, Any] = field(default_factory=dict)


class Run:
    """Learners taken through a source, pass after pass.

    Parameters
    ----------
    learning : Learning
    source : Source
    plan : Plan
    valid : Source, optional
        Rows to compute the loss on after each pass.
    watcher : Watcher, optional
    """

    def __init__(
        self,
        learning: Learning,
        source: Source,
        plan: Plan,
        valid: Source | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.learning, self.source, self.plan, self.valid = learning, source, plan, valid
        self.watcher = watcher or Watcher()
        self.number = 0  # passes that are done
        self.position: Position | None = (
            None  # behind the last block of the pass; None: at its start
        )
        self.block = 0  # blocks of the pass that were learned
        self.trail = Trail()
        self.names = None if source.rereadable or not source.named else NameKeeper()
        self.best: list[bytes] = []
        self.best_loss, self.best_pass, self.stale = float("inf"), 0, 0
        self.pass_tally = learning.tally  # at the start of the pass
        self.updates = -1.0  # of the margin perceptron, up to the end of the pass before
        self.stopped = False
        self.ended = False  # nothing is left to learn
        self._begun: Iterator[Block] | None = None  # the blocks of a pass that is under way
        self._written = time.monotonic()
        self._warned = 0

    # ---- the loop ------------------------------------------------------------------------------

    def go(self) -> None:
        """Make all passes that are left."""
        if self.ended:
            return
        try:
            while self.number < self.plan.passes and not self.stopped:
                self._pass()
        except Stopped:  # while it waited for rows: the state is that behind the last block
            if self.learning.steps == 0:
                raise
            self.interrupt()
        if self.best and self.best_pass != self.number:
            self.learning.learners.restore(self.best)
        if self.learning.rule == "ftrl" and self.learning.target is not None:
            for learner in self.learning.alone():  # its l1 acts whenever a weight is read
                learner.steer()
        self.ended = True

    def _pass(self) -> None:
        for block in self._blocks():
            self.learning.learn(block, self._order(block))
            self.trail.see(block, compare=not self._reorders())
            self.position, self.block = block.end, self.block + 1
            if self.names is not None:
                self.names.see(block, self.learning)
            self._warn()
            self.watcher.progress(self, block)
            self._pause()
        self._end_pass()

    def _blocks(self) -> Iterator[Block]:
        if self._begun is not None:
            blocks, self._begun = self._begun, None
            return blocks
        return self._blocks_after(self.position)

    def _blocks_after(self, position: Position | None) -> Iterator[Block]:
        order = (self.plan.seed, self.number) if self._reorders() else None
        return self.source.blocks(
            position,
            dtype=self.learning.dtype,
            names=False if self.names is None else "blocks",
            order=order,
        )

    def _reorders(self) -> bool:
        """Tell whether blocks come in another order in each pass."""
        return self.plan.shuffle and self.source.shuffles

    def _order(self, block: Block) -> NDArray[np.int64] | None:
        if not self.plan.shuffle:
            return None
        return _core.path_order(self.plan.seed, self.block, self.number, block.rows)

    def _pause(self) -> None:
        """Between two blocks: stop, or write a checkpoint, where it is time."""
        if self.watcher.stops():
            self.interrupt()
        due = time.monotonic() - self._written >= self.plan.every
        if self.plan.checkpoint is not None and due:
            try:
                self.write_checkpoint()
            except OSError as error:  # a full disk: learning goes on, and may find room later
                self._written = time.monotonic()
                self.watcher.tell("warning", message=f"no checkpoint was written: {error}")

    def interrupt(self) -> NoReturn:
        """Stop here, between two blocks or behind the last one of all; go on later."""
        if self.plan.checkpoint is not None:
            self.write_checkpoint()
        raise Interrupted

    def _end_pass(self) -> None:
        learning = self.learning
        # First, as it may be interrupted: the state is still that behind the last block.
        valid = None if self.valid is None else self.loss_on(self.valid)
        self.number, self.position, self.block = self.number + 1, None, 0
        self.trail.begin()
        if learning.steps == 0:
            raise DataError(f"{self.source}: no rows to learn from")
        record = learning.record(valid, end=True)
        self._warn()
        loss = learning.mean_since(self.pass_tally) if valid is None else valid
        self.watcher.tell("pass", number=self.number, loss=loss, record=record)
        self._judge(loss)
        learning.labels.conclude()
        if len(learning.learners.full) == len(learning.learners) or self._converged():
            self.stopped = True
        self.pass_tally = learning.tally
        if self.number < self.plan.passes and not self.stopped:
            learning.next_pass()
            self._pause()

    def _judge(self, loss: float) -> None:
        """Decide whether to go on, by the loss of the pass."""
        if self.plan.tol is None:
            return
        self.stale = 0 if loss < self.best_loss - self.plan.tol else self.stale + 1
        if loss < self.best_loss:
            self.best_loss, self.best_pass = loss, self.number
            if self.valid is not None:
                self.best = self.learning.learners.states()
        self.stopped |= self.stale >= self.plan.patience

    def _converged(self) -> bool:
        """Tell whether another pass would change nothing."""
        if self.learning.rule != "margin-perceptron":
            return False
        before = self.updates
        self.updates = sum(learner.facts()["updates"] for learner in self.learning.alone())
        return self.updates == before

    def _warn(self) -> None:
        for message in self.learning.warnings[self._warned :]:
            self.watcher.tell("warning", message=message)
        self._warned = len(self.learning.warnings)

    def loss_on(self, source: Source) -> float:
        """Return the mean loss on all rows of a source, by their weights."""
        learning = self.learning
        total, weight = 0.0, 0.0
        for block in source.blocks(dtype=learning.dtype, kinds=self.source.kinds):
            learning.make_room(block)
            targets = learning.labels.targets(block)
            weights = np.ones(block.rows) if block.weights is None else block.weights
            total += learning.learners.loss_on(
                block.batch, targets, learning.losses, weights, learning.average
            )
            weight += float(weights.sum())
        if weight == 0:
            raise DataError(f"{source}: no rows to compute a loss on")
        return total / weight

    # ---- checkpoints ---------------------------------------------------------------------------

    def write_checkpoint(self) -> None:
        """Write where the run stands."""
        assert self.plan.checkpoint is not None
        learning, states = self.learning.state()
        about = {
            "options": self.plan.described,
            "bits": self._bits(),
            "source": self.source.facts(),
            "learning": learning,
            "pass": self.number,
            "position": None if self.position is None else self.position.to_json(),
            "trail": self.trail.state,
            "most_names": None if self.names is None else self.names.most,
            "block": self.block,
            "best": [self.best_loss, self.best_pass, self.stale],
            "pass_tally": list(self.pass_tally),
            "updates": self.updates,
            "ended": self.plan.passes if self.ended else None,
            "sketch": self.source.sketch.hex(),
            "bad_lines": self.source.bad_lines.state,
            "seconds": self.learning.seconds,
        }
        names = None if self.names is None else self.names.table.names
        digest = Checkpoint(about, states, self.best, names).write(self.plan.checkpoint)
        self._written = time.monotonic()
        self.watcher.tell("checkpoint", examples=self.learning.steps, digest=digest)

    def resume(self) -> bool:
        """Go on from the checkpoint; False where there is none.

        Raises ModelFileError where it is not of this run, DataError where the input has changed.
        """
        assert self.plan.checkpoint is not None
        try:
            saved = checkpoints.read(self.plan.checkpoint)
        except FileNotFoundError:
            return False
        about = saved.about
        for name, now in self.plan.described.items():
            before = about["options"].get(name, now)
            if before != now:
                raise ModelFileError(
                    f"{self.plan.checkpoint}: {name} was {before!r} in the run that wrote it, and "
                    f"is {now!r} now; a resumed run needs the same options"
                )
        check_bits(about.get("bits"), self._bits(), self.plan.checkpoint, saved.version)
        self.ended = about.get("ended") is not None
        if self.ended and about["ended"] != self.plan.passes:
            raise ModelFileError(
                f"{self.plan.checkpoint}: the run that wrote it has made all {about['ended']} "
                f"passes, and {self.plan.passes} are wanted now; a resumed run needs as many"
            )
        try:
            self.learning.restore(about["learning"], saved.states, float(about["seconds"]))
        except ValueError as error:
            raise ModelFileError(f"{self.plan.checkpoint}: {error}") from None
        self.number, self.block, position = about["pass"], about["block"], about["position"]
        self.position = None if position is None else Position.from_json(position)
        self.source.sketch = bytes.fromhex(about["sketch"])
        self.source.bad_lines.state = about["bad_lines"]
        self.best = list(saved.best)
        self.best_loss, self.best_pass, self.stale = about["best"]
        loss, weight = about["pass_tally"]
        self.pass_tally, self.updates = (loss, weight), about["updates"]
        if self.names is not None:
            self.names.restore(saved.names or {}, about["most_names"])
        if self.source.is_as(about["source"]):
            self.trail.state = about["trail"]
        else:
            self._read_again(about["trail"])
        self.watcher.tell("resumed", examples=self.learning.steps, digest=saved.digest)
        return True

    def _bits(self) -> dict[str, int]:
        return bits_of(self.learning.rule, self.plan.shuffle, self.source.named)

    def _read_again(self, trail: dict[str, Any]) -> None:
        """Read up to the position again, to see that the input is what it was."""
        self.trail.state = trail
        self.trail.begin()
        if self.position is None:
            return
        blocks = self._blocks_after(None)
        for block in blocks:
            self.trail.see(block, compare=not self._reorders())
            if block.end == self.position:
                self._begun = blocks  # a pipe cannot be read a second time
                break
        if self.trail.chain != trail["chain"]:
            raise DataError(
                f"{self.source}: the input has changed since the checkpoint was written: it was "
                f"read up to line {self.position.line} of its file number {self.position.file + 1}"
            )
