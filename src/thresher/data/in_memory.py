"""Reads all rows of a source into memory, for rules that need all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError, ParameterError, setting

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.source import Source


@dataclass(frozen=True)
class InMemoryRows:
    """All rows of a source, as arrays.

    Attributes
    ----------
    starts, keys, values : arrays
        Row r has the features ``keys[starts[r]:starts[r + 1]]``, with the values in the same range.
    labels : array
    weights : array or None
    width : int
        All feature numbers are below it.
    """

    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: NDArray[np.float64]
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None
    width: int

    def matrix(self) -> Any:
        """Return a CSR matrix whose columns are the features by their numbers."""
        if self.width >= 2**31:
            raise ParameterError(
                f"features have numbers up to {self.width - 1}: too many for columns of a matrix",
                hint=("set ", setting("bits", call="scan"), " to reduce them"),
            )
        return self._csr(self.keys.astype(np.int64), self.width)

    def compact(self) -> tuple[Any, NDArray[np.uint64]]:
        """Return a CSR matrix with one column per feature that occurs, and these features."""
        seen, columns = np.unique(self.keys, return_inverse=True)
        return self._csr(columns, len(seen)), seen

    def matrix_of(self, features: NDArray[Any]) -> Any:
        """Return a CSR matrix with one column for each of these features, in increasing order."""
        features = features.astype(np.uint64)
        at = np.minimum(np.searchsorted(features, self.keys), max(len(features) - 1, 0))
        known = features[at] == self.keys if len(features) else np.zeros(len(self.keys), bool)
        before = np.concatenate([[0], np.cumsum(known)])
        kept = InMemoryRows(
            before[self.starts], self.keys[known], self.values[known], self.labels, None, self.width
        )
        return kept._csr(at[known], len(features))

    def _csr(self, columns: NDArray[np.int64], width: int) -> Any:
        import scipy.sparse as sp

        shape = (len(self.starts) - 1, width)
        return sp.csr_matrix((self.values, columns, self.starts), shape=shape)


def gather(
    source: Source,
    check: Callable[[Block], Any] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> InMemoryRows:
    """Read all rows of a source into memory; `check` is called with each block."""
    starts, keys, values = [np.zeros(1, np.int64)], [np.zeros(0, np.uint64)], [np.zeros(0)]
    labels: list[NDArray[Any]] = []
    weights: list[NDArray[np.float64]] = []
    width, weighted = 0, False
    for block in source.blocks(dtype="float64", kinds=kinds):
        if check is not None:
            check(block)
        if block.labels is None:
            raise DataError(f"{block.place(0)}: rows have lists of labels")
        native = block.native
        starts.append(starts[-1][-1] + np.asarray(native.starts)[1:].astype(np.int64))
        keys.append(np.asarray(native.keys).astype(np.int64).view(np.uint64))
        values.append(np.array(native.values))
        labels.append(np.array(block.labels))
        weights.append(np.ones(block.rows) if block.weights is None else np.array(block.weights))
        weighted |= block.weights is not None
        width = max(width, block.width or 2**64)
    if not any(map(len, labels)):
        raise DataError(f"{source}: no rows to learn from")
    return InMemoryRows(
        np.concatenate(starts),
        np.concatenate(keys),
        np.concatenate(values),
        np.concatenate(labels),
        np.concatenate(weights) if weighted else None,
        width if source.bits is None else 1 << source.bits,
    )
