"""The robust variant of the stabilized rule: SGD on halves, evidence against noise, refit.

y is -1 or +1, and rows of weight 0 are left out. With s_i the weight of row i, m = sum of
s_i ||x_i||^2 / sum of s_i, rms_j = sqrt(mean of x_j^2):

    Omega   the columns with nonzeros in at least ``min_updates`` rows;  Z = W = 0
    h = n // 2,   P = max(2, ceil(stage_steps / h)) passes

If no target is given, it is chosen as in `size_by_labels`. If that is 0, the weights are 0 and b is
b0: the log-odds of the rows. If it is not, paths start from b0 instead of b = 0, also in the refit.
The refit then has the l2 of the choice: before each update of weight s, w is divided by
1 + s eta l2 / max(m, ||x_i||^2), with l2 = (sum of the variances of Omega) / (c sum of s_i). With
parts, the variances are those of the part's rows, and s_i are the weights of all rows.

There is one stage, and more while Omega is larger than the target. In a stage, for each of M/2
random splits of the rows into the first h and the rest, each of the two parts has a path: P passes,
each in its own order, from w = 0. A row makes the steps of `repeats`, all in one path of the two:

    p = b + sum over Omega of w_j x_j,   g = s loss'(p, y), s the weight of the step (see `slope`)
    u_j = -(eta / max(m, ||x_i||^2)) g x_j;   w_j += u_j;   b += -eta g       (g = 0: no update)
    z_j = sum of u_j / sqrt(sum of u_j^2) over the first pass, 0 without updates
    wbar = mean of the iterates after steps T//2 + 1 .. T

    Z += mean of z over the paths,   W += mean of wbar,   s += 1, if some wbar_j is not 0
    Pi_j = the larger of the shares of paths with wbar_j > 0 and wbar_j < 0; unchanged if both are 0
    Omega <- the columns with Pi_j >= keep and the highest |W_j/s_j Z_j/sqrt(s_j)| rms_j: as many as
    max(target, floor(|Omega| (1 - rejection))), but fewer than |Omega|; all of them, if Omega is
    not larger than the target

Refit: M paths over all rows, max(passes, ceil(refit_steps / n)) passes from w = 0, no z; the
weights are the mean over the paths of wbar, and so is b. The norms ||x_i||^2 are of whole rows,
with all columns. If columns are equal, the lower one stays.

If rows are in P parts, part q has the pairs of paths floor(M/2 q/P) .. floor(M/2 (q + 1)/P) - 1.
They learn only its rows: n, h and the numbers of passes are those of its rows. Omega, m, rms and
the target are of all rows. A mean over paths, and Pi_j, is over the M_j paths of
parts whose rows have column j; for b, over the paths of parts that have rows. With P > 1 the refit
has ``passes`` rounds, which count as stages; each round after the first starts from the weights and
b of the one before. A path makes max(passes n, refit_steps) steps in total, with n the number of
all rows, rounded up to whole passes over its part in each round.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .repeats import repeats, slope
from .result import Matrix, Vector
from .size_by_labels import choose, log_odds, measure

Order = Callable[[int, int, int], Vector]
"""(path, number, rows) -> a permutation; number is stage * 2^20 + pass, stages count from 1."""


@dataclass(frozen=True)
class RobustResult:
    """The model, and facts about each column."""

    weights: Vector
    intercept: float
    probability: Vector
    """Pi_j of the last stage with the column in Omega; 0 if there was none."""
    updates: Vector
    purged: Vector
    """The stage at whose end it was purged; -1 if it was not."""
    sizes: list[int]
    """Size of Omega after each stage."""
    margin: float = math.inf
    """The least difference that decided about the target, or which column stays in Omega."""


def robust(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str = "logistic",
    eta: float = 2.0,
    paths: int = 4,
    rejection: float = 0.5,
    keep: float = 0.5,
    min_updates: int = 1,
    target: int | None = None,
    passes: int = 10,
    stage_steps: int = 1000,
    refit_steps: int = 5000,
    pairs: int | None = None,
    sample_weight: Vector | None = None,
    parts: Sequence[int] = (),
) -> RobustResult:
    """Learn from the rows of X; `parts` are the rows at which parts begin, after the first."""
    s = np.ones(len(X)) if sample_weight is None else sample_weight
    bounds, splits = [0, *parts, len(X)], pairs
    shares = [np.flatnonzero(s[a:b] > 0) + a for a, b in itertools.pairwise(bounds)]
    firsts = [paths // 2 * q // len(shares) for q in range(len(shares) + 1)]
    numbers = [range(2 * a, 2 * b) for a, b in itertools.pairwise(firsts)]
    every = np.flatnonzero(s > 0)
    shares = [np.searchsorted(every, share) for share in shares]
    X, y, s = X[every], y[every], s[every]
    n, width = X.shape
    if n == 0:
        nothing = np.zeros(width)
        return RobustResult(nothing, 0.0, nothing, nothing, np.full(width, -1), [])
    norms = np.sum(X * X, axis=1)
    largest = np.maximum(np.sum(s * norms) / np.sum(s), norms)
    largest[largest == 0] = 1.0
    sizes_of_rows = np.column_stack([largest, norms])
    rms = np.sqrt(np.sum(X * X, axis=0) / n)
    documents = np.count_nonzero(X, axis=0)
    omega = np.flatnonzero((documents >= min_updates) & (documents > 0))
    size, b0, strength, margin = target or 0, 0.0, 0.0, math.inf
    if target is None:
        b0 = log_odds(s, y)
        measured = []
        for share in shares:
            here = omega[np.any(X[share][:, omega] != 0, axis=0)]

            def walk(
                rows_X: Matrix, rows: Vector, first: int, b: float, share: Vector = share
            ) -> tuple[Vector, Vector]:
                about = (y[share], s[share], eta, sizes_of_rows[share])
                w, _, z, _ = descend(rows_X, *about, rows, first, loss, None, b)
                return w, z

            found = measure(
                X[np.ix_(share, here)], y[share], s[share], order, walk, features=len(omega),
                paths=paths, stage_steps=stage_steps, pairs=splits,
            )  # fmt: skip
            if found is not None:
                measured.append((found, s[share]))
        choice = choose(measured, len(omega))
        size, strength, margin = choice.size, choice.strength, choice.margin
        if size == 0:
            nothing = np.zeros(width)
            kept = np.full(width, -1)
            return RobustResult(nothing, b0, nothing, nothing, kept, [], margin)
    Z, W, stages = np.zeros(width), np.zeros(width), np.zeros(width)
    probability, updates = np.full(width, -1.0), np.zeros(width)
    purged = np.full(width, -1)
    sizes: list[int] = []
    busy = [(mine, rows) for mine, rows in zip(numbers, shares, strict=True) if len(rows)]
    walkers = sum(len(mine) for mine, _ in busy)
    M = np.zeros(width)
    for mine, rows in busy:
        M += len(mine) * np.any(X[rows] != 0, axis=0)

    stage = 0
    while True:
        stage += 1
        zs, ws = np.zeros(len(omega)), np.zeros(len(omega))
        plus, minus = np.zeros(len(omega)), np.zeros(len(omega))
        for number, share in [(number, rows) for mine, rows in busy for number in mine]:
            h = max(1, len(share) // 2)
            P = max(2, math.ceil(stage_steps / h))
            split = share[order(paths + number // 2, stage << 20, len(share))]
            mine = split[:h] if number % 2 == 0 else split[h:] if len(share) > 1 else split
            rows = np.concatenate(
                [mine[order(number, (stage << 20) + k, len(mine))] for k in range(P)]
            )
            w, _, z, count = descend(
                X[:, omega], y, s, eta, sizes_of_rows, rows, len(mine), loss, None, b0
            )
            updates[omega] += count
            zs, ws = zs + z, ws + w
            plus, minus = plus + (w > 0), minus + (w < 0)
        learned = plus + minus > 0
        Z[omega] += np.where(learned, zs / M[omega], 0.0)
        W[omega] += np.where(learned, ws / M[omega], 0.0)
        stages[omega] += learned
        Pi = np.where(plus + minus > 0, np.maximum(plus, minus) / M[omega], probability[omega])
        probability[omega] = Pi
        times = np.maximum(1.0, stages[omega])
        score = np.abs(W[omega] / times * Z[omega] / np.sqrt(times)) * rms[omega]
        ranked = [i for i in np.argsort(-score, kind="stable") if Pi[i] >= keep or Pi[i] < 0]
        left = len(omega)
        if left > size:
            left = max(size, min(len(omega) - 1, int(len(omega) * (1.0 - rejection))))
        if 0 < left < len(ranked):
            last, next_one = score[ranked[left - 1]], score[ranked[left]]
            margin = min(margin, (last - next_one) / last if last > 0 else math.inf)
        stay = np.sort(omega[ranked[:left]])
        purged[np.setdiff1d(omega, stay)] = stage
        omega = stay
        sizes.append(len(omega))
        if len(omega) <= size:
            break

    weights, intercept = np.zeros(width), b0
    rounds = passes if len(shares) > 1 else 1
    for _ in range(rounds):
        stage += 1
        start, first_b, weights, intercept = weights[omega], intercept, np.zeros(width), 0.0
        for number, share in [(number, rows) for mine, rows in busy for number in mine]:
            R = math.ceil(max(passes * n, refit_steps) / (len(share) * rounds))
            rows = np.concatenate(
                [share[order(number, (stage << 20) + k, len(share))] for k in range(R)]
            )
            here = np.any(X[share][:, omega] != 0, axis=0)
            l2 = 0.0
            if strength > 0:
                mean = s[share] @ X[np.ix_(share, omega)] / np.sum(s[share])
                squares = s[share] @ X[np.ix_(share, omega)] ** 2 / np.sum(s[share])
                spread = np.sum(np.maximum(0.0, squares - mean**2))
                l2 = float(spread / (strength * np.sum(s)))
            w, b, _, count = descend(
                X[:, omega], y, s, eta, sizes_of_rows, rows, 0, loss, start, first_b, l2
            )
            updates[omega] += count
            weights[omega] += np.where(here, w, 0.0) / M[omega]
            intercept += b / walkers
    probability = np.maximum(probability, 0)
    return RobustResult(weights, intercept, probability, updates, purged, sizes, margin)


def descend(
    X: Matrix,
    y: Vector,
    s: Vector,
    eta: float,
    sizes: Matrix,
    rows: Vector,
    first: int,
    loss: str,
    start: Vector | None = None,
    b: float = 0.0,
    l2: float = 0.0,
) -> tuple[Vector, float, Vector, Vector]:
    """Learn one path; return the averaged weights and bias, z of the first rows, and updates.

    `sizes` has for each row the divisor of its rate, and its squared norm.
    """
    w = np.zeros(X.shape[1]) if start is None else start
    squares, z, count = np.zeros(len(w)), np.zeros(len(w)), np.zeros(len(w))
    sum_w, sum_b = np.zeros(len(w)), 0.0
    steps = sum(len(list(repeats(s[i]))) for i in rows)
    begin, t = steps // 2, 0
    for number, i in enumerate(rows):
        for weight, _ in repeats(s[i]):
            # Add in the order of the row: with hinge loss, rounding decides about exact margins.
            p = sum((w[j] * X[i, j] for j in np.flatnonzero(X[i])), start=0.0) + b
            reach = eta * (sizes[i, 1] / sizes[i, 0] + 1.0)
            g = slope(loss, float(p), float(y[i]), weight, reach, 0.0, 0.5)
            w = w / (1.0 + eta / sizes[i, 0] * weight * l2)
            if g != 0:
                u = (-eta * g / sizes[i, 0]) * X[i]
                w = w + u
                b = b + -eta * g
                squares = squares + u * u
                count = count + (X[i] != 0)
            if t >= begin:
                sum_w, sum_b = sum_w + w, sum_b + b
            t += 1
        if number + 1 == first:
            z = np.divide(w, np.sqrt(squares), out=np.zeros(len(w)), where=squares > 0)
    window = steps - begin
    return sum_w / window, sum_b / window, z, count
