"""Stores that grow while rows are read, because the number of features is not known before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresher.errors import InputError, OutOfMemoryError, setting
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.matrix_source import MatrixBlock
    from thresher.training.plan import TrainingPlan

_MOST = 2**33  # largest number of features of a dense store
_MOST_OF_LANES = 2**31  # the size of a store is a power of two, and lanes count with 32 bits


class Capacity:
    """The number of features that the outputs accept; a dense store grows with the rows.

    Parameters
    ----------
    plan : TrainingPlan

    Attributes
    ----------
    size : int
        Number of features that the store can hold; 0: any.
    width : int
        Number of features so far; 0: any.
    """

    def __init__(self, plan: TrainingPlan) -> None:
        self.dense, self.grows = plan.store == "dense", plan.grows
        self.size = max(plan.width, 1) if self.dense else plan.width
        if plan.width == 2**64:
            self.size = 0
        self.width = 0 if self.grows else plan.width

    @property
    def count_from_row(self) -> int:
        """Before this row, records within a pass do not count nonzero weights, which is slow."""
        return (self.size if self.dense else 0) // 16

    def grow_for(self, block: Block | MatrixBlock, outputs: Outputs) -> None:
        """Make the outputs accept the largest feature number of a block."""
        if not self.grows:
            return
        width = block.width or 2**64
        self.width = max(self.width, width)
        if self.dense and width > max(_MOST, self.size):
            raise _too_large("2^33", block)
        try:
            self.widen(width, outputs)
        except ValueError:  # of lanes, which may be inside of a learner
            if width <= _MOST_OF_LANES:
                raise
            raise _too_large("2^31", block) from None

    def widen(self, width: int, outputs: Outputs) -> None:
        """Make the outputs accept feature numbers below a width."""
        if not self.grows or self.size == 0 or width <= self.size:
            return
        self.size = 1 << (width - 1).bit_length()
        try:
            outputs.widen(self.size)
        except OutOfMemoryError:  # lanes raise it with the number of bytes
            raise
        except MemoryError:
            raise OutOfMemoryError(
                f"not enough memory for a dense store with {width} weights",
                hint=(setting("store", "hashed"), " needs memory only for the features seen, and ",
                      setting("bits", call="scan"), " folds their numbers"),
            ) from None  # fmt: skip


def _too_large(most: str, block: Block | MatrixBlock) -> InputError:
    """Return the error that a feature number is `most` or more."""
    return InputError(
        f"here or in one of the next rows, a feature number is {most} or more, too large for "
        "a dense store",
        place=block.place(0),
        hint=(setting("store", "hashed"), " accepts it, and ",
              setting("bits", call="scan"), " folds it"),
    )  # fmt: skip
