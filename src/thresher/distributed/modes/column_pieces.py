"""Pieces of the mode "columns": parts, which divide rows into blocks of columns, and the blocks.

`Trainer` is not used here: it trains learners on whole rows of a source, one after the other. A
block of columns has only its own columns of all rows, in memory. Before it can learn a batch, it
waits for the products of the other blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.atomic import written_whole
from thresher.data.orders import orders
from thresher.disk_sync import make_folder
from thresher.distributed.engine.messages import Message, Question
from thresher.distributed.engine.pieces import (
    Arrays,
    ClusterJob,
    Piece,
    StepResult,
    unknown_message,
)
from thresher.distributed.modes.column_messages import (
    AskWeights,
    BatchReply,
    BatchRows,
    BlockWeights,
    ColumnsReply,
    GatherColumns,
    GatherReply,
    LearnBatch,
    ReleaseRows,
    SendColumns,
)
from thresher.errors import DataError, ModelFileError, ParameterError
from thresher.file_access import naming
from thresher.training.class_weights import class_factors, row_weights

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.targets import Targets

# The arrays of a block's rows. `reach` is the squared norm of a row, divided by that of the row's
# features in the block.
_ROWS = ("keys", "counts", "columns", "values", "reach", "labels", "weights")


class ColumnPartPiece(Piece):
    """A part: reads its rows once, and sends each block its columns of them.

    Parameters
    ----------
    job : ClusterJob
    number : int
    blocks : int
    """

    def __init__(self, job: ClusterJob, number: int, blocks: int) -> None:
        self.job, self.number, self.blocks = job, number, blocks

    def step(self, message: Message[Any], received: Sequence[Arrays]) -> StepResult:
        """Read the rows and send them; in the second step, free them."""
        match message:
            case SendColumns():
                return self._send_columns()
            case ReleaseRows():
                return StepResult()  # which replaces the result that has the rows
        raise unknown_message(self, message)

    def _send_columns(self) -> StepResult:
        labels, weights, rows, squares = [], [], 0, 0.0
        found: list[list[tuple[Any, ...]]] = [[] for _ in range(self.blocks)]
        dtype, intercept = str(self.job.params["dtype"]), bool(self.job.params["fit_intercept"])
        for block in self.job.rows.source(self.number).blocks(dtype=dtype):
            targets = self.job.labels.targets(block)
            labels.append(targets[self.job.output].astype(np.int8))
            weights.append(_weights(self.job, block, targets))
            try:
                cut, largest = _core.cut_columns(
                    block.batch, dtype, self.job.width, self.blocks, intercept
                )
            except _core.DataError as error:
                raise block.located(error) from None
            for pieces, piece in zip(found, cut, strict=True):
                pieces.append(piece)
            rows, squares = rows + block.rows, max(squares, largest)
        shared = {"labels": _joined(labels, np.int8), "weights": _filled(weights, labels)}
        return StepResult(
            ColumnsReply(rows, squares),
            [_compact(pieces, dtype) | shared for pieces in found],
        )

    def state(self) -> Arrays:
        """Return an empty state: after its two steps, a part has nothing left to do."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Do nothing: there is no state."""


