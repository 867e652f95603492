"""The rule one-pass, step by step and for every feature: a bank of lanes, and a stack.

    own inputs     u_j = x_j / s_j, s_j the mean of |x_j| over the nonzeros of feature j so far
    common inputs  u_j = x_j / s, s the same over all features
    G^2            the mean over rows of sum_j u_j^2, for each scaling
    lane k         m = offset + b + sum_j w_j u_j
    AdaGrad        R_j = (G / a) sqrt(n_j + beta^2), after n_j += h (g_0 u_j)^2
    Newton         R_j = a G^2 + c_j; after the step c_j += h L''(m') u_j^2
    step           w_j -= h g u_j / R_j, where g = L'(m - h q g), q = sum_j u_j^2 / R_j
    stack          p = sum_k (pi_k + d_k) m_k + d_0, pi_k ~ exp(-loss of lane k so far)

The intercept b is one more coordinate with u = 1; for Newton its R is 0.01 a + c. In a regression
the targets are standardised by their running mean and sd, and predictions are clipped to the range
of the targets seen. If the mean weight of the rows so far is above 100, weights are divided, so
that it is 100. A row of weight h makes steps of weight 1, 1, 2, 4, ...; the stack learns each of
them. At the end, the averaged weights replace the last ones if they predicted better, and features
of least energy w^2 sum x^2 are cut. Every pass starts from zero weights, but keeps the scales and
the statistics of the targets; the result is the mean over the passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .result import Matrix, Order, Result, Vector

ADAGRAD = [(False, own, a) for own in (False, True) for a in (0.1, 0.5, 2.0, 8.0)]
NEWTON = [(True, True, a) for a in (0.1, 1.0, 10.0, 100.0)]
BANKS = {
    12: ADAGRAD + NEWTON,
    4: [(False, False, 8.0), (False, True, 2.0), (True, True, 0.1), (True, True, 10.0)],
}
BETA, TAU = 0.1, 10.0


@dataclass
class Scalar:
    """A loss of a prediction, and its implicit steps."""

    name: str
    quantile: float

    def value(self, m: float, y: float, epsilon: float) -> float:
        r = m - y
        if self.name == "logistic":
            return float(np.logaddexp(0.0, -y * m))
        if self.name == "squared":
            return 0.5 * r * r
        if self.name == "huber":
            small = abs(r) <= epsilon
            return 0.5 * r * r if small else epsilon * abs(r) - 0.5 * epsilon**2
        if self.name == "quantile":
            return -self.quantile * r if r < 0 else (1 - self.quantile) * r
        return math.exp(np.clip(m, -30, 30)) - y * m

    def slope(self, m: float, y: float, epsilon: float) -> float:
        r = m - y
        if self.name == "logistic":
            return -y / (1.0 + math.exp(np.clip(y * m, -700, 700)))
        if self.name == "squared":
            return r
        if self.name == "huber":
            return float(np.clip(r, -epsilon, epsilon))
        if self.name == "quantile":
            return -self.quantile if r < 0 else 1 - self.quantile
        return math.exp(np.clip(m, -30, 30)) - y

    def landing(self, m: float, y: float, q: float, epsilon: float) -> tuple[float, float]:
        """Return the slope g = L'(m - q g), and the curvature at m - q g."""
        start = self.slope(m, y, epsilon)
        g = start
        if q > 0 and start != 0:
            if self.name == "quantile":
                g = float(np.clip((m - y) / q, -self.quantile, 1 - self.quantile))
            else:
                g = brentq(
                    lambda g: g - self.slope(m - q * g, y, epsilon),
                    *sorted((0.0, start)), xtol=1e-15, rtol=1e-14,
                )  # fmt: skip
        end = m - q * g
        if self.name == "logistic":
            return g, abs(g) * (1 - abs(g))
        if self.name == "squared":
            return g, 1.0
        if self.name == "huber":
            return g, 1.0 if abs(end - y) <= epsilon else epsilon / abs(end - y)
        if self.name == "quantile":
            return g, g * g
        return g, math.exp(np.clip(end, -30, 30))


