"""The range of magnitudes of the weights (R-11.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.data import is_sparse
from thresher.errors import DataError, ParameterError

SINGLE, DOUBLE = 22, 51  # range of exponents below the largest, by precision


@dataclass(frozen=True)
class ExponentSpread:
    """The range of exponents of the weights (R-11.5); without weights, all numbers are None."""

    # Share of weights whose exponent is at most 51 (single precision: 22) below the largest. If any
    # other weight is added to the largest, rounding leaves at most one of its binary digits.
    within: float | None
    within_single: float | None
    mean: float | None  # mean of the exponents floor(log2 |w|)
    std: float | None
    largest: int | None
    smallest: int | None
    counts: Mapping[int, int]  # number of weights by exponent, in increasing order

    def __str__(self) -> str:
        if self.within is None or self.within_single is None:
            return "no nonzero weights"
        text = f"{sum(self.counts.values()):,} weights from 2^{self.smallest} to 2^{self.largest}: "
        if self.within_single == 1.0:
            return text + "single precision loses none"
        single, double = (f"{100 - 100 * w:.3g}%" for w in (self.within_single, self.within))
        return text + f"added to the largest, single precision loses {single}, double {double}"


def exponents(source: Any) -> ExponentSpread:
    """Measure the spread of the exponents of weights.

    Parameters
    ----------
    source : Model, fitted estimator, array or sparse matrix

    Examples
    --------
    >>> print(exponents([4.0, 0.0, -1.0, 1e-9]))
    3 weights from 2^-30 to 2^2: added to the largest, single precision loses 33.3%, double 0%
    """
    source = getattr(source, "model_", source)
    source = getattr(source, "weights", getattr(source, "coef_", source))
    try:
        weights = np.asarray(source.tocsr().data if is_sparse(source) else source, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            parameter="source", allowed="a model, a fitted estimator or weights"
        ) from None
    if not np.isfinite(weights).all():
        raise DataError("a weight is not finite: training diverged")
    e = np.frexp(weights[weights != 0])[1] - 1
    if not e.size:
        return ExponentSpread(None, None, None, None, None, None, {})
    values, counts = (part.tolist() for part in np.unique(e, return_counts=True))
    double, single = (float(np.mean(e >= values[-1] - bits)) for bits in (DOUBLE, SINGLE))
    moments, table = (float(e.mean()), float(e.std())), dict(zip(values, counts, strict=True))
    return ExponentSpread(double, single, *moments, values[-1], values[0], table)
