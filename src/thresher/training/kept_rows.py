"""Rows that have only some of their features, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.arrays import is_sparse
from thresher.data.matrix_source import MatrixBlock
from thresher.data.targets import Targets
from thresher.training.class_weights import row_weights

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.training.plan import TrainingPlan


@dataclass(frozen=True)
class KeptRows:
    """Rows with some of their features, their targets and weights.

    Attributes
    ----------
    starts : array of int64
        Row r has the values ``values[starts[r]:starts[r + 1]]``.
    columns : array of int32
        The place of each value's feature among the kept ones.
    values : array
    width : int
        Number of kept features.
    targets : Targets
    weights : array or None
        Weights of the rows, times those of their classes; None: all are 1.
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[Any]
    width: int
    targets: Targets
    weights: NDArray[np.float64] | None

    @classmethod
    def of_block(
        cls, block: Block | MatrixBlock, features: NDArray[np.uint64], plan: TrainingPlan
    ) -> KeptRows:
        """Return the rows of a block with some features, which are in increasing order."""
        if isinstance(block, MatrixBlock) and not is_sparse(block.X):
            X = block.X[:, features.astype(np.intp)]
            known = X != 0
            starts = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
            columns, values = np.nonzero(known)[1], X[known]
        else:
            if isinstance(block, MatrixBlock):
                own_starts, keys, values = block.X.indptr, block.X.indices, block.X.data
            else:
                native = block.native
                own_starts, keys, values = map(
                    np.asarray, (native.starts, native.keys, native.values)
                )
            keys = keys.astype(np.int64).view(np.uint64)
            columns = np.minimum(np.searchsorted(features, keys), max(len(features) - 1, 0))
            known = features[columns] == keys
            starts, columns, values = _selected(own_starts, known, columns, values)
        targets = plan.labels.targets(block)
        weights = row_weights(block, targets, plan.class_factors())
        return cls(
            starts, columns.astype(np.int32), np.array(values), len(features), targets, weights
        )

    @classmethod
    def joined(cls, pieces: Sequence[KeptRows]) -> KeptRows:
        """Return the rows of several pieces as one."""
        if len(pieces) == 1:
            return pieces[0]
        weights = None
        if any(piece.weights is not None for piece in pieces):
            weights = np.concatenate(
                [np.ones(p.rows) if p.weights is None else p.weights for p in pieces]
            )
        return cls(
            _joined_starts([piece.starts for piece in pieces]),
            np.concatenate([piece.columns for piece in pieces]),
            np.concatenate([piece.values for piece in pieces]),
            pieces[0].width,
            _joined_targets([piece.targets for piece in pieces]),
            weights,
        )

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1

    def part(self, columns: NDArray[np.intp]) -> KeptRows:
        """Return the rows with only some of the columns, which are in increasing order."""
        if len(columns) == self.width:
            return self
        places = np.full(self.width, -1, np.int32)
        places[columns] = np.arange(len(columns))
        own = places[self.columns]
        starts, own, values = _selected(self.starts, own >= 0, own, self.values)
        return KeptRows(starts, own, values, len(columns), self.targets, self.weights)

    def batch(self, output: int) -> _core.Batch:
        """Return the rows with the targets of an output, for the core."""
        columns, values = self.columns, np.ascontiguousarray(self.values)
        return _core.sparse_batch(
            self.starts, columns, values, max(self.width, 1), self.targets[output], self.weights
        )

    def first_values(self, rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return where the values of each of the first rows begin, and their values."""
        starts = self.starts[: rows + 1]
        return starts, np.asarray(self.values[: starts[-1]], np.float64)

    def products(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product of each row with the weights of the columns."""
        rows = np.repeat(np.arange(self.rows), np.diff(self.starts))
        found = np.bincount(rows, self.values * weights[self.columns], self.rows)
        return np.asarray(found, np.float64)

    def sums(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over rows of each column, times a number for each row."""
        each = np.repeat(slopes, np.diff(self.starts))
        found = np.bincount(self.columns, self.values * each, self.width)
        return np.asarray(found, np.float64)


def _selected(
    starts: NDArray[Any], known: NDArray[np.bool_], columns: NDArray[Any], values: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
    """Return the rows with only the known entries."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(known, dtype=np.int64)])
    return before[starts], columns[known], values[known]


def _joined_starts(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    counts = [np.diff(part) for part in parts]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))])


def _joined_targets(parts: Sequence[Targets]) -> Targets:
    first = parts[0]
    if first.values is not None:
        return Targets.of_values(np.concatenate([part.values for part in parts]))
    starts = _joined_starts([part.starts for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    return Targets(first.outputs, None, starts, numbers, first.low)