@dataclass
class Targets:
    """Statistics of the targets seen, computed again from all of them after each."""

    name: str
    centres: bool
    seen: list[tuple[float, float]] = field(default_factory=list)  # target, weight
    _offset: float = 0.0
    _mean: float = 0.0
    _unit: float = 1.0
    _range: tuple[float, float] = (-math.inf, math.inf)  # of standardised targets

    @property
    def regression(self) -> bool:
        return self.name not in ("logistic", "poisson")

    def see(self, label: float, weight: float) -> None:
        self.seen.append((label, weight))
        y, h = np.array(self.seen).T
        total = h.sum()
        if not self.regression:
            if not self.centres:
                return
            if self.name == "poisson":
                self._offset = math.log((h @ y + 1) / (total + 1))
            else:
                positive = h[y > 0].sum()
                self._offset = math.log((positive + 1) / (total - positive + 1))
            return
        self._mean = float(h @ y / total) if self.centres else 0.0
        constant = self.centres and y.min() == y.max()
        self._unit = 0.0 if constant else math.sqrt(float(h @ (y - self._mean) ** 2 / total))
        if self._unit > 0:
            self._range = self.standard(y.min()), self.standard(y.max())
        else:
            self._range = -math.inf, math.inf

    def offset(self) -> float:
        return self._offset

    def mean(self) -> float:
        return self._mean

    def unit(self) -> float:
        return self._unit

    def standard(self, y: float) -> float:
        if not self.regression:
            return y
        return (y - self._mean) / self._unit if self._unit > 0 else 0.0

    def clip(self, p: float) -> float:
        return min(max(p, self._range[0]), self._range[1])


