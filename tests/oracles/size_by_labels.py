"""How many features the robust variant keeps if that is not given: the other half decides.

Rows have weights s_i > 0, y is -1 or +1, t = (y > 0), and Omega is as in `robust`. There are
`pairs` random splits of the rows into the first n // 2 and the rest (by default 8, and 3 from 2,000
rows on). Both halves of a split have a path, which learns from its own half A, of a rows:

    b0      log-odds of the weights of A, with shares between 1 / (a + 1) and a / (a + 1)
    models  with the columns Omega_k that are left, v the sum of their variances (over all rows):
            for c = 0.3, 1, 5, 25, 125 in this order, max(3, ceil(stage_steps / a)) sweeps of
            dual coordinate ascent for
                sum over A of s_i C loss(b0 + b + w.x_i, y_i) + |w|^2/2 + b^2/(2 v),   C = c / v
            from the duals of the c before; for the first c, from those of its last stage. The model
            is the mean of the iterates after the later half of the sweeps.
    stage   max(2, ceil(stage_steps / a)) passes of SGD as in `robust`, from b0, but of one path;
            Z and W are sums over stages; Omega_(k+1) has the max(4, min(m - 1, m // 2)) columns of
            highest score. The sizes are m = |Omega|, m // 2, ..., 4.

For each size, the losses on the other half are those of the c with the least weighted mean; if all
columns left are constant, or the labels of A, those of b0 alone. A row has then a loss for each
size, the mean over the splits; and for size 0, that of b0 alone.

The best size has the least mean loss. If it is not two standard errors better than size 0, the
number is 0. Otherwise it is twice the geometric mean of the sizes above 0, rounded, where size m
has weight exp(-(d / e)^2 / 2): d is its mean loss minus the least, e the standard error of d. c is
the geometric mean over paths and sizes, with these weights; from 60 on, there is no l2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from .result import Matrix, Vector

STRENGTHS = (0.3, 1.0, 5.0, 25.0, 125.0)


@dataclass(frozen=True)
class Sizes:
    """Losses of all rows by size, and the mean over the paths of ln c."""

    sizes: list[int]
    losses: Matrix
    logs: Vector
    pairs: int
    margin: float
    """The least difference that decided about a c."""


@dataclass(frozen=True)
class Choice:
    """The number of columns to keep; 0: no signal."""

    size: int
    strength: float
    margin: float
    """The least difference that decided: with less than rounding, the core may decide otherwise."""


def log_odds(s: Vector, y: Vector) -> float:
    """Return the log-odds of rows, finite also for one class."""
    share = min(max(np.sum(s[y > 0]) / np.sum(s), 1 / (len(y) + 1)), len(y) / (len(y) + 1))
    return math.log(share / (1 - share))


def measure(
    X: Matrix,
    y: Vector,
    s: Vector,
    order: Callable[[int, int, int], Vector],
    descend: Callable[[Matrix, Vector, int, float], tuple[Vector, Vector]],
    *,
    features: int,
    paths: int,
    stage_steps: int,
    pairs: int | None = None,
) -> Sizes | None:
    """Measure all sizes; X has only the columns of Omega that these rows have.

    `descend(X, rows, first, b)` returns weights and z of a path; `features` is |Omega|.
    """
    n = len(X)
    if n < 2:
        return None
    mean = s @ X / np.sum(s)
    square = s @ (X * X) / np.sum(s)
    variance = np.where(square - mean**2 > 1e-12 * square, square - mean**2, 0.0)
    rms = np.sqrt(np.sum(X * X, axis=0) / n)
    sizes = [features] if features else []
    while sizes and sizes[-1] > 4:
        sizes.append(max(4, min(sizes[-1] - 1, sizes[-1] // 2)))
    losses, logs = np.zeros((len(sizes) + 1, n)), np.zeros(len(sizes) + 1)
    pairs, margin = pairs or (8 if n < 2000 else 3), math.inf
    for number in range(2 * pairs):
        split = order(2 * paths + number // 2, 0, n)
        halves = [split[: n // 2], split[n // 2 :]]
        mine, others = halves[number % 2], halves[1 - number % 2]
        b0 = log_odds(s[mine], y[mine])
        losses[0, others] += log_loss(np.full(len(others), b0), y[others]) / pairs
        left, duals = np.arange(X.shape[1]), np.zeros(n)
        Z, W, stages = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for stage, size in enumerate(sizes, 1):

            def mixed(count: int, first: int, stage: int = stage, mine: Vector = mine,
                      number: int = number) -> list[Vector]:  # fmt: skip
                begin = (stage << 20) + first
                return [mine[order(2 * paths + number, begin + k, len(mine))] for k in range(count)]

            if len(left) > size:
                times = np.maximum(1.0, stages)
                score = np.abs(W / times * Z / np.sqrt(times)) * rms
                left = np.sort(left[np.argsort(-score[left], kind="stable")[:size]])
            found, other_duals = [], duals
            for e, c in enumerate(STRENGTHS, 1):
                if e == 2:
                    other_duals = duals.copy()
                orders = mixed(max(3, math.ceil(stage_steps / len(mine))), e << 16)
                v = float(np.sum(variance[left]))
                if v == 0 or abs(np.sum(y[mine])) == len(mine):
                    continue
                w, b = ascend(X[:, left], y, s, orders, mine, c, v, b0, other_duals)
                found.append(log_loss(X[np.ix_(others, left)] @ w + b, y[others]))
            if found:
                means = [float(s[others] @ one) for one in found]
                best = int(np.argmin(means))
                margin = min([margin, *(m - means[best] for e, m in enumerate(means) if e != best)])
                losses[stage, others] += found[best] / pairs
                logs[stage] += math.log(STRENGTHS[best]) / (2 * pairs)
            else:
                losses[stage, others] += log_loss(np.full(len(others), b0), y[others]) / pairs
            passes = max(2, math.ceil(stage_steps / len(mine)))
            w, z = descend(X[:, left], np.concatenate(mixed(passes, 0)), len(mine), b0)
            learned = w != 0
            Z[left] += np.where(learned, z, 0.0)
            W[left] += np.where(learned, w, 0.0)
            stages[left] += learned
    return Sizes([0, *sizes], losses, logs, pairs, margin)


def choose(measured: list[tuple[Sizes, Vector]], features: int) -> Choice:
    """Choose by the losses of all parts, each with the weights of its rows."""
    if not measured:
        return Choice(0, 0.0, math.inf)
    sizes = measured[0][0].sizes
    losses = np.concatenate([one.losses for one, _ in measured], axis=1)
    s = np.concatenate([weights for _, weights in measured])
    pairs = [one.pairs for one, _ in measured]
    logs = np.average([one.logs for one, _ in measured], axis=0, weights=pairs)
    means = losses @ s / np.sum(s)

    def error(a: int, b: int) -> float:
        d = losses[a] - losses[b]
        return math.sqrt(np.sum(s**2 * (d - means[a] + means[b]) ** 2)) / np.sum(s)

    best = int(np.argmin(means))
    margins = [one.margin for one, _ in measured]
    margins += [means[a] - means[best] for a in range(len(sizes)) if a != best]
    if best == 0:
        return Choice(0, 0.0, min(margins))
    gain = means[0] - means[best]
    margins += [abs(gain - 2 * error(0, best)), abs(gain - 1e-9)]
    if gain < 1e-9 or gain < 2 * error(0, best):
        return Choice(0, 0.0, min(margins))
    u = np.zeros(len(sizes))
    for a in range(1, len(sizes)):
        d, e = means[a] - means[best], error(a, best)
        margins += [abs(d - 1e-9)] if a != best else []
        u[a] = 1.0 if d <= 1e-9 else math.exp(-((d / e) ** 2) / 2) if e > 0 else 0.0
    u /= np.sum(u)
    size, c = 2 * math.exp(u[1:] @ np.log(sizes[1:])), math.exp(u @ logs)
    margins += [abs(c - 60.0)]
    if size < features + 0.5:
        margins.append(abs(size % 1 - 0.5))  # the distance from the next half
    return Choice(min(features, math.floor(size + 0.5)), c if c < 60 else 0.0, min(margins))


def ascend(
    X: Matrix, y: Vector, s: Vector, orders: list[Vector], mine: Vector, c: float, v: float,
    b0: float, duals: Vector,
) -> tuple[Vector, float]:  # fmt: skip
    """Make sweeps; return the mean of the later models, and change the duals."""
    C, t = c / v, (y > 0).astype(float)
    w = C * (s[mine] * duals[mine]) @ X[mine]
    b = b0 + v * C * float(np.sum(s[mine] * duals[mine]))
    later: list[tuple[Vector, float]] = []
    for k, rows in enumerate(orders):
        for i in rows:
            p, q = float(X[i] @ w) + b, C * s[i] * (float(X[i] @ X[i]) + v)
            before = duals[i]

            def excess(r: float, i: int = i, p: float = p, q: float = q, before: float = before):
                return r - (t[i] - sigmoid(p + (r - before) * q))

            duals[i] = brentq(excess, t[i] - 1.0, t[i], xtol=1e-14, rtol=1e-14)
            step = C * s[i] * (duals[i] - before)
            w, b = w + step * X[i], b + step * v
        if k >= len(orders) // 2:
            later.append((w, b))
    return np.mean([w for w, _ in later], axis=0), float(np.mean([b for _, b in later]))


def sigmoid(p: float) -> float:
    """Return 1 / (1 + exp(-p))."""
    return 1.0 / (1.0 + math.exp(-p)) if p > -700 else 0.0


def log_loss(p: Vector, y: Vector) -> Vector:
    """Return the logistic loss of each prediction."""
    return np.logaddexp(0.0, -y * p)
