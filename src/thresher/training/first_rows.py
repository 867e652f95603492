"""What the first rows tell: the norm of rows, which decides a rate, and the sizes of columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from thresher.health import columns
from thresher.health.watch import ColumnScaleWarning

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.matrix_source import MatrixBlock
    from thresher.training.kept_rows import KeptRows
    from thresher.training.observer import Observer

_FIRST_ROWS = 100  # rows whose norms decide a rate
_CHECKED_ROWS = 500  # most rows in which sizes of columns are compared,
_CHECKED_VALUES = 50_000  # and about the most values


def norm_of(block: Block | KeptRows) -> float:
    """Return the median norm of the first rows, so that a few huge rows do not change it.

    It is 1 if most rows are empty, or have values that are not finite.
    """
    starts, values = block.first_values(_FIRST_ROWS)
    sums = np.concatenate([[0.0], np.cumsum(values * values)])[starts]
    norm = math.sqrt(float(np.median(np.diff(sums))))
    return norm if 0 < norm < math.inf else 1.0


def warn_of_columns(block: Block | MatrixBlock, owner: str, observer: Observer) -> None:
    """Warn if columns in the first rows differ so much in size that one rate does not suit all."""
    few = len(block.first_values(10)[1])  # values of up to 10 rows
    rows = min(_CHECKED_ROWS, 10 + 10 * _CHECKED_VALUES // max(few, 1))
    keys, (_, values) = block.first_keys(rows), block.first_values(rows)
    message = columns.warning_of(keys, values)
    if message is not None:
        observer.warn(f"{owner}: {message}", ColumnScaleWarning)
