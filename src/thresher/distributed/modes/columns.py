"""Mode "columns": the margin perceptron, with its features divided into blocks (R-9.6)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.pieces import ClusterJob, Coordinator, Learned, Mode
from thresher.distributed.modes.column_messages import (
    AskWeights,
    BatchReply,
    BatchRows,
    GatherColumns,
    LearnBatch,
    ReleaseRows,
    SendColumns,
)
from thresher.distributed.modes.column_pieces import ColumnBlockPiece, ColumnPartPiece
from thresher.errors import DataError, DivergenceError, ParameterError, setting
from thresher.model.history import Output
from thresher.rules import RULES, core_args
from thresher.sums import ordered_sum

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor

# Default size of a batch. A round trip on a cluster takes about 2.6 ms: 0.6 us a row of 4096. Test
# errors (benchmarks/columns.py) are higher with only a few batches in a scan, and with few rows,
# more batches cost little time.
_MIN_BATCH, _MAX_BATCH, _BATCHES_OF_A_SCAN = 64, 4096, 16
_MAX_BLOCKS = 1 << 12
# Limits for a stage, as the driver keeps the sums of its rows until the next checkpoint.
_MAX_ROWS = 1 << 20
_MAX_BATCHES = 1 << 16


class ColumnsMode(Mode):
    """The margin perceptron with soft thresholding, with its features divided into blocks.

    Parts read their rows once and send each block its columns of them. After that, all blocks go
    through all rows together, batch by batch: each block computes its share of the inner products,
    the driver adds the shares up in the order of blocks, and with the sums p each block learns its
    own weights. Each batch needs one round trip.

    With ``batch=1`` this is the rule itself: bit-identical if sums are exact, or with one block;
    otherwise equal up to rounding. A larger batch is another algorithm. All products of a batch use
    the weights before it. If every row within the margin by these products made an update, one
    batch of some thousand rows would make weights of frequent features far too large. So each block
    computes its share of a row again, with the updates that it has made in the batch: it changes
    from q to q'. The block does not have the updates of other blocks. It assumes that the product
    changes in proportion to the squared norm of the row:

        if y (p + r (q' - q)) <= margin:   w_j <- S(w_j + eta y x_j, l1)   for x_j != 0 of the block

    with r = ||x||^2 / ||x of the block||^2. Blocks may disagree on which rows make updates, so more
    rows make updates than with ``batch=1``. A single block is the rule itself for any batch, up to
    rounding and except for `max_density`. The intercept is a feature of the first block, with
    x = 1. A row of weight above 1 makes several steps in its batch. With several blocks, the steps
    after the first use the same assumption, also with ``batch=1``.

    Parameters
    ----------
    job : ClusterJob
        A job of the rule "margin-perceptron"; its `output` is the class to learn.
    batch : int, optional
        Rows in a batch. By default 4096; with less than 65536 rows a 16th of them, but at least 64.
    blocks : int
        Number of blocks. With a `batch` above 1 the result depends on it, so it must not depend on
        the number of workers. The key of a feature decides its block.

    Notes
    -----
    Training stops after `passes` scans, after a scan of all rows without an update (A-10), by `tol`
    and `patience` on the progressive loss of a scan, or when `max_density` is reached, which is
    checked after each batch. Rows are in the same orders as in ``fit`` on a matrix with the job's
    seed.

    The result has these facts of a learner: `updates` counts rows that made an update in any block,
    `norm_bound` is the sum of the bounds of all blocks, which holds for any batch, and
    `squared_radius` is the largest squared norm of all rows. The number of different rows that made
    an update, and the least shrinkage, are left out, as they would need more messages.
    """

    def __init__(self, job: ClusterJob, batch: int | None = None, blocks: int = 8) -> None:
        if batch is None:
            batch = max(_MIN_BATCH, min(_MAX_BATCH, sum(job.counts) // _BATCHES_OF_A_SCAN))
        for name, value, most in (("batch", batch, 1 << 30), ("blocks", blocks, _MAX_BLOCKS)):
            if type(value) is not int or not 1 <= value <= most:
                raise ParameterError(
                    parameter=name, value=value, allowed=f"a whole number from 1 to {most}"
                )
        _check(job)
        self.job, self.batch, self.blocks = job, batch, blocks
        self.parts, self.ranges = job.rows.parts, blocks
        params = dict(job.params)
        if params["margin"] == "auto":  # no part knows its first rows yet: as for rows of norm 1
            params["margin"] = core_args.rate_for(job.rule, job.task, params, norm=1.0)
        self.numbers, self.words = core_args.core_parameters(job.rule, params, None)

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> ColumnPartPiece:
        """Make a part, which reads rows."""
        return ColumnPartPiece(self.job, number, self.blocks)

    def range(self, number: int, shared: dict[str, Any]) -> ColumnBlockPiece:
        """Make a block."""
        return ColumnBlockPiece(self.job, number, self.blocks, self.numbers, self.words, shared)

    def coordinator(self) -> ColumnCoordinator:
        """Make the coordinator."""
        return ColumnCoordinator(self.job, self.batch)


def _check(job: ClusterJob) -> None:
    """Raise ParameterError for rules and parameters that this mode does not support."""
    if "columns" not in RULES[job.rule].cluster or job.task != "classifier":
        raise ParameterError(
            (setting("mode", "columns"), " is for the margin perceptron, a classifier; got "
             f"{job.rule}, a {job.task}"),
            parameter="mode",
            value="columns",
        )  # fmt: skip
    if job.params.get("levels"):
        raise ParameterError(
            (setting("levels"), " cannot be used with ", setting("mode", "columns"), ", which "
             "keeps only the last model; allowed is ()"),
            parameter="levels",
            value=job.params["levels"],
            allowed="()",
        )  # fmt: skip
    if job.params.get("max_density") is not None and job.width == 0:
        raise ParameterError(
            (setting("max_density"), " needs the number of features, which is not known for hashed "
             "features in ", setting("mode", "columns"), "; allowed is None"),
            parameter="max_density",
            value=job.params["max_density"],
            allowed="None",
        )  # fmt: skip


class ColumnCoordinator(Coordinator):
    """Adds up products, and decides when to stop.

    Parameters
    ----------
    job : ClusterJob
    batch : int
    """

    def __init__(self, job: ClusterJob, batch: int) -> None:
        self.job, self.batch = job, batch
        self.rows = sum(job.counts)
        density = job.params.get("max_density")
        self.limit = math.inf if density is None else math.ceil(density * job.width)
        self.gathered = False
        self.scan, self.position = 0, 0  # finished scans, and rows of the current one
        self.updates, self.scan_updates = 0, 0
        self.losses, self.weights = 0.0, 0.0  # sums of this scan
        self.best, self.stale = math.inf, 0
        self.squares = 0.0  # the largest squared norm of a row
        self.nonzeros: int | None = None
        self.stop = ""  # why training stopped

    @property
    def done(self) -> bool:  # type: ignore[override]
        """Whether training is finished."""
        return self.stop != ""

    # ---- stages ----------------------------------------------------------------------------------

    def stage(self, executor: Executor) -> dict[str, Any]:
        """Gather the rows; in later stages, learn some batches of a scan."""
        if not self.gathered:
            return self._gather(executor)
        begun, before = self.position, (self.losses, self.weights)
        sums: NDArray[np.float64] | None = None
        for _ in range(max(1, min(_MAX_BATCHES, _MAX_ROWS // self.batch))):
            first, last = self.position, min(self.position + self.batch, self.rows)
            replies = executor.step_ranges(LearnBatch(sums, BatchRows(self.scan, first, last)))
            if sums is not None and self._add_batch(replies):
                break  # the products are not needed
            sums, self.position = _sum_products(replies), last
            if last == self.rows:
                break
        if not self.done:
            self._add_batch(executor.step_ranges(LearnBatch(sums, None)))
        weight = self.weights - before[1]
        record = {
            "rows": self.position - begun,
            "loss": (self.losses - before[0]) / weight if weight > 0 else 0.0,
            "nonzeros": self.nonzeros,
        }
        if self.position == self.rows and not self.done:
            self._end_scan()
        return record

    def _gather(self, executor: Executor) -> dict[str, Any]:
        replies = executor.step_parts(SendColumns())
        for number, (reply, count) in enumerate(zip(replies, self.job.counts, strict=True)):
            if reply.rows != count:
                raise DataError(
                    f"part {number} has {reply.rows} rows, and had {count} when they were "
                    f"counted: the data have changed"
                )
        if self.rows == 0:
            raise DataError("no rows to learn from")
        self.squares = max(reply.squares for reply in replies)
        executor.step_ranges(GatherColumns())
        executor.step_parts(ReleaseRows())
        self.gathered = True
        return {"rows": 0}

    def _add_batch(self, replies: list[BatchReply]) -> bool:
        """Add up the replies for a batch; return whether the density was reached."""
        updated = np.bitwise_or.reduce([r.updated for r in replies if r.updated is not None])
        self.scan_updates += int(np.unpackbits(updated).sum())
        self.losses += replies[0].losses
        self.weights += replies[0].weights
        if replies[0].nonzeros is not None:
            self.nonzeros = sum(reply.nonzeros or 0 for reply in replies)
            if self.nonzeros >= self.limit:
                self.updates += self.scan_updates
                self.stop = "density"
        return self.done

    def _end_scan(self) -> None:
        self.scan, self.position = self.scan + 1, 0
        loss = self.losses / self.weights if self.weights > 0 else 0.0
        tol = self.job.params["tol"]
        if tol is not None:
            self.stale = 0 if loss < self.best - tol else self.stale + 1
            self.best = min(self.best, loss)
        if self.scan_updates == 0 and self.job.params["shuffle"] != "replace":
            self.stop = "no update"
        elif tol is not None and self.stale >= self.job.params["patience"]:
            self.stop = "tol"
        elif self.scan >= self.job.params["passes"]:
            self.stop = "passes"
        self.updates += self.scan_updates
        self.scan_updates, self.losses, self.weights = 0, 0.0, 0.0

    # ---- state -----------------------------------------------------------------------------------

    _SAVED = (
        "gathered", "scan", "position", "updates", "scan_updates", "losses", "weights", "stale",
        "squares", "nonzeros", "stop",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return the state between two stages."""
        best = None if self.best == math.inf else self.best
        return {name: getattr(self, name) for name in self._SAVED} | {"best": best}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        for name in self._SAVED:
            setattr(self, name, state[name])
        self.best = math.inf if state["best"] is None else state["best"]

    def result(self, executor: Executor) -> Learned:
        """Return the weights of all blocks, as one output."""
        answers = executor.ask_ranges(AskWeights())
        keys = np.concatenate([answer.keys for answer in answers])
        weights = np.concatenate([answer.weights for answer in answers])
        order = np.argsort(keys)
        output = Output(keys[order], weights[order], answers[0].intercept)
        facts = {
            "updates": self.updates,
            "nonzeros": len(keys),
            "norm_bound": ordered_sum(answer.norm_bound for answer in answers),
            "squared_radius": self.squares,
            "scans": self.scan,
            "stop": self.stop,
        }
        return Learned([output], facts=facts)


def _sum_products(replies: list[BatchReply]) -> NDArray[np.float64]:
    """Add up the products of all blocks, in their order."""
    sums = np.zeros(0)
    for number, reply in enumerate(replies):
        assert reply.products is not None
        sums = reply.products.copy() if number == 0 else sums + reply.products
    if not np.isfinite(sums).all():
        raise DivergenceError(
            "the weights diverged: the values of the rows are too large; scale them"
        )
    return sums
