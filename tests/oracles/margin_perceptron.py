"""Soft-thresholded margin perceptron (R-9.1 to R-9.4, R-9.7, R-9.8, A-09, A-10, A-33).

    p = w.x + b,   z = y p,   loss = max(0, tau - z)

    For each step of the row (see `repeats`), if z <= tau, with e = eta s, s the weight of the step
    (above 1, |g| of `slope`), an update:
        wt = w + e y x,   b <- b + e y
        touched  w_j = soft(wt_j, l1) where x_j != 0, else w_j      R-9.1, R-9.2
        all      w_j = soft(wt_j, l1) for every j                   A-33

    J = the coordinates that are thresholded, J+ and J- those with |wt_j| >= l1 and < l1
    eps = l1 sum_{J+} |wt_j| + sum_{J-} wt_j^2                      R-9.7, A-09
    ||w||^2 + b^2 <= bound = sum over updates of e^2 (||x||^2 [+ 1 with a bias]) + 2 e z - eps

tau is the parameter ``margin``. l1 is not multiplied by eta or by weights. The bias is the weight
of a column of ones that is never thresholded and does not count in the density nnz(w)/d. An update
of an empty row changes no weight but is counted. Training stops after the row that brings the
density to ``max_density``, or after a pass without an update (R-9.2), or when the order ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .operators import soft
from .repeats import repeats, slope
from .result import Matrix, Order, Result, Vector


@dataclass(frozen=True)
class PerceptronResult(Result):
    """A perceptron, and the numbers for its certificates."""

    updates: int
    updated: Vector
    """For each row of X, whether it ever made an update; its sum is k of R-9.12."""
    bound: float
    """The upper bound of ||w||^2 + b^2 (R-9.8)."""
    least_eps: float
    """The least eps of all updates, eps* of R-9.9; inf without updates."""
    snapshots: dict[float, tuple[Vector, float]]
    """(w, b) when the density first reached each of the levels that were reached (R-9.4)."""
    stop: str
    """Why it ended: "density", "no update" (in a whole pass) or "order"."""


def margin_perceptron(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    margin: float = 0.0,
    eta: float = 1.0,
    l1: float = 0.0,
    shrink: str = "touched",
    max_density: float | None = None,
    levels: Sequence[float] = (),
    fit_intercept: bool = False,
    sample_weight: Vector | None = None,
    dtype: Any = np.float64,
) -> PerceptronResult:
    """Learn from the rows of X, labelled -1 or +1, in the given order, from w = 0 and b = 0."""
    if shrink not in ("touched", "all"):
        raise ValueError(f"unknown shrink {shrink!r}; one of touched, all is allowed")
    real = np.dtype(dtype).type
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight

    w = np.zeros(X.shape[1], dtype=dtype)
    b = 0.0
    updates = 0
    updated = np.zeros(len(X), dtype=bool)
    bound = 0.0
    least_eps = math.inf
    snapshots: dict[float, tuple[Vector, float]] = {}
    stop = "order"
    predictions: list[float] = []
    values: list[float] = []
    for rows in order:
        updates_before = updates
        for row in rows:
            x, label = X[row], float(y[row])
            norm = sum(float(v) ** 2 for v in x) + (1 if fit_intercept else 0)
            updates_of_row = updates
            for weight, whole in repeats(s[row]):
                p = float(w @ x) + b
                z = label * p
                if whole is not None:
                    predictions.append(p)
                    values.append(whole * max(0.0, margin - z))
                e = eta * abs(slope("margin", p, label, weight, eta * norm, margin))
                if e == 0:
                    continue

                wt = w + real(e * label) * x
                J = x != 0 if shrink == "touched" else np.full(len(w), True)
                w = np.where(J, soft(wt, l1), w)
                if fit_intercept:
                    b = b + e * label

                updates += 1
                updated[row] = True
                eps = shrinkage(wt[J], l1)
                least_eps = min(least_eps, eps)
                bound = bound + e * e * norm + 2 * e * z - eps

            if updates == updates_of_row:
                continue
            density = np.count_nonzero(w) / len(w)
            for level in levels:
                if density >= level and level not in snapshots:
                    snapshots[level] = (w.copy(), b)
            if max_density is not None and density >= max_density:
                stop = "density"
                break
        if stop == "order" and updates == updates_before:
            stop = "no update"
        if stop != "order":
            break

    return PerceptronResult(
        weights=w,
        intercept=b,
        average_weights=None,
        average_intercept=None,
        predictions=predictions,
        losses=values,
        steps=len(predictions),
        updates=updates,
        updated=updated,
        bound=bound,
        least_eps=least_eps,
        snapshots=snapshots,
        stop=stop,
    )


def shrinkage(wt: Vector, l1: float) -> float:
    """Return eps of R-9.7 for the coordinates wt that are thresholded by l1."""
    eps = 0.0
    for v in wt:
        a = abs(float(v))
        eps += l1 * a if a >= l1 else a * a
    return eps
