"""The interface of outputs: the learners of one model during training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Losses, Targets
from thresher.model.model import Output
from thresher.sums import dot
from thresher.training.target_scale import TargetScale

_CELLS = 1 << 22  # predictions in memory at a time

Order = NDArray[np.int64] | None
Paused = Callable[[int, _core.Learner], bool] | None


class Outputs(ABC):
    """Outputs that learn from the same rows.

    Attributes
    ----------
    full : set of int
        Outputs that have stopped learning for good.
    scale : TargetScale or None
        The scale of the targets, if they are standardised. The learners then have other units than
        the user; predictions, weights and losses that outputs return are in the user's units.
    """

    full: set[int]
    scale: TargetScale | None = None

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of outputs."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of rows learned by the output that learned the most."""

    @property
    @abstractmethod
    def tally(self) -> tuple[float, float]:
        """Sums of the progressive losses and of the row weights, over all outputs."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """Learning rate of the last step."""

    @abstractmethod
    def learn(
        self,
        batch: _core.Batch,
        targets: Targets,
        weights: NDArray[np.float64] | None,
        order: Order,
        first: int,
        last: int,
        paused: Paused = None,
        row: int = 0,
    ) -> None:
        """Let all outputs learn the rows order[first:last].

        `paused` is called for a separate output whose learner has paused; it returns whether the
        output has stopped learning for good.
        `row` is the number of the block's first row, counted from the first row of the pass.
        If a row is bad, all outputs have learned the rows before it, and no others. If outputs
        diverge, the others have learned all rows.
        """

    @abstractmethod
    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions for these rows (None: all), one column for each output."""

    @abstractmethod
    def output(self, number: int, average: bool = False) -> Output:
        """Return the weights and the intercept of an output."""

    @abstractmethod
    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each output."""

    @abstractmethod
    def next_pass(self) -> None:
        """Let the rates decay, after a pass."""

    @abstractmethod
    def widen(self, width: int) -> None:
        """Accept feature numbers below a larger width from now on; 0: all."""

    @abstractmethod
    def states(self) -> list[bytes]:
        """Return the complete states of the learners."""

    @abstractmethod
    def restore(self, states: Sequence[bytes]) -> None:
        """Continue from states; raise ValueError if they are of other outputs."""

    def losses(self, losses: Losses) -> Losses:
        """Return the losses of predictions and targets in the user's units."""
        return losses if self.scale is None else self.scale.losses(losses)

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return the intercept and the `target` largest weights of each output."""
        return [self.output(i, average).largest(target) for i in range(len(self))]

    def loss_on(
        self,
        batch: _core.Batch,
        targets: Targets,
        losses: Losses,
        weights: NDArray[np.float64] | None = None,
        average: bool = False,
    ) -> float:
        """Return the weighted sum over rows of the mean loss over outputs."""
        total, step = 0.0, max(1, _CELLS // max(len(self), 1))
        for first in range(0, targets.rows, step):
            last = min(first + step, targets.rows)
            rows = None if last - first == targets.rows else np.arange(first, last)
            found = targets.row_losses(self.predict(batch, average, rows), losses, first)
            total += float(found.sum()) if weights is None else dot(found, weights[first:last])
        return total
