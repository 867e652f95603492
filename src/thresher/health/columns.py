"""The range of magnitudes of the columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data import checked, summed
from thresher.errors import ParameterError
from thresher.sparse_checks import refuse_malformed

_HUGE, _TINY = 1e6, 1e-6  # if the largest absolute value is outside, usual rates do not work


class OddColumn(NamedTuple):
    """A column whose largest absolute value is `ratio` times that of the median column."""

    column: int
    name: str | None
    ratio: float

    def __str__(self) -> str:
        name = "" if self.name is None else f" {self.name!r}"
        than = "larger" if self.ratio > 1 else "smaller"
        times = self.ratio if self.ratio > 1 else 1 / self.ratio if self.ratio else math.inf
        scale = "scale it (thresher.preprocessing.UnitVarianceScaler)"
        text = f"column {self.column}{name} is {times:.2g} times {than} than the median column"
        return f"{text}: {scale}"


@dataclass(frozen=True)
class DynamicRange:
    """The range of magnitudes of the values; without values, the numbers are None."""

    columns: tuple[OddColumn, ...]  # odd columns, farthest from the median first
    median: float | None  # median over columns of their largest absolute value
    largest: float | None  # largest absolute value
    smallest: float | None  # smallest absolute value that is not zero
    ratio: float | None  # largest / smallest
    subnormal: float  # share of values below 2^-126, which lose digits in single precision
    constant: tuple[int, ...]  # columns with the same nonzero value in all rows
    empty: int  # number of columns without values

    @property
    def warnings(self) -> list[str]:
        """Warnings, one line each."""
        lines = [str(column) for column in self.columns[:10]]
        if len(self.columns) > 10:
            lines.append(f"{len(self.columns) - 10:,} more columns are far from the median")
        scale = "scale them (thresher.preprocessing.UnitVarianceScaler)"
        if self.largest is not None and self.largest > _HUGE:
            lines.append(f"the values are huge, up to {self.largest:.3g}: {scale}")
        if self.largest is not None and self.largest < _TINY:
            lines.append(
                f"the values are tiny, {self.largest:.3g} at most; usual rates learn almost "
                f"nothing from them: {scale}"
            )
        if self.subnormal:
            lines.append(f"{self.subnormal:.2%} of the values are too small for single precision")
        return lines

    def __str__(self) -> str:
        if self.median is None:
            return "no values that are not zero"
        text = f"values from {self.smallest:.4g} to {self.largest:.4g}, {len(self.constant):,} "
        return "\n".join([f"{text}constant and {self.empty:,} empty columns", *self.warnings])


def dynamic_range(X: Any, names: Sequence[str] | None = None, factor: float = 1e3) -> DynamicRange:
    """Find columns whose values are much larger or much smaller than those of other columns.

    Each column is compared with the median column. With an even number of columns, this is the
    smaller of the two in the middle; so if there are only two columns, the larger one can be odd.

    Parameters
    ----------
    X : CSR matrix, array or DataFrame of shape (rows, features)
    names : sequence of str, optional
        Names of all columns; by default those of a DataFrame.
    factor : float, default=1000
        A column is odd if it is at least this many times larger or smaller than the median column.

    Examples
    --------
    >>> print(dynamic_range([[1.0, 2.0, 3e7]], names=["a", "b", "salary"]).columns[0])
    column 2 'salary' is 1.5e+07 times larger than the median column: scale it ...
    """
    names = getattr(X, "columns", None) if names is None else names
    refuse_malformed(X)
    X, _, at, values = checked(X)
    n, width = X.shape
    if names is not None and len(names) != width:
        raise ParameterError(f"names must be {width}, one per column; got {len(names)}")
    if not factor > 1:
        raise ParameterError(parameter="factor", value=factor, allowed="> 1")
    if not len(values):
        return DynamicRange((), None, None, None, None, 0.0, (), width)
    columns, at = seen(at, width)
    some = len(columns)
    counts, high, low = np.bincount(at, minlength=some), np.zeros(some), np.full(some, np.inf)
    size = np.abs(values)
    np.maximum.at(high, at, size)
    np.minimum.at(low, at, size)
    signs = np.abs(summed(at, np.sign(values), some))
    sizes = np.sort(high[counts > 0])
    median = float(sizes[(len(sizes) - 1) // 2])
    with np.errstate(over="ignore", divide="ignore"):
        ratio = np.divide(high, median, out=np.ones(some), where=counts > 0)
        far = np.maximum(ratio, 1 / ratio)
    odd = [j for j in np.argsort(-far, kind="stable") if far[j] >= factor]
    found = [(int(columns[j]), float(ratio[j])) for j in odd]
    return DynamicRange(
        tuple(OddColumn(j, None if names is None else str(names[j]), far) for j, far in found),
        median, float(size.max()), float(size.min()), float(size.max()) / float(size.min()),
        float(np.mean(size < 2.0**-126)),
        tuple(columns[(signs == n) & (high == low)].tolist()), width - np.count_nonzero(counts),
    )  # fmt: skip


def seen(at: NDArray[np.intp], width: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return columns, and the index in them of the column of each value.

    These are all columns; or only the columns with values, if there are more columns than values:
    an array over 2^40 hashed features does not fit in memory.
    """
    if width <= len(at):
        return np.arange(width), at
    columns, places = np.unique(at, return_inverse=True)
    return columns, places
