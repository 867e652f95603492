"""What a reading knows of each row of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.row_folds import mixed


@dataclass(frozen=True)
class RowFacts:
    """What a reading knows of the rows of a matrix, in their stored order.

    Attributes
    ----------
    p : array of shape (outputs, rows)
        Honest predictions.
    lengths : array of int64 of shape (rows,)
        Number of nonzero values.
    hashes : array of uint64 of shape (rows,)
    """

    p: NDArray[np.float64]
    lengths: NDArray[np.int64]
    hashes: NDArray[np.uint64]

    @classmethod
    def of(cls, outputs: int, rows: int) -> RowFacts:
        """Return empty facts."""
        return cls(np.zeros((outputs, rows)), np.zeros(rows, np.int64), np.zeros(rows, np.uint64))

    def put(self, rows: Any, p: Any, lengths: Any, hashes: Any) -> None:
        """Set the facts of some rows."""
        self.p[:, rows], self.lengths[rows], self.hashes[rows] = p, lengths, hashes


def combined(hashes: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return one hash of each row from the hashes of all outputs, which differ in the label.

    Parameters
    ----------
    hashes : sequence of arrays of uint64 of shape (rows,)
    """
    whole = hashes[0]
    for each in hashes[1:]:
        whole = mixed(whole) ^ each
    return whole