class ColumnBlockPiece(Piece):
    """A range: the margin perceptron on a block of columns, for all rows.

    Parameters
    ----------
    job : ClusterJob
    number : int
        The first block has the intercept.
    blocks : int
    numbers, words : dict
        Parameters of the core's learner.
    shared : dict
        Shared by all blocks in the process: they read the rows in the same order.
    """

    def __init__(
        self,
        job: ClusterJob,
        number: int,
        blocks: int,
        numbers: dict[str, float],
        words: dict[str, str],
        shared: dict[str, Any],
    ) -> None:
        self.job, self.number = job, number
        self.numbers = numbers if number == 0 else {**numbers, "fit_intercept": 0.0}
        self.words = words
        name = f"columns-{job.output:05}-{number:05}-of-{blocks:05}"
        self.file = None if job.folder is None else Path(job.folder, name)
        self.orders: RowOrders = shared.setdefault("orders", RowOrders(job))
        self.rows: Arrays = {}
        self.learner: _core.MarginBlock | None = None
        self.batch: BatchRows | None = None  # whose products were computed last

    def step(self, message: Message[Any], received: Sequence[Arrays]) -> StepResult:
        """Take the rows; in later steps, learn a batch and compute products of the next."""
        match message:
            case GatherColumns():
                self._begin(_gathered(received))
                if self.file is not None:
                    write_rows(self.file, self.rows)
                return StepResult(GatherReply(len(self.rows["keys"])))
            case LearnBatch():
                return StepResult(self._learn(message))
        raise unknown_message(self, message)

    def _learn(self, message: LearnBatch) -> BatchReply:
        assert self.learner is not None
        updated, nonzeros, losses, weights, products = None, None, 0.0, 0.0, None
        if message.sums is not None:
            assert self.batch is not None
            order = self.orders.of(self.batch.scan)
            first, last = self.batch.first, self.batch.last
            updated = self.learner.learn(order, first, last, message.sums)
            if self.words["shrink"] == "touched":  # else all weights would have to be counted
                nonzeros = int(self.learner.facts()["nonzeros"])
            if self.number == 0:
                losses, weights = self._sum_losses(order, first, last, message.sums)
        self.batch = message.next
        if self.batch is not None:
            order = self.orders.of(self.batch.scan)
            products = self.learner.products(order, self.batch.first, self.batch.last)
        return BatchReply(updated, nonzeros, losses, weights, products)

    def _sum_losses(
        self, order: NDArray[np.int64] | None, first: int, last: int, sums: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Return the sums of losses and of weights of a batch."""
        rows = slice(first, last) if order is None else order[first:last]
        losses = np.maximum(0.0, self.numbers["epsilon"] - self.rows["labels"][rows] * sums)
        if not len(self.rows["weights"]):
            return float(losses.sum()), float(last - first)
        weights = self.rows["weights"][rows]
        return float((losses * weights).sum()), float(weights.sum())

    def _begin(self, rows: Arrays) -> None:
        self.rows = rows
        starts = np.zeros(len(rows["counts"]) + 1, np.int64)
        np.cumsum(rows["counts"], out=starts[1:])
        width = max(len(rows["keys"]), 1)
        batch = _core.sparse_batch(
            starts,
            rows["columns"],
            rows["values"],
            width,
            rows["labels"].astype(np.float64),
            rows["weights"] if len(rows["weights"]) else None,
        )
        dtype = str(self.job.params["dtype"])
        self.learner = _core.MarginBlock(
            batch, rows["reach"], dtype, width, self.numbers, self.words
        )

    def answer(self, question: Question[Any]) -> BlockWeights:
        """Return the weights."""
        if not isinstance(question, AskWeights):
            raise unknown_message(self, question)
        assert self.learner is not None
        columns, weights = self.learner.weights()
        bound = float(self.learner.facts()["norm_bound"])
        return BlockWeights(self.rows["keys"][columns], weights, self.learner.intercept, bound)

    def state(self) -> Arrays:
        """Return the weights; the rows too, if there is no file for them."""
        if self.learner is None:
            return {}
        learner = {"learner": np.frombuffer(self.learner.state(), np.uint8)}
        return learner if self.file is not None else learner | self.rows

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        if not state:
            return
        if self.file is None:
            self._begin({name: state[name] for name in _ROWS})
        else:
            self._begin(read_rows(self.file, sum(self.job.counts)))
        assert self.learner is not None
        self.learner.restore(state["learner"].tobytes())


class RowOrders:
    """The order of rows in each scan: the same as in ``fit`` with the job's seed.

    Parameters
    ----------
    job : ClusterJob
    """

    def __init__(self, job: ClusterJob) -> None:
        self.job = job
        self._orders = self._new_orders()
        self._scan = -1
        self._order: NDArray[np.int64] | None = None

    def of(self, scan: int) -> NDArray[np.int64] | None:
        """Return the order of a scan; None for the order of the files."""
        if scan < self._scan:
            self._orders, self._scan = self._new_orders(), -1
        while self._scan < scan:
            self._order, self._scan = next(self._orders), self._scan + 1
        return self._order

    def _new_orders(self) -> Iterator[NDArray[np.int64] | None]:
        rng = np.random.default_rng(self.job.seed)
        return orders(self.job.params["shuffle"], sum(self.job.counts), rng)


# ---- rows ----------------------------------------------------------------------------------------


def _weights(job: ClusterJob, block: Block, targets: Targets) -> NDArray[np.float64] | None:
    """Return the weights of the rows of a block, multiplied by those of their classes."""
    weights = block.weights
    if weights is not None:
        bad = ~(np.isfinite(weights) & (weights >= 0))
        if bad.any():
            place = block.place(int(bad.argmax()))
            raise DataError(f"{place}: the sample weight must be a finite number >= 0")
    factors = class_factors(job.params.get("class_weight"), job.labels, "")
    return row_weights(block, targets, factors)


def _filled(
    weights: Sequence[NDArray[np.float64] | None], labels: Sequence[NDArray[Any]]
) -> NDArray[np.float64]:
    """Return the weights of all rows, joined; an empty array if no row has a weight."""
    if all(found is None or not len(found) for found in weights):
        return np.zeros(0)
    return np.concatenate(
        [
            np.ones(len(rows)) if found is None or not len(found) else found
            for found, rows in zip(weights, labels, strict=True)
        ]
    )


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *arrays])


def _compact(pieces: Sequence[tuple[Any, ...]], dtype: str) -> Arrays:
    """Return the rows of a part, with column numbers instead of keys."""
    counts, keys, values, reach = zip(*pieces, strict=True) if pieces else ((),) * 4
    found, columns = np.unique(_joined(keys, np.uint64), return_inverse=True)
    return {
        "keys": found,
        "counts": _joined(counts, np.int32),
        "columns": columns.astype(np.int32),
        "values": _joined(values, dtype),
        "reach": _joined(reach, np.float32),
    }


def _gathered(received: Sequence[Arrays]) -> Arrays:
    """Return the rows of all parts, in their order, with one column for each key."""
    keys = np.unique(np.concatenate([part["keys"] for part in received]))
    if len(keys) > np.iinfo(np.int32).max:
        raise ParameterError(f"blocks: a block has {len(keys)} features; more blocks are needed")
    columns = [
        np.searchsorted(keys, part["keys"]).astype(np.int32)[part["columns"]] for part in received
    ]
    together = {
        name: np.concatenate([part[name] for part in received])
        for name in ("counts", "values", "reach", "labels")
    }
    weights = _filled([p["weights"] for p in received], [p["labels"] for p in received])
    return {"keys": keys, "columns": np.concatenate(columns), "weights": weights, **together}


def write_rows(file: Path, rows: Arrays) -> None:
    """Write the rows of a block, whole or not at all."""
    make_folder(file.parent)
    with written_whole(file) as out:
        for name in _ROWS:
            np.save(out, rows[name], allow_pickle=False)


def read_rows(file: Path, count: int) -> Arrays:
    """Read the rows of a block from its file; `count` is their number."""
    try:
        with naming(str(file)), file.open("rb") as content:
            rows = {name: np.load(content, allow_pickle=False) for name in _ROWS}
    except (OSError, ValueError, EOFError) as error:
        raise ModelFileError(f"{file}: cannot be read, or is damaged ({error})") from error
    sizes = {name: len(array) for name, array in rows.items()}
    entries = int(rows["counts"].sum(dtype=np.int64))
    if (
        any(sizes[name] != count for name in ("counts", "reach", "labels"))
        or sizes["weights"] not in (0, count)
        or sizes["columns"] != entries
        or sizes["values"] != entries
    ):
        raise ModelFileError(f"{file}: does not have the {count} rows of this run")
    return rows
