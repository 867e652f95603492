"""Scores of a ranking as sums over rows: counts in bins of the decision function.

A search cannot keep the scores of all rows for all of its models. So it counts the rows of each
class in 8,192 bins. They divide asinh(100 d), where d is the decision function, evenly: the
borders of a bin differ by half a percent if |d| is between 0.01 and a million. Rows in one bin
count as ties.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError, setting

BINS = 8192
_END = float(np.arcsinh(1e8))


def bin_terms(
    decision: NDArray[np.float64], true: NDArray[Any], w: NDArray[np.float64], classes: int
) -> Any:
    """Return the weights of the rows of each class in each bin, the second class first.

    Parameters
    ----------
    decision : array of shape (rows,)
    true : array of int
        Numbers of the classes.
    w : array of shape (rows,)
        Weights of the rows.
    classes : int
        Must be 2.
    """
    if decision.ndim > 1 or classes != 2:
        refuse_several(classes)
    place = np.clip(np.arcsinh(100.0 * decision) / _END, -1.0, 1.0)
    at = np.minimum(((place + 1.0) * (BINS / 2)).astype(np.intp), BINS - 1)
    own = true == 1
    parts = [np.bincount(at[mine], w[mine], BINS) for mine in (own, ~own)]
    return np.concatenate(parts)


def refuse_several(classes: int) -> NoReturn:
    """Raise ParameterError: a ranking is for two classes.

    Parameters
    ----------
    classes : int
        How many there are.
    """
    raise ParameterError(
        (setting("scoring"), f": a score of a ranking needs two classes; there are {classes}"),
        parameter="scoring",
    )


def of_bins(metric: Literal["roc_auc", "average_precision"]) -> Callable[[Any], Any]:
    """Return a function from the sums of `bin_terms` to a metric.

    Parameters
    ----------
    metric : {"roc_auc", "average_precision"}

    Examples
    --------
    >>> import numpy as np
    >>> sums = bin_terms(np.array([0.9, 0.4, -1.0]), np.array([1, 0, 0]), np.ones(3), 2)
    >>> float(of_bins("roc_auc")(sums))
    1.0
    """

    def finish(sums: Any) -> Any:
        from thresher.evaluation import curves  # only if it is needed

        hits, misses = np.asarray(sums, np.float64).reshape(2, BINS)[:, ::-1]
        curve = curves.Curve(np.zeros(BINS), np.cumsum(hits), np.cumsum(misses))
        return {"roc_auc": curves.roc_auc, "average_precision": curves.average_precision}[metric](
            curve
        )

    return finish
