"""The order of rows in each pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2000  # rows per block with shuffle="blocks"


def orders(
    shuffle: str | bool, rows: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64] | None]:
    """Yield the order of rows in each pass, without end; None is the stored order.

    Parameters
    ----------
    shuffle : {"each", "once", "replace", "blocks", False}
    rows : int
    rng : Generator
        Used only for the passes that are requested.
    """
    once = rng.permutation(rows) if shuffle == "once" else None
    while True:
        if shuffle == "each":
            yield rng.permutation(rows)
        elif shuffle == "replace":
            yield rng.integers(0, rows, rows)
        elif shuffle == "blocks":
            starts = rng.permutation(np.arange(0, rows, _BLOCK))
            yield np.concatenate([s + rng.permutation(min(_BLOCK, rows - s)) for s in starts])
        else:
            yield once
