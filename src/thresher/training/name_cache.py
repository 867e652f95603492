"""Feature names of nonzero weights, for rows that are read only once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.distinct import distinct_keys
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.data.block import Block

_FEW = 1 << 18  # names that are kept without checking their weights


class NameCache:
    """Feature names of nonzero weights, for rows that are read only once.

    A weight becomes nonzero only when a row has its feature, and that row has its name. So names
    of zero weights can be dropped at any time: memory grows with the number of nonzero weights.
    """

    def __init__(self) -> None:
        self.table = _core.NameTable()
        self.most = _FEW

    def add(self, block: Block, outputs: Outputs, average: bool) -> None:
        """Add the names of a block; drop those of zero weights if there are too many."""
        self.table.take(block.native)
        if len(self.table) > self.most:
            nonzero = [output.keys for output in outputs.outputs(average)]
            self.table.retain(distinct_keys(nonzero))
            self.most = max(_FEW, 2 * len(self.table))

    def names(self) -> dict[int, str]:
        """Return the names, by feature."""
        return {key: name.decode(errors="replace") for key, name in self.table.names.items()}

    def of(self, keys: NDArray[np.uint64]) -> dict[int, str]:
        """Return the names of these features; some may be missing."""
        found = self.table.of(np.ascontiguousarray(keys, np.uint64))
        return {key: name.decode(errors="replace") for key, name in found.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.table.names, "most": self.most}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.restore(state["names"], state["most"])

    def restore(self, names: Mapping[int, bytes], most: int) -> None:
        """Replace the names; drop some when there are more than `most`."""
        self.table = _core.NameTable()
        for key, name in names.items():
            self.table.add(key, name)
        self.most = most
