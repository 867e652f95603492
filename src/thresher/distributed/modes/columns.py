"""Mode "columns": the margin perceptron, its features cut into blocks (R-9.6)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.pieces import ClusterJob, Coordinator, Learned, Mode
from thresher.distributed.modes.column_pieces import ColumnBlockPiece, ColumnPartPiece
from thresher.errors import DataError, DivergenceError, ParameterError, setting
from thresher.model.history import Output
from thresher.rules import RULES, core_args

if TYPE_CHECKING:
    from thresher.distributed.engine.executor import Executor

# Rows of a batch by default. A round trip on a cluster takes about 2.6 ms: 0.6 us a row of 4096.
# Test errors (benchmarks/columns.py) suffer where a scan has but a few batches, and more of them
# cost little where rows are few.
_LEAST, _MOST, _A_SCAN = 64, 4096, 16
_MOST_BLOCKS = 1 << 12
_ROWS = 1 << 20  # of a stage at most, as the driver keeps their sums up to a checkpoint,
_BATCHES = 1 << 16  # and batches


class ColumnsMode(Mode):
    """The soft-thresholded margin perceptron, features partitioned.

    Parts read their rows once and send each block its columns of them. From then on blocks go
    through all rows together, batch by batch: every block gives its share of the inner products,
    the driver adds them up in the order of blocks, and with the sums p every block learns its own
    weights, one round trip for each batch.

    With ``batch=1`` this is the rule itself: bit for bit where sums are exact, or with one block;
    else to rounding. A larger batch is another algorithm. All products of a batch are those of the
    weights before it, and were all rows that they find within the margin to make an update, one
    batch of some thousand rows would bring weights of frequent features far beyond what any of them
    asked for. So a block looks at each row again with what it has changed itself since, from its
    share q to q'. What other blocks change meanwhile it cannot know: it takes it that all of the
    product changes by as much more as the squared norm of the row is more than that of its features
    in the block:

        if y (p + r (q' - q)) <= margin:   w_j <- S(w_j + eta y x_j, l1)   for x_j != 0 of the block

    with r = ||x||^2 / ||x of the block||^2. Blocks may differ in which rows they learn from, so
    more rows make updates than with ``batch=1``. One block alone is the rule itself for any batch,
    to rounding and but for `max_density`. The intercept is a feature of the first block, with
    x = 1.

    Parameters
    ----------
    job : ClusterJob
        Of the rule "margin-perceptron"; its `output` says which class is learned.
    batch : int, optional
        Rows of a batch. By default 4096, and fewer where there are less than 65536 rows: a 16th of
        them, but not less than 64.
    blocks : int
        Never a matter of how many workers there are: the result depends on it, for a `batch`
        larger than 1. A feature's key decides which block it is in.

    Notes
    -----
    Learning stops after `passes` scans, after a scan without an update (A-10), by `tol` and
    `patience` on the progressive loss of a scan, or when `max_density` is reached, which is looked
    at after each batch. Rows are in the orders of ``fit`` on a matrix whose generator begins with
    the job's seed.

    Of the facts of a learner, `updates` counts rows that any block learned from, `norm_bound` is
    the sum of the bounds of all blocks, which holds for any batch, and `squared_radius` is that of
    all rows. What would need more messages is left out: culprits and least shrinkage.
    """

    def __init__(self, job: ClusterJob, batch: int | None = None, blocks: int = 8) -> None:
        if batch is None:
            batch = max(_LEAST, min(_MOST, sum(job.counts) // _A_SCAN))
        for name, value, most in (("batch", batch, 1 << 30), ("blocks", blocks, _MOST_BLOCKS)):
            if type(value) is not int or not 1 <= value <= most:
                raise ParameterError(
                    parameter=name, value=value, allowed=f"a whole number from 1 to {most}"
                )
        _check(job)
        self.job, self.batch, self.blocks = job, batch, blocks
        self.parts, self.ranges = job.rows.parts, blocks
        self.numbers, self.words = core_args.core_parameters(job.rule, job.params, None)

    def part(self, number: int, threads: int, shared: dict[str, Any]) -> ColumnPartPiece:
        """Make a part, which reads rows."""
        return ColumnPartPiece(self.job, number, self.blocks)

    def range(self, number: int, shared: dict[str, Any]) -> ColumnBlockPiece:
        """Make a block."""
        return ColumnBlockPiece(self.job, number, self.blocks, self.numbers, self.words, shared)

    def lead(self) -> ColumnCoordinator:
        """Make the driver's part."""
        return ColumnCoordinator(self.job, self.batch)


def _check(job: ClusterJob) -> None:
    """Raise ParameterError for what this mode does not learn."""
    if "columns" not in RULES[job.rule].cluster or job.task != "classifier":
        raise ParameterError(
            (setting("mode", "columns"), " is for the margin perceptron, a classifier; got "
             f"{job.rule}, a {job.task}"),
            parameter="mode",
            value="columns",
        )  # fmt: skip
    if job.params.get("levels"):
        raise ParameterError(
            (setting("levels"), ": ", setting("mode", "columns"), " keeps no models on the way; "
             "allowed is ()"),
            parameter="levels",
            value=job.params["levels"],
            allowed="()",
        )  # fmt: skip
    if job.params.get("max_density") is not None and job.width == 0:
        raise ParameterError(
            (setting("max_density"), ": a share of the features needs to know how many there are, "
             "and ", setting("mode", "columns"), " does not know it of hashed ones; allowed is "
             "None"),
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
        self.scan, self.position = 0, 0  # scans that are done, rows of this one
        self.updates, self.scan_updates = 0, 0
        self.losses, self.weights = 0.0, 0.0  # sums of this scan
        self.best, self.stale = math.inf, 0
        self.squares = 0.0  # the largest squared norm of a row
        self.nonzeros: int | None = None
        self.stop = ""  # why it ended

    @property
    def done(self) -> bool:  # type: ignore[override]
        """Whether nothing is left to do."""
        return self.stop != ""

    # ---- stages --------------------------------------------------------------------------------

    def stage(self, executor: Executor) -> dict[str, Any]:
        """Gather the rows; or take blocks through some batches of a scan."""
        if not self.gathered:
            return self._gather(executor)
        begun, before = self.position, (self.losses, self.weights)
        sums: NDArray[np.float64] | None = None
        for _ in range(max(1, min(_BATCHES, _ROWS // self.batch))):
            first, last = self.position, min(self.position + self.batch, self.rows)
            told = executor.ranges({"sums": sums, "next": (self.scan, first, last)})
            if sums is not None and self._learned(told):
                break  # the products were in vain
            sums, self.position = _sum_of(told), last
            if last == self.rows:
                break
        if not self.done:
            self._learned(executor.ranges({"sums": sums, "next": None}))
        weight = self.weights - before[1]
        facts = {
            "rows": self.position - begun,
            "loss": (self.losses - before[0]) / weight if weight > 0 else 0.0,
            "nonzeros": self.nonzeros,
        }
        if self.position == self.rows and not self.done:
            self._end_scan()
        return facts

    def _gather(self, executor: Executor) -> dict[str, Any]:
        told = executor.parts({"cut": True})
        for number, (part, count) in enumerate(zip(told, self.job.counts, strict=True)):
            if part["rows"] != count:
                raise DataError(
                    f"part {number} has {part['rows']} rows, and had {count} when they were "
                    f"counted: the data have changed"
                )
        if self.rows == 0:
            raise DataError("no rows to learn from")
        self.squares = max(part["squares"] for part in told)
        executor.ranges({"gather": True})
        executor.parts({"cut": False})  # so that they hold the rows no longer
        self.gathered = True
        return {"rows": 0}

    def _learned(self, told: list[dict[str, Any]]) -> bool:
        """Take what blocks tell of a batch; return whether they reached the density."""
        updated = np.bitwise_or.reduce([block["updated"] for block in told])
        self.scan_updates += int(np.unpackbits(updated).sum())
        self.losses += told[0]["losses"]
        self.weights += told[0]["weights"]
        if "nonzeros" in told[0]:
            self.nonzeros = sum(block["nonzeros"] for block in told)
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
        if self.scan_updates == 0:
            self.stop = "no update"
        elif tol is not None and self.stale >= self.job.params["patience"]:
            self.stop = "tol"
        elif self.scan >= self.job.params["passes"]:
            self.stop = "passes"
        self.updates += self.scan_updates
        self.scan_updates, self.losses, self.weights = 0, 0.0, 0.0

    # ---- state ---------------------------------------------------------------------------------

    _KEPT = (
        "gathered", "scan", "position", "updates", "scan_updates", "losses", "weights", "stale",
        "squares", "nonzeros", "stop",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return where it stands."""
        best = None if self.best == math.inf else self.best
        return {name: getattr(self, name) for name in self._KEPT} | {"best": best}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in self._KEPT:
            setattr(self, name, state[name])
        self.best = math.inf if state["best"] is None else state["best"]

    def result(self, executor: Executor) -> Learned:
        """Return the weights of all blocks, as one output."""
        answers = executor.ask_ranges({})
        keys = np.concatenate([answer["keys"] for answer in answers])
        weights = np.concatenate([answer["weights"] for answer in answers])
        sorting = np.argsort(keys)
        output = Output(keys[sorting], weights[sorting], answers[0]["intercept"])
        facts = {
            "updates": self.updates,
            "nonzeros": len(keys),
            "norm_bound": sum(answer["norm_bound"] for answer in answers),
            "squared_radius": self.squares,
            "scans": self.scan,
            "stop": self.stop,
        }
        return Learned([output], facts=facts)


def _sum_of(told: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Add the products of all blocks up, in their order."""
    sums: NDArray[np.float64] = told[0]["products"].copy()
    for block in told[1:]:
        sums += block["products"]
    if not np.isfinite(sums).all():
        raise DivergenceError(
            "the weights diverged: the values of the rows are too large; scale them"
        )
    return sums
