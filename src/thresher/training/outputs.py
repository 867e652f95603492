"""The outputs of a model being learned: what estimators and runs ask of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.targets import Losses, Targets
from thresher.model.model import Output

_CELLS = 1 << 22  # predictions held at a time

Order = NDArray[np.int64] | None
Paused = Callable[[int, _core.Learner], bool] | None


class Outputs(ABC):
    """Outputs that learn from the same rows, in step.

    Attributes
    ----------
    full : set of int
        Outputs that have stopped learning for good.
    """

    full: set[int]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of outputs."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Rows learned, by the output that learned the most."""

    @property
    @abstractmethod
    def tally(self) -> tuple[float, float]:
        """Sums of the progressive losses and of the weights of the rows, of all outputs."""

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

        `paused` is asked, of an output that stands alone and whose rule paused, whether the output
        has stopped learning for good.
        `row` is the number of the block's first row, counted from the first row of the pass.
        A bad row stops all outputs before it, so that they stay in step. Divergence of one of
        several outputs leaves them out of step.
        """

    @abstractmethod
    def predict(
        self, batch: _core.Batch, average: bool = False, rows: Order = None
    ) -> NDArray[np.float64]:
        """Return raw predictions of these rows (None: all), one column for each output."""

    @abstractmethod
    def output(self, number: int, average: bool = False) -> Output:
        """Return what an output has learned."""

    @abstractmethod
    def nonzeros(self, average: bool = False) -> NDArray[np.int64]:
        """Count the nonzero weights of each output."""

    @abstractmethod
    def next_pass(self) -> None:
        """Let the rates decay as after a pass."""

    @abstractmethod
    def widen(self, width: int) -> None:
        """Take feature numbers below a larger width from now on; 0: all."""

    @abstractmethod
    def states(self) -> list[bytes]:
        """Return all that decides how learning goes on."""

    @abstractmethod
    def restore(self, states: Sequence[bytes]) -> None:
        """Go on from states; raise ValueError where they are not of such outputs."""

    def outputs(self, average: bool = False, target: int | None = None) -> list[Output]:
        """Return what each output has learned; of its weights the `target` largest."""
        return [self.output(i, average).largest(target) for i in range(len(self))]

    def loss_on(
        self,
        batch: _core.Batch,
        targets: Targets,
        losses: Losses,
        weights: NDArray[np.float64] | None = None,
        average: bool = False,
    ) -> float:
        """Return the sum over rows of the mean loss over outputs, each row by its weight."""
        total, step = 0.0, max(1, _CELLS // max(len(self), 1))
        for first in range(0, targets.rows, step):
            last = min(first + step, targets.rows)
            rows = None if last - first == targets.rows else np.arange(first, last)
            found = targets.row_losses(self.predict(batch, average, rows), losses, first)
            total += float(found.sum() if weights is None else found @ weights[first:last])
        return total
