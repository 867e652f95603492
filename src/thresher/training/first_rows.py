"""What the first rows tell: the norm of rows, which decides a rate, and the sizes of columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from thresher.data.matrix_source import MatrixBlock, MatrixSource
from thresher.data.scaled import ScaledSource
from thresher.errors import setting
from thresher.health.column_scales import (
    ColumnOffsetWarning,
    ColumnScaleWarning,
    different_column,
    offset_columns,
    similar,
)

if TYPE_CHECKING:
    from thresher.data.block import Block
    from thresher.data.source import Source
    from thresher.training.kept_rows import KeptRows
    from thresher.training.observer import Observer

NameOf: TypeAlias = Callable[[int], str]

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


def warn_of_columns(
    block: Block | MatrixBlock, owner: str, observer: Observer, name_of: NameOf | None = None
) -> bool:
    """Warn if columns differ so much in size that one rate does not suit all; tell whether it did.

    Parameters
    ----------
    block : Block or MatrixBlock
        Its first rows are examined; of a matrix, also some rows from all its parts.
    owner : str
        The estimator or rule.
    observer : Observer
        Receives the warning.
    name_of : callable, optional
        Returns the name of a column for the message; by default its number.
    """
    few = len(block.first_values(10)[1])  # values of up to 10 rows
    rows = min(_CHECKED_ROWS, 10 + 10 * _CHECKED_VALUES // max(few, 1))
    if isinstance(block, MatrixBlock) and similar(*block.value_range(rows)):
        return False  # the usual case, without copies of rows
    for part in (block, block.spread(rows)):
        if part is not None:
            found = different_column(part.first_keys(rows), part.first_values(rows)[1])
            if found is not None:
                name = str(found.column) if name_of is None else name_of(found.column)
                observer.warn(ColumnScaleWarning.of(found, name, owner))
                return True
    return False


def warn_of_offsets(source: Source | MatrixSource, block: Any, observer: Observer) -> None:
    """Warn if most columns of a table are far from zero compared to their spread.

    Every rule then learns faster from centred columns. Rows in memory are left to their owner.

    Parameters
    ----------
    source : Source or MatrixSource
    block : Block
        Its first rows are examined.
    observer : Observer
    """
    if isinstance(source, MatrixSource | ScaledSource):
        return
    found = offset_columns(*_first_rows(block))
    if found is not None:
        far, columns, (column, mean, sd) = found
        name = column_name(source, block, column)
        observer.warn(
            ColumnOffsetWarning(
                f"{far:,} of {columns:,} columns are far from zero compared to their spread "
                f"(column {name}: mean {mean:.3g}, standard deviation {sd:.2g})",
                hint=("the model may be better with ", setting("scale", "standard", "scan")),
            )
        )


def _first_rows(block: Any) -> tuple[Any, Any, Any]:
    few = len(block.first_values(10)[1])  # values of up to 10 rows
    rows = min(_CHECKED_ROWS, 10 + 10 * _CHECKED_VALUES // max(few, 1))
    starts, values = block.first_values(rows)
    return starts, block.first_keys(rows), values


class ColumnWatch:
    """Watches the sizes of columns in a run: in its blocks 1, 2, 4, 8, ..., until it has warned.

    Parameters
    ----------
    source : Source or MatrixSource
    owner : str
        The estimator or rule.
    observer : Observer
        Receives the warning.
    """

    def __init__(self, source: Source | MatrixSource, owner: str, observer: Observer) -> None:
        self.source, self.owner, self.observer = source, owner, observer
        self._blocks, self.told = 0, False

    def see(self, block: Block | MatrixBlock) -> None:
        """Warn if columns of a block differ too much in size."""
        self._blocks += 1
        if not self.told and self._blocks & (self._blocks - 1) == 0:
            name = partial(column_name, self.source, block)
            self.told = warn_of_columns(block, self.owner, self.observer, name)


def column_name(source: Source | MatrixSource, block: Any, column: int) -> str:
    """Return the name of a feature for a message: quoted, or its number in the file.

    Parameters
    ----------
    source : Source or MatrixSource
    block : Block or MatrixBlock
        A block in which the feature occurs.
    column : int
        The feature.
    """
    if isinstance(source, MatrixSource):
        names = source.column_names
        return str(column) if names is None else repr(str(names[column]))
    if not source.named:
        return str(column + source.first)
    key = column
    known = dict(block.names) if not source.rereadable else source.names([key])
    return repr(known[key]) if key in known else str(key)
