"""Feature discovery, row by row and for every feature, in double precision.

lane k      w_j = -(a_k / rms_j) soft(z_j, l_k sqrt(n_j)) / sqrt(n_j)
            n_j += h^2 x_j^2 (g^2 + 2 v) / 3
            z_j += h g x_j - (sqrt(n_j') - sqrt(n_j)) w_j rms_j / a_k
pool        w = sum_k pi_k w_k, F = sum_k pi_k f_k, pi_k ~ product of the lane's fits
prediction  p = sigmoid(s F + c), or s F + c in a regression of standardised targets
evidence    p_tj is p without the feature: F - w_j x_j in the place of F
            S = sum h x (y - p_tj), realised = sum (h x (y - p_tj))^2,
            predicted = sum h^2 x^2 v_tj
redraws     b = [u < p_tj] - p_tj, or the residual with a random sign;
            S* = sum h x b, D* = sum h^2 x^2 (1 - 2 p_tj) b, V* = sum h^2 x^2 (b^2 + 2 v_tj) / 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .result import Matrix, Vector

STEPS = np.repeat([0.03, 0.1, 0.3, 1.0], 3)
THRESHOLDS = np.tile([1.0, 2.0, 3.0], 4)
LANES = 12
MOST_SCORE, MOST_TARGET = 30.0, 1e6
FIRST_ROWS = 20  # of a regression: they only give the scale of the targets
WORD = (1 << 64) - 1


def mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def uniforms(seed: int, number: int, redraws: int) -> Vector:
    """Return the uniform numbers of a row: SplitMix64 with a seed of its own, 24 bits of each."""
    state, found = mixed((mixed(seed) + number) & WORD), []
    for _ in range(redraws):
        state = (state + 0x9E3779B97F4A7C15) & WORD
        found.append((mixed(state) >> 40) * 2.0**-24)
    return np.array(found)


def sigmoid(score: Any) -> Any:
    return 1.0 / (1.0 + np.exp(np.minimum(-score, 700.0)))


def length(x: Vector) -> float:
    return float(np.log1p(np.count_nonzero(x)))


@dataclass
class Calibration:
    """Slope s, intercept c and effect d of the row length l; and the variance of the residuals."""

    classifies: bool
    s: float = 1.0
    c: float = 0.0
    d: float = 0.0
    H: Matrix = field(default_factory=lambda: np.diag([10.0, 1.0, 10.0]))
    squares: float = 1.0
    weight: float = 1.0

    def p(self, F: Any, long: float) -> Any:
        F = np.clip(F, -MOST_SCORE, MOST_SCORE)
        score = max(0.0, self.s) * F + self.c + self.d * long
        return sigmoid(score) if self.classifies else score

    def v(self, p: Any) -> Any:
        return p * (1 - p) if self.classifies else self.squares / self.weight + 0.0 * p

    def learn(self, F: float, long: float, y: float, h: float) -> None:
        if h == 0:
            return
        F = float(np.clip(F, -MOST_SCORE, MOST_SCORE))
        p, u = self.p(F, long), np.array([F, 1.0, long])
        self.H = self.H + h * (p * (1 - p) if self.classifies else 1.0) * np.outer(u, u)
        step = h * (y - p) * np.linalg.solve(self.H, u)
        self.s, self.c, self.d = self.s + step[0], self.c + step[1], self.d + step[2]
        if not self.classifies:
            self.squares += h * (y - p) ** 2
            self.weight += h


@dataclass
class Targets:
    """Targets in units of the standard deviation of those before; labels stay as they are."""

    classifies: bool
    seen: list[tuple[float, float]] = field(default_factory=list)  # target, weight

    def moments(self) -> tuple[float, float]:
        if not self.seen:
            return 0.0, 0.0
        y, h = np.array(self.seen).T
        mean = float(y[0] + np.average(y - y[0], weights=h))  # equal targets have sd 0
        return mean, float(np.sqrt(np.average((y - mean) ** 2, weights=h)))

    @property
    def ready(self) -> bool:
        """Whether there are enough targets for their standard deviation."""
        return self.classifies or len(self.seen) >= FIRST_ROWS

    def standard(self, y: float) -> float:
        if self.classifies:
            return y
        mean, sd = self.moments()
        return float(np.clip((y - mean) / sd, -MOST_TARGET, MOST_TARGET)) if sd > 0 else 0.0

    def unit(self, p: float) -> float:
        """Return a standardised prediction in the units of the targets."""
        if self.classifies:
            return p
        mean, sd = self.moments()
        return mean + p * sd if self.ready else mean


class Model:
    """12 lanes of FTRL with thresholds, pooled."""

    def __init__(self, width: int, classifies: bool) -> None:
        self.classifies = classifies
        self.z, self.root = np.zeros((LANES, width)), np.zeros((LANES, width))
        self.squares, self.values = np.zeros(width), np.zeros(width)
        self.bias, self.bias_z, self.bias_root = np.zeros((3, LANES))
        self.shares = np.ones(LANES)
        self.calibration, self.targets = Calibration(classifies), Targets(classifies)

    @property
    def pool(self) -> Vector:
        return self.shares / self.shares.sum()

    def rms(self) -> Vector:
        return np.sqrt(self.squares / np.maximum(self.values, 1.0))

    def weights(self) -> Matrix:
        n = self.root
        soft = np.sign(self.z) * np.maximum(np.abs(self.z) - THRESHOLDS[:, None] * n, 0.0)
        known = np.broadcast_to(self.values > 0, n.shape)
        rate = np.divide(STEPS[:, None], self.rms(), out=np.zeros(n.shape), where=known)
        return -rate * np.divide(soft, n, out=np.zeros(n.shape), where=n > 0)

    def pooled(self) -> Vector:
        return self.pool @ self.weights()

    def F(self, x: Vector) -> float:
        return float(self.pool @ (self.weights() @ x + self.bias))

    def learn(self, x: Vector, y: float, h: float) -> None:
        if h == 0:
            return
        if not self.targets.ready:
            self.targets.seen.append((y, h))
            return
        F, w = self.F(x), self.weights()
        target, f = self.targets.standard(y), w @ x + self.bias
        if self.classifies:
            g = sigmoid(f) - target
            v, fits = np.abs(g) * (1 - np.abs(g)), 1 - np.abs(g)
        else:
            g = np.clip(f, -MOST_TARGET, MOST_TARGET) - target
            v = np.full(LANES, self.calibration.squares / self.calibration.weight)
            fits = np.exp(-0.5 * g * g / v)
        self._learn_weights(x, w, h * g, h * h * (g * g + 2 * v) / 3)
        self._learn_bias(h * g)
        self.calibration.learn(F, length(x), target, h)
        self.targets.seen.append((y, h))
        self.shares = self.shares * np.maximum(fits, 1e-9) ** h
        best = self.shares.max()
        self.shares = np.maximum(self.shares / best, 1e-300) if best > 0 else np.ones(LANES)

    def _learn_weights(self, x: Vector, w: Matrix, slope: Vector, growth: Vector) -> None:
        on = x != 0
        self.squares[on] += x[on] ** 2
        self.values[on] += 1
        grown = np.sqrt(self.root**2 + np.outer(growth, x**2))
        pull = (grown - self.root) * w * self.rms() / STEPS[:, None]
        self.z[:, on] += (np.outer(slope, x) - pull)[:, on]
        self.root = grown

    def _learn_bias(self, g: Vector) -> None:
        root = np.sqrt(self.bias_root**2 + g * g)
        self.bias_z += g - (root - self.bias_root) * self.bias
        self.bias_root = root
        self.bias = -self.bias_z / (1 + root)


@dataclass
class Evidence:
    """Sums of all features; `V_redrawn` is the variance of each redraw, by its definition."""

    rows: Vector
    S: Vector
    realised: Vector
    predicted: Vector
    redrawn_S: Matrix
    redrawn_D: Matrix
    V_redrawn: Matrix
    p: list[float]
    slope: float = 1.0
    intercept: float = 0.0
    loss: float = 0.0

    @classmethod
    def empty(cls, width: int, redraws: int) -> Evidence:
        tables = [np.zeros((width, redraws)) for _ in range(3)]
        return cls(*np.zeros((4, width)), *tables, [])

    def add(
        self, x: Vector, y: float, h: float, F: float, w: Vector, fit: Calibration, u: Vector,
        counts: float = 1.0,
    ) -> None:  # fmt: skip
        """Add a row of weight h; y is standardised, u are the uniform numbers of the redraws.

        `counts`: how much its evidence counts, besides its weight.
        """
        whole = fit.p(F, length(x))
        if fit.classifies:
            self.loss -= h * np.log(max(whole if y > 0.5 else 1 - whole, 1e-9))
        else:
            self.loss += h * (y - whole) ** 2 / 2
        if h == 0:
            return
        h = h * counts
        for j in np.flatnonzero(x):
            p = fit.p(F - w[j] * x[j], length(x))
            e, v, square = y - p, fit.v(p), (h * x[j]) ** 2
            self.rows[j] += 1
            self.S[j] += h * x[j] * e
            self.realised[j] += square * e * e
            self.predicted[j] += square * v
            b = (u < p) - p if fit.classifies else np.where(u < 0.5, e, -e)
            self.redrawn_S[j] += h * x[j] * b
            self.redrawn_D[j] += square * (1 - 2 * p) * b
            self.V_redrawn[j] += square * (b * b + 2 * v) / 3


def stream(
    X: Matrix, y: Vector, h: Vector, order: Sequence[int], *, classifies: bool, redraws: int,
    seed: int, first: int = 0,
) -> Evidence:  # fmt: skip
    """Predict each row, add its evidence, then learn it."""
    model, found = Model(X.shape[1], classifies), Evidence.empty(X.shape[1], redraws)
    before = 0.0  # weight of the rows up to this one
    for t in order:
        F, u = model.F(X[t]), uniforms(seed, first + t, redraws)
        target = model.targets.standard(y[t])
        before += h[t]
        if model.targets.ready:
            fit = model.calibration
            found.add(X[t], target, h[t], F, model.pooled(), fit, u, np.sqrt(before))
        found.p.append(model.targets.unit(float(model.calibration.p(F, length(X[t])))))
        model.learn(X[t], y[t], h[t])
    found.slope, found.intercept = model.calibration.s, model.calibration.c
    return found


def crossfit(
    X: Matrix, y: Vector, h: Vector, order: Sequence[int], folds: Sequence[int], *,
    classifies: bool, redraws: int, seed: int, numbers: Sequence[int] | None = None,
) -> Evidence:  # fmt: skip
    """Let the model of each fold learn the other folds; then add the evidence of all rows."""
    models = {}
    for fold in set(folds):
        models[fold] = Model(X.shape[1], classifies)
        for t in order:
            if folds[t] != fold:
                models[fold].learn(X[t], y[t], h[t])
    found, fit = Evidence.empty(X.shape[1], redraws), Calibration(classifies)
    for t in order:
        model = models[folds[t]]
        F, u = model.F(X[t]), uniforms(seed, t if numbers is None else numbers[t], redraws)
        target = model.targets.standard(y[t])
        found.p.append(model.targets.unit(float(fit.p(F, length(X[t])))))
        if model.targets.ready:
            found.add(X[t], target, h[t], F, model.pooled(), fit, u)
            fit.learn(F, length(X[t]), target, h[t])
    found.slope, found.intercept = fit.s, fit.c
    return found
