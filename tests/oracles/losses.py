"""The losses: value, and derivative in the raw prediction p (R-1.1 to R-1.9).

    absolute             |p - y|                     -1 if p <= y else 1                R-1.1
    squared              0.5 (p - y)^2               p - y                              R-1.2
    square               (p - y)^2                   2 (p - y)                          R-1.3
    hinge                max(0, 1 - p y)             -y if p y <= 1 else 0              R-1.4
    logistic             ln(1 + exp(-p y))           -y / (1 + exp(p y))                R-1.5, 1.7
    clipped_square       0<=p<=1: (p - y)^2          2 (clip(p, 0, 1) - y)              R-1.8
                         p>1: (1-y)^2 + 2(1-y)(p-1)
                         p<0: y^2 - 2 y p
    squared_hinge        max(0, 1 - p y)^2           -2 y max(0, 1 - p y)               R-1.9
    modified_huber       p y >= -1: max(0, 1-p y)^2  -2 y max(0, 1 - p y)               R-1.9
                         p y < -1: -4 p y            -4 y
    huber                0.5 r^2 if |r| <= e         clip(r, -e, e)                     R-1.9
                         else e |r| - 0.5 e^2
    epsilon_insensitive  max(0, |r| - e)             sgn(r) if |r| > e else 0           R-1.9
    quantile             tau (y-p) if y > p          -tau if y > p else 1 - tau         R-1.9
                         else (1-tau) (p-y)
    poisson              exp(p) - y p                exp(p) - y, p in exp in [-30, 30]  R-1.9

r = p - y, e = epsilon, tau = quantile. Labels: -1 or +1 for losses of p y (MARGIN),
in [0, 1] for clipped_square, >= 0 for poisson, real otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .result import Vector

NAMES = (
    "logistic",
    "hinge",
    "squared_hinge",
    "modified_huber",
    "squared",
    "square",
    "clipped_square",
    "absolute",
    "huber",
    "epsilon_insensitive",
    "quantile",
    "poisson",
)

CONSTANTS: dict[str, Callable[[float], tuple[float, float]]] = {
    # Given, R-1.8 (there C bounds ||x|| / sqrt(|x|_0)).
    "absolute": lambda C: (0.0, C**2),
    "squared": lambda C: (2 * C**2, 0.0),
    "square": lambda C: (4 * C**2, 0.0),
    "hinge": lambda C: (0.0, C**2),
    "logistic": lambda C: (0.0, C**2),
    "clipped_square": lambda C: (4 * C**2, 0.0),
    # Not in a paper, for: from derivative^2 = 4 L, <= 2 L, <= 1, <= 1. Poisson has no bound.
    "squared_hinge": lambda C: (4 * C**2, 0.0),
    "modified_huber": lambda C: (4 * C**2, 0.0),
    "huber": lambda C: (2 * C**2, 0.0),
    "epsilon_insensitive": lambda C: (0.0, C**2),
    "quantile": lambda C: (0.0, C**2),
}
"""(A, B) of the bound ||grad_w L||^2 <= A L + B, which holds when ||x|| <= C."""

CURVATURE = {
    "logistic": 0.25,
    "squared": 1.0,
    "square": 2.0,
    "clipped_square": 2.0,
    "squared_hinge": 2.0,
    "modified_huber": 2.0,
    "huber": 1.0,
}
"""The largest second derivative in p of losses that have one (R-10.6)."""

MARGIN = ("logistic", "hinge", "squared_hinge", "modified_huber")
"""Losses of y p, whose labels are -1 and 1."""


def value(name: str, p: float, y: float, epsilon: float = 0.1, quantile: float = 0.5) -> float:
    """Return the loss of the raw prediction p for the label y."""
    r = p - y
    m = p * y
    match name:
        case "absolute":
            return abs(r)
        case "squared":
            return 0.5 * r * r
        case "square":
            return r * r
        case "hinge":
            return max(0.0, 1.0 - m)
        case "logistic":
            return math.log1p(math.exp(-m)) if m > 0 else -m + math.log1p(math.exp(m))
        case "clipped_square":
            if p > 1:
                return (1 - y) ** 2 + 2 * (1 - y) * (p - 1)
            if p < 0:
                return y**2 - 2 * y * p
            return r * r
        case "squared_hinge":
            return max(0.0, 1.0 - m) ** 2
        case "modified_huber":
            return max(0.0, 1.0 - m) ** 2 if m >= -1 else -4 * m
        case "huber":
            return 0.5 * r * r if abs(r) <= epsilon else epsilon * abs(r) - 0.5 * epsilon**2
        case "epsilon_insensitive":
            return max(0.0, abs(r) - epsilon)
        case "quantile":
            return quantile * (y - p) if y > p else (1 - quantile) * (p - y)
        case "poisson":
            return math.exp(_clip(p, -30.0, 30.0)) - y * p
    raise ValueError(f"unknown loss {name!r}; one of {', '.join(NAMES)} is allowed")


def derivative(name: str, p: float, y: float, epsilon: float = 0.1, quantile: float = 0.5) -> float:
    """Return the derivative in p; at a kink the sub-gradient that R-1.* names."""
    r = p - y
    m = p * y
    match name:
        case "absolute":
            return -1.0 if p <= y else 1.0
        case "squared":
            return r
        case "square":
            return 2 * r
        case "hinge":
            return -y if m <= 1 else 0.0
        case "logistic":
            return -y * math.exp(-m) / (1 + math.exp(-m)) if m > 0 else -y / (1 + math.exp(m))
        case "clipped_square":
            return 2 * (_clip(p, 0.0, 1.0) - y)
        case "squared_hinge":
            return -2 * y * max(0.0, 1.0 - m)
        case "modified_huber":
            return -2 * y * max(0.0, 1.0 - m) if m >= -1 else -4 * y
        case "huber":
            return _clip(r, -epsilon, epsilon)
        case "epsilon_insensitive":
            return math.copysign(1.0, r) if abs(r) > epsilon else 0.0
        case "quantile":
            return -quantile if y > p else 1 - quantile
        case "poisson":
            return math.exp(_clip(p, -30.0, 30.0)) - y
    raise ValueError(f"unknown loss {name!r}; one of {', '.join(NAMES)} is allowed")


def row_scale(name: str, x: Vector) -> float:
    """Return c_x of p = c_x (w.x) + b: 1/sqrt(|x|_0) for clipped_square, else 1 (R-1.8, A-05)."""
    nonzeros = int(np.count_nonzero(x))
    if name != "clipped_square" or nonzeros == 0:
        return 1.0
    return 1.0 / math.sqrt(nonzeros)


def _clip(v: float, low: float, high: float) -> float:
    return min(max(v, low), high)


def steepness(name: str, p: float, y: float) -> float:
    """Return how many times larger the curvature at p can be than usual; 1 except for poisson."""
    return max(1.0, math.exp(min(max(p, -30.0), 30.0)), y) if name == "poisson" else 1.0
