"""How far apart the magnitudes of columns lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data import checked, summed
from thresher.errors import ParameterError

_HUGE, _TINY = 1e6, 1e-6  # largest absolute values with which usual rates do not work


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
    """How far apart the magnitudes of values lie; of no values, the numbers are None."""

    columns: tuple[OddColumn, ...]  # the odd ones, farthest from the median first
    median: float | None  # over columns, of their largest absolute value; of two, the smaller
    largest: float | None  # absolute value
    smallest: float | None  # that is not zero
    ratio: float | None  # of the two
    subnormal: float  # share of the values below 2^-126, which single precision blurs
    constant: tuple[int, ...]  # columns of one value, not zero, in all rows
    empty: int  # columns without values

    @property
    def warnings(self) -> list[str]:
        """What is wrong, a line each."""
        lines = [str(column) for column in self.columns[:10]]
        if len(self.columns) > 10:
            lines.append(f"{len(self.columns) - 10:,} more columns are far from the median")
        scale = "scale them (thresher.preprocessing.UnitVarianceScaler)"
        if self.largest is not None and self.largest > _HUGE:
            lines.append(f"the values are huge, up to {self.largest:.3g}: {scale}")
        if self.largest is not None and self.largest < _TINY:
            lines.append(
                f"the values are tiny, {self.largest:.3g} at most, and usual rates learn next to "
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
    """Find the columns that dwarf the others, or are dwarfed by them.

    Columns are compared with the median column; of an even number, with the smaller of the two in
    the middle, so that of two columns far apart the larger is odd.

    Parameters
    ----------
    X : CSR matrix, array or DataFrame of shape (rows, features)
    names : sequence of str, optional
        Names of all columns; those of a DataFrame are known.
    factor : float, default=1000
        How many times larger or smaller than the median column is odd.

    Examples
    --------
    >>> print(dynamic_range([[1.0, 2.0, 3e7]], names=["a", "b", "salary"]).columns[0])
    column 2 'salary' is 1.5e+07 times larger than the median column: scale it ...
    """
    names = getattr(X, "columns", None) if names is None else names
    X, _, at, values = checked(X)
    n, width = X.shape
    if names is not None and len(names) != width:
        raise ParameterError(f"names must be {width}, one for each column; got {len(names)}")
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
    told = [(int(columns[j]), float(ratio[j])) for j in odd]
    return DynamicRange(
        tuple(OddColumn(j, None if names is None else str(names[j]), far) for j, far in told),
        median, float(size.max()), float(size.min()), float(size.max()) / float(size.min()),
        float(np.mean(size < 2.0**-126)),
        tuple(columns[(signs == n) & (high == low)].tolist()), width - np.count_nonzero(counts),
    )  # fmt: skip


def seen(at: NDArray[np.intp], width: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return columns, all that have values among them, and the place of each value's in these.

    They are all columns, save where these are more than the values: of 2^40 hashed names there is
    no room for something of each.
    """
    if width <= len(at):
        return np.arange(width), at
    columns, places = np.unique(at, return_inverse=True)
    return columns, places
