"""Messages, questions and replies of the mode "columns"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.distributed.engine.messages import Message, Question


@dataclass(frozen=True)
class ColumnsReply:
    """Number of rows of a part, and the largest squared norm of a row."""

    rows: int
    squares: float


@dataclass(frozen=True)
class SendColumns(Message[ColumnsReply]):
    """To parts: read the rows, and send each block its columns of them."""


@dataclass(frozen=True)
class ReleaseRows(Message[None]):
    """To parts: free the rows, after all blocks have received them."""


@dataclass(frozen=True)
class GatherReply:
    """Number of features in a block."""

    features: int


@dataclass(frozen=True)
class GatherColumns(Message[GatherReply]):
    """To blocks: join the columns that all parts have sent."""


@dataclass(frozen=True)
class BatchRows:
    """Rows `first` to `last` of a scan, in the order of that scan."""

    scan: int
    first: int
    last: int


@dataclass(frozen=True)
class BatchReply:
    """What a block reports of a batch that it learned, and its products of the next batch.

    `updated` has a bit for each row that made an update. `nonzeros` is None where it is known only
    after a count of all weights. Only the first block has `losses` and `weights`, sums over rows.
    """

    updated: NDArray[np.uint8] | None = None
    nonzeros: int | None = None
    losses: float = 0.0
    weights: float = 0.0
    products: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class LearnBatch(Message[BatchReply]):
    """To blocks: learn the last batch with these sums of products; then compute the next products.

    `sums` is None for the first batch of a stage, `next` for the end of a stage.
    """

    sums: NDArray[np.float64] | None
    next: BatchRows | None


@dataclass(frozen=True)
class BlockWeights:
    """Weights of a block, and an upper bound of their squared norm."""

    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]
    intercept: float
    norm_bound: float


@dataclass(frozen=True)
class AskWeights(Question[BlockWeights]):
    """To blocks: the weights."""
