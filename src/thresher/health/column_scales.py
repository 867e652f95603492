"""Columns of very different scale: how they are found, and the warning of them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.errors import DataWarning
from thresher.health.columns import seen

# A column with at least _FEW values differs if its mean absolute value is this many times larger or
# smaller than that of the median column; docs/scale.md has the measurements. A column with fewer
# values differs if its largest value is _EXTREME times that of the median column.
LARGER, SMALLER, _EXTREME = 25.0, 100.0, 1e3
_FEW = 10


class DifferentColumn(NamedTuple):
    """The column whose size differs most from that of the median column.

    Attributes
    ----------
    column : int
        Its number.
    size, median : float
        Its size, and that of the median column: mean absolute values, without zeros; or largest
        absolute values, if `few`.
    few : bool
        Whether the column has few values.
    more : int
        Number of other columns that differ as well.
    """

    column: int
    size: float
    median: float
    few: bool = False
    more: int = 0

    @property
    def ratio(self) -> float:
        """How many times larger it is than the median column."""
        return self.size / self.median

    def described(self, name: str) -> str:
        """Return what is wrong, with numbers; `name` is that of the column."""
        than = "larger" if self.ratio > 1 else "smaller"
        times = self.ratio if self.ratio > 1 else 1 / self.ratio
        what = "largest value" if self.few else "mean absolute value"
        others = ""
        if self.more:
            others = f"; {self.more:,} more column{'s differ' if self.more > 1 else ' differs'} too"
        return (
            f"column {name} is {times:.2g} times {than} than the median column ({what} "
            f"{self.size:.3g} against {self.median:.3g}){others}"
        )


class ColumnOffsetWarning(DataWarning):
    """Most columns of a table are far from zero compared to their spread."""


class ColumnScaleWarning(DataWarning):
    """Columns differ so much in size that one rate and one penalty do not suit all of them.

    Examples
    --------
    >>> found = different_column(np.tile([0, 1, 2], 20), np.tile([1.0, 2.0, 3e4], 20))
    >>> print(ColumnScaleWarning.of(found, "'salary'", "FTRLClassifier"))
    FTRLClassifier: column 'salary' is 1.5e+04 times larger than the median column (mean absolute
    value 3e+04 against 2); scale the columns with thresher.preprocessing.UnitVarianceScaler (a
    source: scan(..., scale='standard')), or use OnePassClassifier or OnePassRegressor, which do not
    depend on the scale
    """

    @classmethod
    def of(cls, found: DifferentColumn, name: str, owner: str) -> Self:
        """Return the warning.

        Parameters
        ----------
        found : DifferentColumn
        name : str
            The name of the column in the message.
        owner : str
            The estimator or rule.
        """
        return cls(
            found.described(name),
            owner=owner,
            hint="scale the columns with thresher.preprocessing.UnitVarianceScaler (a source: "
            "scan(..., scale='standard')), or use OnePassClassifier or OnePassRegressor, which do "
            "not depend on the scale",
        )


def similar(least: float, most: float) -> bool:
    """Tell whether values are so similar that no column can differ.

    Parameters
    ----------
    least, most : float
        The least and the largest absolute value that is not 0.

    Examples
    --------
    >>> similar(1.0, 20.0), similar(1.0, 30.0)
    (True, False)
    """
    # No column differs by more than the values do; 0.99: rounding of means.
    return bool(most < 0.99 * min(LARGER, SMALLER, _EXTREME) * least)


def different_column(keys: NDArray[Any], values: ArrayLike) -> DifferentColumn | None:
    """Return the column that differs most in size from the median column; None: all are similar.

    Parameters
    ----------
    keys : array
        The column of each value.
    values : array
        Values of some rows; those that are 0 or not finite are left out.

    Examples
    --------
    >>> found = different_column(np.tile([0, 1, 2], 10), np.tile([1.0, 2.0, 3e7], 10))
    >>> found.column, found.ratio
    (2, 15000000.0)
    """
    sizes = np.abs(np.asarray(values, np.float64))
    used = (sizes > 0) & np.isfinite(sizes) & (keys >= 0)  # bad rows are refused when learned
    sizes = sizes[used]
    if not len(sizes) or similar(sizes.min(), sizes.max()):
        return None
    columns, at = seen(keys[used], int(keys.max(initial=0)) + 1)
    some = len(columns)
    counts = np.bincount(at, minlength=some)
    with np.errstate(over="ignore"):
        mean = np.bincount(at, sizes, some) / np.maximum(counts, 1)
    high = np.zeros(some)
    np.maximum.at(high, at, sizes)
    there = counts > 0
    columns, counts, mean, high = columns[there], counts[there], mean[there], high[there]
    if len(columns) < 2:
        return None
    usual, usual_high = _median(mean), _median(high)
    few = counts < _FEW
    # How far a column is from the median one, in units of what is allowed.
    with np.errstate(over="ignore", divide="ignore"):
        larger = np.where(few, high / usual_high / _EXTREME, mean / usual / LARGER)
        far = np.maximum(larger, np.where(few, 0.0, usual / mean / SMALLER))
    odd = int(np.argmax(far))
    if not far[odd] >= 1:
        return None
    size, median = (high[odd], usual_high) if few[odd] else (mean[odd], usual)
    return DifferentColumn(
        int(columns[odd]), float(size), median, bool(few[odd]), int(np.count_nonzero(far >= 1)) - 1
    )


def _median(sizes: NDArray[np.float64]) -> float:
    """Return the size in the middle; of two in the middle, the smaller."""
    return float(np.sort(sizes)[(len(sizes) - 1) // 2])


def offset_columns(
    starts: NDArray[np.int64], keys: NDArray[Any], values: NDArray[np.float64]
) -> tuple[int, int, tuple[int, float, float]] | None:
    """Find columns without many zeros whose mean is larger than their standard deviation.

    Returns the number of these columns, the number of all columns, and one of them with its mean
    and standard deviation; None if they are fewer than half of the columns, or fewer than 3.

    Parameters
    ----------
    starts, keys, values : array
        Row r has the features ``keys[starts[r]:starts[r + 1]]``.
    """
    rows = len(starts) - 1
    columns, at = np.unique(keys, return_inverse=True)
    if rows < _FEW or not np.isfinite(values).all():
        return None
    counts = np.bincount(at, values != 0, len(columns))
    with np.errstate(all="ignore"):
        mean = np.bincount(at, values, len(columns)) / rows
        sd = np.sqrt(np.maximum(np.bincount(at, values * values, len(columns)) / rows - mean**2, 0))
        ratio = np.where((2 * counts >= rows) & (sd > 1e-6 * np.abs(mean)), np.abs(mean) / sd, 0.0)
    far = int(np.count_nonzero(ratio > 1))
    if far < 3 or 2 * far < len(columns):
        return None
    worst = int(np.argmax(ratio))
    return far, len(columns), (int(columns[worst]), float(mean[worst]), float(sd[worst]))
