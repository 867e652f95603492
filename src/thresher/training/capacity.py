"""Room for features whose number is not known before all rows were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thresher.errors import InputError, OutOfMemoryError, setting
from thresher.training.outputs import Outputs

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.matrix_source import MatrixBlock
    from thresher.training.plan import TrainingPlan

_MOST = 2**33  # features of a dense store


class Room:
    """How many features the outputs take; a dense store grows with the rows.

    Parameters
    ----------
    plan : TrainingPlan

    Attributes
    ----------
    size : int
        Features that the store has room for; 0: any.
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
    def counted_from(self) -> int:
        """Rows after which nonzero weights are counted: counting looks at every weight."""
        return (self.size if self.dense else 0) // 16

    def see(self, block: Block | MatrixBlock, outputs: Outputs) -> None:
        """Let the outputs take the largest feature number of a block."""
        if not self.grows:
            return
        width = block.width or 2**64
        self.width = max(self.width, width)
        if self.dense and width > max(_MOST, self.size):
            raise InputError(
                "here or soon after, a feature has a number of 2^33 or more, too many for a dense "
                "store",
                place=block.place(0),
                hint=(setting("store", "hashed"), " takes it, ", setting("bits", call="scan"),
                      " folds it"),
            )  # fmt: skip
        self.widen(width, outputs)

    def widen(self, width: int, outputs: Outputs) -> None:
        """Let the outputs take feature numbers below a width."""
        if not self.grows or self.size == 0 or width <= self.size:
            return
        self.size = 1 << (width - 1).bit_length()
        try:
            outputs.widen(self.size)
        except OutOfMemoryError:  # lanes say how much they need
            raise
        except MemoryError:
            raise OutOfMemoryError(
                f"a feature is numbered {width - 1}: no memory for so many weights in a dense "
                f"store",
                hint=(setting("store", "hashed"), " needs memory for the features seen alone, and ",
                      setting("bits", call="scan"), " folds their numbers"),
            ) from None  # fmt: skip
