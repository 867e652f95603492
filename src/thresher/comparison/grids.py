"""The grids of a comparison: values of parameters, in ranges that depend on the training rows.

`Sizes` describes the training rows: *lambda_max* (the smallest penalty at which all weights are
zero: the largest mean gradient of any column at zero weights), the mean squared norm of the rows,
the largest value, and the numbers of rows and columns. Each grid is a function of an estimator,
with the parameters that are not in the grid, and of the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.losses import LOSSES, Task
from thresher.rules import RULES
from thresher.search.gravities import GravityScale, default_gravities

_COUNTS = (10, 30, 100, 300, 1000, 3000, 10_000)

Grid = dict[str, list[Any]]


@dataclass(frozen=True)
class Sizes:
    """Facts about the training rows that grids depend on.

    Attributes
    ----------
    task : str
    loss : str
        The loss of the rule.
    rows, columns : int
    stored : int
        Number of nonzero values.
    square : float
        Mean of the squared norms of the rows.
    scale : GravityScale
        lambda_max for the loss, and the largest value.
    scaled : bool
        Whether columns have been scaled to unit variance.
    """

    task: Task
    loss: str
    rows: int
    columns: int
    stored: int
    square: float
    scale: GravityScale
    scaled: bool

    def penalties(self, least: float, count: int) -> list[float]:
        """Return penalties with equal ratios, from `least` * lambda_max to lambda_max."""
        top = self.scale.largest
        return _rounded(np.geomspace(least * top, top, count))

    def rates(self, *factors: float) -> list[float]:
        """Return multiples of the rate that "auto" would use if all rows had the mean norm."""
        auto = LOSSES[self.loss].auto_eta / self.square
        return _rounded([auto * factor for factor in factors])

    def counts(self) -> list[int]:
        """Return numbers of weights to keep, below the number of columns."""
        return [count for count in _COUNTS if count < self.columns]


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.3g}") for value in values]


# ---- grids ---------------------------------------------------------------------------------------


def _gravities(estimator: Any, sizes: Sizes) -> list[float]:
    return [float(gravity) for gravity in default_gravities(estimator, sizes.scale)]


def truncated_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return gravities and rates of the truncated gradient."""
    return {"gravity": _gravities(estimator, sizes), "eta0": ["auto", *sizes.rates(0.1, 1.0)]}


def rounding_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return ceilings of rounding: multiples of the largest step of a weight."""
    step = sizes.rates(1.0)[0] * sizes.scale.top
    return {"ceiling": _rounded(np.geomspace(1e-4 * step, step, 15))}


def forward_backward_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return penalties and rates of forward-backward splitting."""
    return {"l1": _gravities(estimator, sizes), "eta0": ["auto", *sizes.rates(0.1, 1.0)]}


def adaptive_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return penalties and rates of a rule whose rate is relative to the norms of the rows."""
    rule = RULES[estimator.rule]
    rates = _rounded([factor / np.sqrt(sizes.square) for factor in (0.1, 1.0, 10.0)])
    return {str(rule.penalty): _gravities(estimator, sizes), rule.rate_from_rows: rates}


def cut_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return values of `cut`: shares of the variance of the predictions."""
    return {"cut": [0.0001, 0.001, 0.01, 0.05, 0.2, 0.5]}


def dual_averaging_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return penalties and strengths of dual averaging."""
    auto = LOSSES[sizes.loss].auto_strength * sizes.square
    strengths = _rounded([factor * auto for factor in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)])
    return {"l1": _gravities(estimator, sizes), "strength": strengths}


def perceptron_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return penalties and margins of the perceptron."""
    margins = _rounded([factor * sizes.square for factor in (0.01, 0.1, 1.0, 10.0)])
    return {"l1": _gravities(estimator, sizes), "margin": margins}


def mirror_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return penalties and norms of mirror descent."""
    return {"l1": sizes.penalties(1e-5, 6), "p": [2.0, "0.5ln"]}


def stabilized_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return one point: the robust rule sets the number of weights itself."""
    return {"target_nnz": [None]}


def published_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return rates, keep and rejection rates, and gravity rules of the published stabilized rule.

    `annealing` has its default: with low rejection rates it has little effect.
    """
    return {
        "eta0": [0.001, 0.1],
        "keep": [0.2, 0.5],
        "rejection": [0.05, 0.1, 0.3, 0.7],
        "gravity_rule": ["update-quantile", "weight-quantile"],
    }


def coordinate_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return penalties of coordinate descent."""
    return {"l1": sizes.penalties(1e-4, 9)}


def hard_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return numbers of weights that hard thresholding keeps."""
    return {"n_nonzero": sorted({1, 3, *sizes.counts()} & set(range(1, sizes.columns + 1)))}


def plain_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return rates of plain SGD."""
    return {"eta0": ["auto", *sizes.rates(0.01, 0.03, 0.1, 0.3, 1.0, 3.0)]}


def mean_plain_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return rates of several runs of plain SGD."""
    return {"eta0": ["auto", *sizes.rates(0.1, 1.0)]}


def averaged_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return values of alpha of averaged SGD: it is the penalty, and it sets the rate."""
    return {"alpha": _rounded(sizes.square * np.geomspace(1e-6, 1.0, 13))}


def logistic_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return inverse penalties of scikit-learn's logistic regression."""
    return {"C": _rounded(1 / (sizes.scale.weight * np.array(sizes.penalties(1e-6, 13))))}


def lasso_grid(estimator: Any, sizes: Sizes) -> Grid:
    """Return penalties of scikit-learn's lasso."""
    return {"alpha": sizes.penalties(1e-4, 9)}


# ---- rules that are too expensive for the data ---------------------------------------------------

_MOST_UPDATES = 3e8  # updates of weights in a fit of mirror descent: about five seconds
_MOST_VALUES = 3e6  # values that each of 1,000 iterations of hard thresholding reads
MIRROR_PASSES = 5


def mirror_cost(sizes: Sizes) -> str:
    """Return why mirror descent is too expensive, or an empty text."""
    work = sizes.rows * sizes.columns * MIRROR_PASSES
    if work <= _MOST_UPDATES:
        return ""
    return (
        f"too slow: each step updates all {sizes.columns:,} columns, {work:.1e} updates in a fit; "
        f"the limit is {_MOST_UPDATES:.0e}"
    )


def hard_cost(sizes: Sizes) -> str:
    """Return why hard thresholding is too expensive, or an empty text."""
    if sizes.stored <= _MOST_VALUES:
        return ""
    return (
        f"too slow: each of up to 1,000 iterations reads all {sizes.stored:,} values; the limit is "
        f"{_MOST_VALUES:.0e}"
    )