def one_pass(
    X: Matrix,
    y: Vector,
    order: Order,
    *,
    loss: str,
    lanes: int = 12,
    cut: float = 0.0,
    target_nnz: int = 0,
    fit_intercept: bool = True,
    sample_weight: Vector | None = None,
    epsilon: float = 1.0,
    relative_epsilon: bool = True,
    quantile: float = 0.5,
    dtype: Any = np.float64,
) -> Result:
    """Learn from the rows of X in the given order; the core's numbers are of `dtype`."""
    del dtype  # all arithmetic here is in double precision
    X = np.asarray(X, np.float64)
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    bank, scalar, K, p = BANKS[lanes], Scalar(loss, quantile), lanes, X.shape[1]
    targets = Targets(loss, fit_intercept)
    sizes, counts = np.zeros((2, p))
    squares = np.zeros(2)  # sums over rows of sum u^2: common, own
    raw_predictions = []
    predictions: list[float] = []
    values: list[float] = []
    total, steps = 0.0, 0  # weight and number of all rows
    all_given: list[float] = []  # weights of the rows before they are divided
    times: list[float] = []  # weights of the passes
    models: list[tuple[Vector, float]] = []  # of the passes: weights in units of x / s_j, intercept

    def scale(own: bool) -> NDArray[np.float64]:
        common = sizes.sum() / counts.sum() if counts.sum() > 0 else 1.0
        each = np.where(counts > 0, sizes / np.maximum(counts, 1e-300), 1.0)
        return each if own else np.full(p, common)

    def mixture() -> NDArray[np.float64]:
        pi = np.exp(cumulative.min() - cumulative)
        return pi / pi.sum() + d[:K]

    def mixed() -> NDArray[np.float64]:
        """Return the combined weights in units of x."""
        mix = mixture()
        return sum(mix[k] * w[k] / scale(bank[k][1]) for k in range(K))

    def mixed_intercept() -> float:
        return float(mixture() @ (targets.offset() + b) + d[K])

    def eps() -> float:
        return epsilon if relative_epsilon or targets.unit() == 0 else epsilon / targets.unit()

    for rows in order:
        w, sums = np.zeros((2, K, p))
        b, b_sums = np.zeros((2, K))
        S, d, cumulative = np.eye(K + 1) / TAU, np.zeros(K + 1), np.zeros(K)
        average, marks, b_average, b_mark = np.zeros(p), np.zeros(p), 0.0, 0.0
        judged, t = np.zeros(2), 0.0
        for row in rows:
            steps += 1
            x, label, weight = X[row], float(y[row]), float(weights[row])
            given = weight
            if given > 0:
                all_given.append(given)
                weight = given / max(1.0, float(np.mean(all_given)) / 100)
            now, left, size, first = t, weight, min(weight, 1.0), True
            touched = x != 0
            while first or left > 0:
                h = min(size, left)
                left -= h
                size *= 1.0 if first else 2.0
                sizes += h * np.abs(x)
                counts += h * touched
                t, total = t + h, total + h
                s = [scale(own) for own in (False, True)]
                squares += [h * ((x / each) ** 2).sum() for each in s]
                G = [math.sqrt(v / total) if v > 0 else 1.0 for v in squares]
                U = np.array([x / s[own] for _, own, _ in bank])
                if first and h > 0:
                    kept = np.where(now > 0, (marks / max(now, 1e-300)) ** 16, 0.0)
                    blended = kept * average + (1 - kept) * mixed() * s[True]
                    average, marks = (
                        np.where(touched, blended, average),
                        np.where(touched, now, marks),
                    )
                    kept_b = (b_mark / now) ** 16 if now > 0 else 0.0
                    b_average = kept_b * b_average + (1 - kept_b) * mixed_intercept()
                    b_mark = now
                m = np.array([
                    targets.clip(targets.offset() + b[k] + float(w[k] @ U[k])) for k in range(K)
                ])  # fmt: skip
                pred = float(mixture() @ m + d[K])
                if first:
                    raw = targets.mean() + targets.unit() * targets.clip(pred)
                    known = bool(targets.seen) or not targets.regression
                    averaged = targets.clip(float(average @ (x / s[True])) + b_average)
                if h > 0:
                    targets.see(label, h)
                z = targets.standard(label)
                if first:
                    predictions.append(raw)
                    value = scalar.value(raw, label, eps() * targets.unit()) if known else 0.0
                    values.append(given * value)
                if weight == 0:
                    break
                if first:
                    raw_predictions.append((pred, weight))
                    for i, v in enumerate((targets.clip(pred), averaged)):
                        brier = loss == "logistic"
                        score = (
                            scalar.slope(v, z, eps()) ** 2 if brier else scalar.value(v, z, eps())
                        )
                        judged[i] += weight * now * score
                f = np.append(m, 1.0 if fit_intercept else 0.0)
                Sf = S @ f
                Q = float(f @ Sf)
                g, c = scalar.landing(pred, z, h * Q, eps())
                c = h * max(c, 1e-6)
                d = d - h * g * Sf
                S = S - c / (1 + c * Q) * np.outer(Sf, Sf)
                cumulative += h * np.array([scalar.value(v, z, eps()) for v in m])
                for k, (newton, own, a) in enumerate(bank):
                    u = np.append(U[k], 1.0 if fit_intercept else 0.0)
                    all_sums = np.append(sums[k], b_sums[k])
                    g0 = scalar.slope(m[k], z, eps())
                    if newton:
                        R = np.append(np.full(p, a * G[own] ** 2), 0.01 * a) + all_sums
                    else:
                        all_sums = all_sums + h * (g0 * np.append(U[k], 1.0)) ** 2
                        R = G[own] / a * np.sqrt(all_sums + BETA**2)
                    g, c = scalar.landing(m[k], z, h * float((u * u / R).sum()), eps())
                    moved = -h * g * u / R
                    if newton:
                        all_sums = all_sums + h * c * np.append(U[k], 1.0) ** 2
                    w[k] += moved[:p]
                    b[k] += moved[p]
                    sums[k], b_sums[k] = all_sums[:p], all_sums[p]
                first = False

        coef, intercept = mixed() * scale(True), mixed_intercept()
        if judged[1] < judged[0]:
            kept = (marks / t) ** 16
            coef = kept * average + (1 - kept) * coef
            kept_b = (b_mark / t) ** 16
            intercept = kept_b * b_average + (1 - kept_b) * intercept
        models.append((coef, intercept))
        times.append(t)

    # a last pass with less weight than the others counts less, as it might not have ended
    shares = np.ones(len(models))
    if len(models) > 1 and max(times[:-1]) > 0:
        shares[-1] = min(1.0, times[-1] / max(times[:-1]))
    coef = shares @ np.array([coef for coef, _ in models]) / shares.sum()
    intercept = float(shares @ [intercept for _, intercept in models] / shares.sum())
    energies = coef**2 * counts
    raw, h = np.array(raw_predictions).reshape(-1, 2).T
    spread = float(h @ (raw - np.average(raw, weights=h)) ** 2) if len(raw) else 0.0
    coef = np.where(energies > least(energies, cut, spread, target_nnz), coef, 0.0)
    coef = targets.unit() * coef / scale(True)
    return Result(
        coef, targets.mean() + targets.unit() * intercept, None, None, predictions, values, steps
    )


def least(energies: Vector, cut: float, spread: float, target_nnz: int) -> float:
    """Return the energy up to which features are cut."""
    found = np.sort(energies[energies > 0])
    budget = cut * min(found.sum(), spread)
    number = int((np.cumsum(found) <= budget).sum())
    while 0 < number < len(found) and found[number] == found[number - 1]:
        number -= 1
    if target_nnz and len(found) - number > target_nnz:
        number = len(found) - target_nnz
    return float(found[number - 1]) if number else 0.0
