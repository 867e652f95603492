"""A visit: the rows of one training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from thresher.data.block import Block, Position

Order = NDArray[np.int64] | None


class Visit(NamedTuple):
    """The rows to learn in one step of training: ``order[first:last]`` of a block.

    Attributes
    ----------
    block : Block or MatrixBlock
    order : array of int64 or None
        The order of the rows of the block; None: stored order.
    first, last : int
        Range of positions in the order.
    end : Position
        The position after these rows, where a resumed run continues.
    """

    block: Block | Any
    order: Order
    first: int
    last: int
    end: Position
