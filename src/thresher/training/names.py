"""Names of features whose weights are not zero, kept while a pipe is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.training.learning import Learning

_FEW = 1 << 18  # names kept without asking whether their weights live


class NameKeeper:
    """The names of the living: what cannot be read a second time.

    A weight becomes nonzero only when its feature is in a row, and then the row gives its name. So
    names of dead weights can go at any time: memory follows the living.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._most = _FEW

    def see(self, block: Block, learning: Learning) -> None:
        """Take the names of a block; forget those of dead weights when there are too many."""
        for key, name in block.names:
            self.names.setdefault(key, name)
        if len(self.names) > self._most:
            living = set(
                np.concatenate(
                    [learner.weights(learning.average)[0] for learner in learning.learners]
                ).tolist()
            )
            self.names = {key: name for key, name in self.names.items() if key in living}
            self._most = max(_FEW, 2 * len(self.names))

    @property
    def state(self) -> list[Any]:
        """As JSON can carry it."""
        return [sorted(self.names.items()), self._most]

    @state.setter
    def state(self, saved: Sequence[Any]) -> None:
        self.names, self._most = {int(key): name for key, name in saved[0]}, saved[1]
