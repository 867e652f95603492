"""Averaging over parts of the rows: every weight of every part, step by step.

In a round, all parts begin from the same numbers s, each with its own number of steps t, and learn
their rows, with the steps of `repeats`. Let c_pj be the number of steps of part p whose row has
feature j and a nonzero slope of the loss, and n_p the sum of the weights of its rows. Then

    s_j = sum_p c_pj s_pj / sum_p c_pj      if some c_pj > 0
          sum_p n_p s_pj / sum_p n_p        otherwise
    b   = sum_p n_p b_p / sum_p n_p         numbers of the intercept

At the end of the round, s_pj are the following, also if p has not updated j:

    truncated_gradient  w, mean of w over all steps     averaged  w, mean of w over all steps
    ftrl                z, n                            dual_averaging  G / t
    margin_perceptron   w                               mirror_descent  theta

The steps are those of the oracles of the rules, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import losses
from .ftrl import bias_of, weights_of
from .mirror_descent import link
from .operators import T0, T1, soft
from .rates import Relative, rate
from .repeats import repeats, slope
from .result import Vector


class Part:
    """The state of a part: a clock, and numbers of features and of the intercept."""

    def __init__(self, rule: str, width: int, params: dict[str, Any]) -> None:
        self.rule, self.params, self.width = rule, params, width
        self.t = self.passes = 0
        self.relative = Relative(bool(params.get("relative")))
        self.penalty = self.norms = self.steep = 0.0
        self.s = np.zeros((2, width))
        self.b = np.zeros(2)

    def begin(self, s: Vector, b: Vector) -> None:
        """Begin a round."""
        sums = self._sums()
        self.s, self.b = s * sums[:, None], b * sums
        self.updates = np.zeros(self.width)
        self.rows, self.loss, self.weight = 0, 0.0, 0.0

    def end(self) -> tuple[Vector, Vector]:
        """Return the numbers of features, and those of the intercept."""
        sums = self._sums()
        return self.s / sums[:, None], self.b / sums

    def _sums(self) -> Vector:
        """Return the factors from the averaged numbers to the stored ones."""
        t = float(max(self.t, 1))
        if self.rule in ("truncated_gradient", "averaged"):
            return np.array([1.0, t])
        return np.array([t, 1.0]) if self.rule == "dual_averaging" else np.ones(2)

    def weights(self) -> tuple[Vector, float]:
        """Return the weights and the intercept that predict."""
        q, (s, b) = self.params, (self.s, self.b)
        if self.rule == "ftrl":
            alpha, beta = q["alpha"], q["beta"]
            w = weights_of(s[0], s[1], q["l1"], q["l2"], alpha, beta)
            return w, bias_of(b[0], b[1], alpha, beta)
        if self.rule == "dual_averaging":
            if self.t == 0:
                return np.zeros(self.width), 0.0
            root, on = math.sqrt(self.t), q["relative"]
            gamma = q["strength"] * (self.norms / self.t if on and self.norms > 0 else 1.0)
            gamma_b = q["strength"] * (self.steep / self.t if on and self.steep > 0 else 1.0)
            w = -soft(s[0], self.penalty + gamma * q["boost"] * root) / (gamma * root)
            return w, -b[0] / (gamma_b * root)
        return (link(s[0], q["p"]) if self.rule == "mirror_descent" else s[0]), b[0]

    def result(self) -> tuple[Vector, float]:
        """Return the weights and the intercept of the model."""
        if self.params.get("average"):
            return self.s[1] / max(self.t, 1), self.b[1] / max(self.t, 1)
        return self.weights()

    def learn(self, x: Vector, y: float, weight: float) -> None:
        """Learn a row."""
        for part, whole in repeats(weight):
            self._step(x, y, part, whole)

    def _step(self, x: Vector, y: float, weight: float, whole: float | None) -> None:
        q, name = self.params, self.params["loss"]
        w, b = self.weights()
        c = losses.row_scale(name, x)
        p = c * float(w @ x) + b
        if name == "margin":
            value, steep, limit = max(0.0, q["margin"] - y * p), 1.0, q["margin"]
        else:
            value = losses.value(name, p, y, q["epsilon"], q["quantile"])
            steep, limit = losses.steepness(name, p, y), q["epsilon"]
        if whole is not None:
            self.rows, self.loss, self.weight = (
                self.rows + 1, self.loss + whole * value, self.weight + whole,
            )  # fmt: skip
        if weight == 0:
            return
        assert weight <= 1  # longer steps are tested with the oracles of the rules
        g = slope(name, p, y, weight, 0.0, limit, q["quantile"])
        if g != 0:
            self.updates += x != 0
        self.t += 1
        self._move(c * x, g, w, b, steep)

    def _move(self, x: Vector, g: float, w: Vector, b: float, steep: float) -> None:
        q, t, on = self.params, self.t, self.params["fit_intercept"]
        if self.rule == "ftrl":
            for s, weight, slope in ((self.s, w, g * x), (self.b, b, g if on else 0.0)):
                sigma = (np.sqrt(s[1] + slope**2) - np.sqrt(s[1])) / q["alpha"]
                s[0], s[1] = s[0] + slope - sigma * weight, s[1] + slope**2
        elif self.rule == "dual_averaging":
            self.s[0] += g * x
            self.b[0] += g if on else 0.0
            self.penalty += q["l1"] / t if q["fading"] else q["l1"]
            self.norms += steep * float(x @ x)
            self.steep += steep
        elif self.rule == "averaged":
            self.s[0] = (1 - 1 / t) * self.s[0] - g / (q["alpha"] * t) * x
            if on:
                self.b[0] = (1 - 1 / t) * b - g / (q["alpha"] * t)
            self.s[1], self.b[1] = self.s[1] + self.s[0], self.b[1] + self.b[0]
        elif self.rule == "margin_perceptron":
            if g != 0:
                J = x != 0 if q["shrink"] == "touched" else np.full(self.width, True)
                self.s[0] = np.where(J, soft(w - q["eta0"] * g * x, q["l1"]), w)
                self.b[0] -= q["eta0"] * g if on else 0.0
        else:
            eta = rate(q["schedule"], t, self.passes, q["eta0"], q["decay"], q["power"])
            by, by_bias = self.relative.divisors(x, steep)
            self.b[0] -= eta / by_bias * g if on else 0.0
            self._shrink(eta / by, -eta / by * g * x)
            self.s[1], self.b[1] = self.s[1] + self.s[0], self.b[1] + self.b[0]

    def _shrink(self, eta: float, u: Vector) -> None:
        q, v, t = self.params, self.s[0], self.t
        if self.rule == "mirror_descent":
            self.s[0] = soft(v + u, q["l1"] if q["threshold"] == "paper" else eta * q["l1"])
            return
        K = int(q["period"])
        if t % K:
            self.s[0] = v + u
            return
        a = eta * K * (q["gravity"] / t if q["fading"] else q["gravity"])
        D = 1 + eta * K * q["l2"]
        if q["shrink"] == "truncate":
            self.s[0] = T1(v + u, a, q["ceiling"]) / D
        elif q["shrink"] == "round":
            self.s[0] = T0(v + u, q["ceiling"]) / D
        else:
            self.s[0] = (v - a * np.sign(v)) / D + u


Rows = tuple[Vector, Vector, Vector]
"""X, y and weights, in the order in which they are learned."""


def averaging(
    part: type[Part],
    rule: str,
    width: int,
    params: dict[str, Any],
    rounds: Sequence[Sequence[Rows]],
    each: int,
) -> tuple[Vector, float, list[float]]:
    """Learn rounds[r][p], the rows of part p in round r, `each` rounds in a pass.

    Returns weights, intercept, and the mean loss of each round.
    """
    parts = [part(rule, width, params) for _ in rounds[0]]
    steps = [0] * len(parts)
    s, b = np.zeros((2, width)), np.zeros(2)
    found = []
    for number, given in enumerate(rounds):
        old = parts[steps.index(max(steps))]
        clock = (old.t, list(old.relative.norms), list(old.relative.steep), old.penalty,
                 old.norms, old.steep, old.passes)  # fmt: skip
        for part, done, (X, y, weights) in zip(parts, steps, given, strict=True):
            if done == 0:  # it had no rows yet: use the clock of the part with most steps
                (part.t, part.relative.norms, part.relative.steep, part.penalty,
                 part.norms, part.steep, part.passes) = (
                    clock[0], list(clock[1]), list(clock[2]), *clock[3:])  # fmt: skip
            part.passes += number > 0 and number % each == 0
            part.begin(s, b)
            for x, label, weight in zip(X, y, weights, strict=True):
                part.learn(x, float(label), float(weight))
        shares = [part.end() for part in parts]
        n = np.array([part.weight for part in parts], float)
        c = np.array([part.updates for part in parts])
        weigh = np.where(c.sum(axis=0) > 0, c, n[:, None])
        if n.sum() > 0:
            total = np.maximum(weigh.sum(axis=0), 1e-300)
            s = sum(q * share[0] for q, share in zip(weigh, shares, strict=True)) / total
            b = sum(q * share[1] for q, share in zip(n, shares, strict=True)) / n.sum()
        loss, weight = sum(part.loss for part in parts), sum(part.weight for part in parts)
        found.append(loss / weight if weight > 0 else math.nan)
        steps = [done + part.rows for done, part in zip(steps, parts, strict=True)]
    last = parts[steps.index(max(steps))]
    last.begin(s, b)
    return *last.result(), found
