"""Names of nonzero weights, kept while a pipe is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from thresher import _core
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.data.block import Block

_FEW = 1 << 18  # names kept without asking whether their weights live


class NameKeeper:
    """Names of nonzero weights of a source that cannot be read a second time.

    A weight becomes nonzero only when its feature is in a row, and then the row gives its name. So
    the names of zero weights can be forgotten at any time: memory follows the nonzero weights.
    """

    def __init__(self) -> None:
        self.table = _core.NameTable()
        self.most = _FEW

    def see(self, block: Block, outputs: Outputs, average: bool) -> None:
        """Take the names of a block; forget those of zero weights when there are too many."""
        self.table.take(block.native)
        if len(self.table) > self.most:
            nonzero = [output.keys for output in outputs.outputs(average)]
            self.table.retain(np.unique(np.concatenate([np.zeros(0, np.uint64), *nonzero])))
            self.most = max(_FEW, 2 * len(self.table))

    def names(self) -> dict[int, str]:
        """Return the names, by feature."""
        return {key: name.decode(errors="replace") for key, name in self.table.names.items()}

    def restore(self, names: Mapping[int, bytes], most: int) -> None:
        """Go on with these names; forget some when there are more than `most`."""
        self.table = _core.NameTable()
        for key, name in names.items():
            self.table.add(key, name)
        self.most = most
