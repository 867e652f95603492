"""What a reading knows of each row of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
