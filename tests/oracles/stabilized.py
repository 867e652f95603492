"""Stabilized truncated SGD, the algorithm of the paper with its misprints corrected (R-13).

Omega is the stable set, at first all columns. Each of M paths has its own weights v, from v = 0,
and its own permutation of the rows. A stage is n_K bursts on each path; a burst is (R-13.3)

    v_0 = v,   k = 0
    K_s times, with the next row of the permutation (after its end: from its start):
        the steps of the row (see `repeats`), each of weight s:
            f = c_x sum_{j in Omega} v_j x_j,   g = s loss'(f, y)
            for j in Omega with x_j != 0:   v_j <- v_j - eta g c_x x_j,   k_j <- k_j + 1
            (count "gradient": a step with g = 0 does not count; "x": it counts, R-13.4, A-36)
    Dv = v - v_0
    for j with k_j > 0:   v_j <- soft(v_j, g0 k_j)     gravity rule "update-quantile"
                          v_j <- soft(v_j, g)          gravity rule "weight-quantile" (A-17),
        g = Q_beta of the |v_j| over the j in Omega with v_j != 0, at this truncation

Q_beta is the empirical quantile (R-13.10): the least value >= 0 that at least a share beta of the
numbers does not exceed; 0 if beta = 0 or there are no numbers. At the end of stage s > 0:

    B_j, KB_j, KU_j += bursts with k_j > 0 and v_j != 0 after truncation; bursts with k_j > 0;
                       sum of k_j. Over the bursts of this stage of all paths.
    If KU_j > delta_K:  Pi_j = B_j / KB_j, and the three start again from 0 (R-13.12, A-21)
    Omega <- Omega without the j with Pi_j < pi0; their weights become 0 in every path (R-13.7)
    d     = share of Omega among the columns that are not empty in X (A-27)
    beta  = beta0 (exp(-gamma (1-d)) - (1-d) exp(-gamma))     if gamma >= 0 (R-13.9, A-16)
            beta0 ln(1 - gamma d) / ln(1 - gamma)             if gamma < 0
    K_s   = max(1, ceil(K ln(1/(alpha d))))                   if alpha is given (R-13.13, A-22)

and at the end of every stage g0 = Q_beta of the |Dv_j|/k_j of its bursts, of all j with k_j > 0
that were in Omega during the stage, also those just purged (as the reference code does). Stage 0
is the warm-up (R-13.11, A-18): g0 = 0, beta = beta0, K_s = K, no truncation, and its counts are
not kept. Stages are made while the rows taken by each path are fewer than passes * n; the last
stage is made in full. The result is the mean of the paths' weights (R-13.8); no bias (R-13.17).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import losses
from .operators import soft
from .repeats import repeats, slope
from .result import Matrix, Vector


class Stage(NamedTuple):
    """The state at the end of a stage; gravity, beta and K are those of the stage to come."""

    number: int
    rows: int
    """Rows that each path has taken so far."""
    gravity: float
    """g0; 0 under the weight-quantile rule, which has none."""
    beta: float
    d: float
    omega: int
    """Size of Omega, empty columns included."""
    nonzeros: int
    """Nonzeros of the mean of the paths."""
    K: int


@dataclass(frozen=True)
class Burst:
    """The record of one burst."""

    stage: int
    path: int
    k: Vector
    change: Vector
    """Dv, before truncation."""
    gravity: float
    """g0 or g of this burst."""
    weights: Vector
    """v after truncation."""


@dataclass(frozen=True)
class StabilizedResult:
    """The model, its stable set, and the record of every stage and burst."""

    weights: Vector
    paths: Vector
    """The weights of each path, one row per path."""
    active: Vector
    """Omega, one truth value per column."""
    probability: Vector
    """Pi_j when it was last evaluated; 1 if it never was."""
    probabilities: list[Vector]
    """Pi of each stage from 1 on; nan where it was not evaluated at the end of that stage."""
    updates: Vector
    """Sum of k_j over all bursts of all paths, warm-up included."""
    purged: Vector
    """The stage at whose end j was purged; -1 if it was not."""
    trace: list[Stage]
    bursts: list[Burst]
    least_slope: float
    """The least |g| above 0 of all steps; of hinges, rounding decides whether a tiny one is 0."""


def stabilized(
    X: Matrix,
    y: Vector,
    permutations: Sequence[Sequence[int] | Vector],
    *,
    loss: str,
    eta: float = 0.1,
    beta0: float = 0.7,
    gamma: float = -1.0,
    pi0: float = 0.5,
    K: int = 5,
    n_K: int = 5,
    passes: int = 10,
    delta_K: int = 0,
    alpha: float | None = None,
    count: str = "x",
    gravity_rule: str = "update-quantile",
    sample_weight: Vector | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
    dtype: Any = np.float64,
    rows: int | None = None,
) -> StabilizedResult:
    """Learn from the rows of X, each path in the order of its permutation.

    If rows are in parts, a permutation has the rows of one part, and n is `rows`, the number of
    rows of the largest part.
    """
    if count not in ("x", "gradient"):
        raise ValueError(f"unknown count {count!r}; one of x, gradient is allowed")
    if gravity_rule not in ("update-quantile", "weight-quantile"):
        raise ValueError(
            f"unknown gravity_rule {gravity_rule!r}; "
            "one of update-quantile, weight-quantile is allowed"
        )
    X = np.asarray(X, dtype=dtype)
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    slopes: list[float] = []
    options: dict[str, Any] = dict(
        slopes=slopes, loss=loss, eta=eta, count=count, epsilon=epsilon, quantile=quantile
    )
    n, width = X.shape
    n = n if rows is None else rows
    M = len(permutations)
    seen = np.any(X != 0, axis=0)

    W = np.zeros((M, width), dtype=dtype)
    omega = np.full(width, True)
    B, KB, KU = np.zeros(width), np.zeros(width), np.zeros(width)
    g0, beta, d, K_s = 0.0, beta0, 1.0, K
    probability = np.ones(width)
    probabilities: list[Vector] = []
    updates = np.zeros(width)
    purged = np.full(width, -1)
    trace: list[Stage] = []
    bursts: list[Burst] = []
    stage = 0
    taken = 0
    while taken < passes * n:
        of_stage: list[Burst] = []
        for m in range(M):
            v = W[m]
            for b in range(n_K):
                v_0 = v.copy()
                path = permutations[m]
                burst_rows = [path[(taken + i) % len(path)] for i in range(b * K_s, (b + 1) * K_s)]
                k = descend(v, omega, X[burst_rows], y[burst_rows], s[burst_rows], **options)
                change = v - v_0
                if gravity_rule == "weight-quantile":
                    magnitudes = np.abs(v[omega & (v != 0)])
                    gravity = quantile_of(magnitudes, beta) if stage > 0 else 0.0
                else:
                    gravity = g0
                for j in np.flatnonzero(k):
                    times = k[j] if gravity_rule == "update-quantile" else 1.0
                    v[j] = truncated(v[j], v.dtype.type(times), gravity)
                of_stage.append(Burst(stage, m, k, change, gravity, v.copy()))
        taken += K_s * n_K
        updates += sum(burst.k for burst in of_stage)

        if stage > 0:
            for burst in of_stage:
                touched = burst.k > 0
                B += touched & (burst.weights != 0)
                KB += touched
                KU += burst.k
            Pi = np.full(width, np.nan)
            for j in range(width):
                if omega[j] and KU[j] > delta_K:
                    Pi[j] = probability[j] = B[j] / KB[j]
                    B[j], KB[j], KU[j] = 0, 0, 0
                    if Pi[j] < pi0:
                        omega[j] = False
                        W[:, j] = 0
                        purged[j] = stage
            probabilities.append(Pi)
            d = np.count_nonzero(omega & seen) / max(1, np.count_nonzero(seen))
            beta = rejection_rate(d, beta0, gamma)
            if alpha is not None:
                K_s = burst_size(K, alpha, d)

        if gravity_rule == "update-quantile":
            ratios = [np.abs(u.change[u.k > 0]) / u.k[u.k > 0].astype(dtype) for u in of_stage]
            g0 = quantile_of(np.concatenate(ratios), beta)
        mean = W.mean(axis=0)
        size, nonzeros = int(np.count_nonzero(omega)), int(np.count_nonzero(mean))
        trace.append(Stage(stage, taken, g0, beta, d, size, nonzeros, K_s))
        bursts.extend(of_stage)
        stage += 1

    return StabilizedResult(
        weights=W.mean(axis=0),
        paths=W,
        active=omega,
        probability=probability,
        probabilities=probabilities,
        updates=updates,
        purged=purged,
        trace=trace,
        bursts=bursts,
        least_slope=min(slopes, default=math.inf),
    )


def descend(
    v: Vector,
    omega: Vector,
    X: Matrix,
    y: Vector,
    s: Vector,
    *,
    loss: str,
    eta: float,
    count: str,
    epsilon: float,
    quantile: float,
    slopes: list[float],
) -> Vector:
    """Change v by one step on each row in turn; return k, the informative updates of each j.

    The least |g| above 0 is added to `slopes`.
    """
    real = v.dtype.type
    k = np.zeros(len(v))
    for x, label, weight in zip(X, y, s, strict=True):
        J = [j for j in range(len(v)) if omega[j] and x[j] != 0]
        c = losses.row_scale(loss, x)
        reach = eta * c * c * sum(float(value) ** 2 for value in x)
        for part, _ in repeats(weight):
            f = c * float(sum((v[j] * x[j] for j in J), start=real(0)))
            g = slope(loss, f, float(label), part, reach, epsilon, quantile)
            if part > 0 and g != 0:
                slopes[:] = [min([abs(float(g)), *slopes])]
            if part == 0 or (g == 0 and count == "gradient"):
                continue
            for j in J:
                v[j] += real(-eta * g * c) * x[j]
                k[j] += 1
    return k


def truncated(v: Any, k: Any, gravity: float) -> Any:
    """Return soft(v, gravity k), compared as |v|/k with gravity.

    The gravity is one of the ratios |Dv|/k. The feature of that ratio must be rejected, also if
    gravity * k is rounded down.
    """
    real = type(v)
    if abs(v) / k <= real(gravity):
        return real(0)
    return soft(np.array([v]), real(gravity) * k)[0]


def rejection_rate(d: float, beta0: float, gamma: float) -> float:
    """Return beta for the share d of columns that are stable (R-13.9, A-16).

    It uses the formulas as written, and fails if gamma < 0 is so small that 1 - gamma rounds to 1.
    """
    if gamma >= 0:
        return beta0 * (math.exp(-gamma * (1 - d)) - (1 - d) * math.exp(-gamma))
    return beta0 * math.log(1 - gamma * d) / math.log(1 - gamma)


def quantile_of(numbers: Vector, beta: float) -> float:
    """Return Q_beta of numbers >= 0 (R-13.10). 1e-12 allows for rounding in beta * size."""
    if beta <= 0 or len(numbers) == 0:
        return 0.0
    rank = max(1, math.ceil(beta * len(numbers) - 1e-12))
    return float(sorted(numbers)[rank - 1])


def burst_size(K: int, alpha: float, d: float) -> int:
    """Return K_s for the share d of columns that are stable (R-13.13); 0 is replaced by 1e-12."""
    return max(1, math.ceil(K * math.log(1.0 / (alpha * max(d, 1e-12)))))
