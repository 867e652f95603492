"""Targets of outputs: one number per row, or the classes of each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from thresher import _core

Losses = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


class Targets(Sequence[NDArray[np.float64]]):
    """The targets of each output for some rows.

    The targets of a single output are `values`. With several outputs, the target is 1 for rows of
    the output's class and `low` for others. Only the classes of the rows are stored; the targets
    of an output are made on request. So memory does not grow with the number of classes.

    Parameters
    ----------
    outputs : int
    values : array of float64, optional
        Targets of a single output.
    starts : array of int64, optional
        Row r has the classes ``numbers[starts[r]:starts[r + 1]]``.
    numbers : array of int32, optional
        Numbers of the outputs of these classes.
    low : float
        Target of rows of other classes.

    Examples
    --------
    >>> targets = Targets.of_classes(np.array([2, 0]), 3)
    >>> targets[2].tolist()
    [1.0, -1.0]
    """

    def __init__(
        self,
        outputs: int,
        values: NDArray[np.float64] | None = None,
        starts: NDArray[np.int64] | None = None,
        numbers: NDArray[np.int32] | None = None,
        low: float = -1.0,
    ) -> None:
        self.outputs, self.values, self.low = outputs, values, low
        self.starts = np.zeros(1, np.int64) if starts is None else starts
        self.numbers = np.zeros(0, np.int32) if numbers is None else numbers

    @classmethod
    def of_values(cls, values: Any) -> Targets:
        """Return the targets of a single output."""
        return cls(1, np.ascontiguousarray(values, np.float64))

    @classmethod
    def of_classes(cls, numbers: NDArray[Any], outputs: int, low: float = -1.0) -> Targets:
        """Return the targets of rows with one class each, if there are more than two classes."""
        starts = np.arange(len(numbers) + 1, dtype=np.int64)
        return cls(outputs, None, starts, numbers.astype(np.int32), low)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1 if self.values is None else len(self.values)

    def __len__(self) -> int:
        return self.outputs

    @overload
    def __getitem__(self, output: int) -> NDArray[np.float64]: ...
    @overload
    def __getitem__(self, output: slice) -> list[NDArray[np.float64]]: ...
    def __getitem__(self, output: int | slice) -> Any:
        """Return the targets of an output."""
        if isinstance(output, slice):
            return [self[i] for i in range(*output.indices(self.outputs))]
        if not -self.outputs <= output < self.outputs:
            raise IndexError(output)
        if self.values is not None:
            return self.values
        labels = np.full(self.rows, self.low)
        labels[self._rows[self.numbers == output % self.outputs]] = 1.0
        return labels

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        """Return the row of each of the numbers."""
        return np.repeat(np.arange(self.rows), np.diff(self.starts))

    def single(self) -> NDArray[np.intp]:
        """Return the class number of each row; 0 or 1 with a single output."""
        if self.values is not None:
            return np.asarray(self.values == 1.0, np.intp)
        return np.asarray(self.numbers, np.intp)

    def of_rows(self, rows: NDArray[np.int64]) -> Targets:
        """Return the targets of some rows, in the given order.

        Examples
        --------
        >>> Targets.of_classes(np.array([2, 0, 1]), 3).of_rows(np.array([2, 0])).single().tolist()
        [1, 2]
        """
        if self.values is not None:
            return Targets.of_values(self.values[rows])
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        at = np.repeat(self.starts[rows] - starts[:-1], counts) + np.arange(starts[-1])
        return Targets(self.outputs, None, starts, self.numbers[at], self.low)

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rows of each class, with several outputs."""
        return np.bincount(self.numbers, minlength=self.outputs).astype(np.int64)

    # ---- losses --------------------------------------------------------------------------------

    def zero_loss(self, losses: Losses, weights: NDArray[np.float64] | None) -> float:
        """Return the loss of predicting zero: weighted mean over rows, mean over outputs."""
        if weights is not None and not weights.any():
            return 0.0
        if self.values is not None:
            pair = None if weights is not None else _core.two_values(self.values)
            if pair is not None:  # two classes
                found = losses(np.zeros(2), np.array(pair[:2]))
                return float(found[0] + pair[2] / self.rows * (found[1] - found[0]))
            return float(np.average(losses(np.zeros(self.rows), self.values), weights=weights))
        low, high = losses(np.zeros(2), np.array([self.low, 1.0]))
        share = float(np.average(np.diff(self.starts), weights=weights)) / self.outputs
        return float(low + share * (high - low))

    def row_losses(
        self, predictions: NDArray[np.float64], losses: Losses, first: int = 0
    ) -> NDArray[np.float64]:
        """Return the loss of each row, as a mean over outputs.

        Parameters
        ----------
        predictions : array of shape (rows, outputs)
            Raw predictions of consecutive rows.
        losses : callable
            Takes predictions and targets, returns losses.
        first : int
            The first of these rows.
        """
        rows = len(predictions)
        if self.values is not None:
            return losses(
                np.ascontiguousarray(predictions[:, 0]), self.values[first : first + rows]
            )
        flat = np.ascontiguousarray(predictions).ravel()
        table = np.array(losses(flat, np.full(len(flat), self.low))).reshape(predictions.shape)
        starts = self.starts[first : first + rows + 1]
        at = np.repeat(np.arange(rows), np.diff(starts))
        numbers = self.numbers[starts[0] : starts[-1]]
        table[at, numbers] = losses(predictions[at, numbers], np.ones(len(at)))
        return np.asarray(table.mean(axis=1))
