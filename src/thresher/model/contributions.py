"""What each feature of a row adds to a score: its weight times its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.losses import LOSSES

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.model.model import Model

__all__ = ["Entries", "RowContributions", "contributions", "entries_of_block"]


class Entries(NamedTuple):
    """The values of rows: row r has ``keys[starts[r]:starts[r + 1]]`` and these values."""

    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: NDArray[np.float64]


class RowContributions(NamedTuple):
    """The features of rows that have a weight: by row, largest contribution first.

    Attributes
    ----------
    rows : array of int64
    keys : array of uint64
        The features.
    weights, values, amounts : array of float64
        Weights, values of the row, and contributions to the score.
    """

    rows: NDArray[np.int64]
    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]
    values: NDArray[np.float64]
    amounts: NDArray[np.float64]

    def largest(self, count: int) -> RowContributions:
        """Return the `count` largest contributions of each row."""
        first = np.searchsorted(self.rows, self.rows)
        kept = np.arange(len(self.rows)) - first < count
        columns: list[Any] = [column[kept] for column in self]
        return RowContributions(*columns)


def entries_of_block(block: Block) -> Entries:
    """Return the values of the rows of a block of a source."""
    native = block.native
    keys = np.asarray(native.keys).astype(np.int64).view(np.uint64)
    starts = np.asarray(native.starts).astype(np.int64)
    return Entries(starts, keys, np.asarray(native.values, np.float64))


def contributions(model: Model, entries: Entries, outputs: NDArray[np.int64]) -> RowContributions:
    """Return the contributions of the features of rows to one score each.

    The values of a feature that occurs several times in a row are added.

    Parameters
    ----------
    model : Model
    entries : Entries
    outputs : array of shape (rows,)
        The output whose score is explained, for each row.
    """
    sizes = np.diff(entries.starts)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    weights = _weights(model, entries.keys, outputs[rows])
    used = np.flatnonzero((weights != 0) & (entries.values != 0))
    order = used[np.lexsort((entries.keys[used], rows[used]))]
    rows, keys = rows[order], entries.keys[order]
    weights, values = weights[order], entries.values[order]
    if len(rows):
        new = np.append(True, (rows[1:] != rows[:-1]) | (keys[1:] != keys[:-1]))
        values = np.add.reduceat(values, np.flatnonzero(new))
        rows, keys, weights = rows[new], keys[new], weights[new]
    amounts = weights * values
    if LOSSES[model.loss].scales_rows:
        amounts = amounts * _row_scales(entries, sizes)[rows]
    order = np.lexsort((keys, -np.abs(amounts), rows))
    found: list[Any] = [column[order] for column in (rows, keys, weights, values, amounts)]
    return RowContributions(*found)


def _weights(
    model: Model, keys: NDArray[np.uint64], outputs: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the weight of each key in its output; 0 if it has none."""
    found = np.zeros(len(keys))
    for output in np.unique(outputs).tolist():
        begin, end = int(model.indptr[output]), int(model.indptr[output + 1])
        if begin == end:
            continue
        own, own_weights = model.indices[begin:end], model.weights[begin:end]
        at = np.flatnonzero(outputs == output)
        places = np.minimum(np.searchsorted(own, keys[at]), len(own) - 1)
        found[at] = np.where(own[places] == keys[at], own_weights[places], 0.0)
    return found


def _row_scales(entries: Entries, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what the sums of rows are multiplied by, for losses that scale rows."""
    rows = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.bincount(rows[entries.values != 0], minlength=len(sizes))
    return 1.0 / np.sqrt(np.maximum(counts, 1))
