"""The readings of a source, and what is prepared for a block of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core


@dataclass(frozen=True)
class Prepared:
    """A block with targets, a batch for each output, and folds."""

    block: Any
    in_memory: bool
    y: NDArray[np.float64]
    batches: Sequence[_core.Batch]
    folds: NDArray[np.int64]


@dataclass(frozen=True)
class Phase:
    """One reading: "stream", "learn" with the folds to learn, or "score"."""

    name: str
    folds: tuple[int, ...] = ()
