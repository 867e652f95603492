"""Weights of rows in units of their mean: a factor common to all weights changes nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class RelativeWeights:
    """Divides weights by their mean: by that of all rows, or by that of the rows so far.

    Attributes
    ----------
    total : float
        Sum of the weights so far.
    rows : int
        Number of rows with a weight above 0 so far.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.row_weights import RelativeWeights
    >>> RelativeWeights().running(np.array([2.0, 0.0, 6.0])).tolist()
    [1.0, 0.0, 1.5]
    >>> RelativeWeights.of_all(np.array([2.0, 0.0, 6.0])).tolist()
    [0.5, 0.0, 1.5]
    """

    def __init__(self) -> None:
        self.total, self.rows = 0.0, 0

    def running(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the next weights, in units of the mean of the weights up to each."""
        totals = np.cumsum(np.concatenate([[self.total], weights]))[1:]
        rows = self.rows + np.cumsum(weights > 0)
        if len(weights):
            self.total, self.rows = float(totals[-1]), int(rows[-1])
        ones = np.ones(len(weights))
        mean = np.divide(totals, rows, out=ones, where=(rows > 0) & (totals > 0))
        return np.asarray(weights / mean)

    @staticmethod
    def of_all(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weights in units of the mean of those that are not 0."""
        used = weights[weights > 0]
        return weights / used.mean() if len(used) else weights

    def restart(self) -> None:
        """Start again with the first row."""
        self.total, self.rows = 0.0, 0
