"""Weights of rows are repetitions (R-3.6), and the slope of steps of weight > 1 (R-3.7).

A row of weight h makes m = ceil(min(h, 32)) consecutive steps, each of weight c = h / m; none if h
is 0. Its loss counts once, h times, and is that before the first step.

    c <= 1:  g = c loss'(p, y)
    c > 1:   g = (p - p_c) / q,  where p_s starts at p_0 = p, follows dp/ds = -q loss'(p_s, y), and
             q is how far a slope of 1 moves the prediction; g = c loss'(p, y) where q = 0
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from scipy.special import wrightomega

from . import losses


def repeats(weight: float) -> Iterator[tuple[float, float | None]]:
    """Yield for each step of a row its weight, and the row's weight (None after the first step).

    For a row of weight 0, yield (0, 0): its loss is recorded, and no step is made.
    """
    count = math.ceil(min(float(weight), 32.0))
    for i in range(max(count, 1)):
        yield float(weight) / max(count, 1), float(weight) if i == 0 else None


def slope(
    loss: str,
    p: float,
    y: float,
    weight: float,
    reach: float,
    epsilon: float = 0.1,
    quantile: float = 0.5,
) -> float:
    """Return g of a step, for a reach q."""
    now = losses.derivative(loss, p, y, epsilon, quantile) if loss != "margin" else 0.0
    if loss == "margin":
        now = -y if p * y <= epsilon else 0.0
    if weight <= 1 or reach == 0 or now == 0:
        return weight * now
    return (p - flow(loss, p, y, reach * weight, epsilon, quantile)) / reach


def flow(loss: str, p: float, y: float, s: float, epsilon: float, quantile: float) -> float:
    """Return the prediction p_s of dp/ds = -loss'(p, y), from p_0 = p."""
    r, sign = p - y, math.copysign(1.0, p - y)
    match loss:
        case "logistic":  # m + e^m grows by s
            m = p * y
            start = m + math.exp(m) + s
            e = float(wrightomega(start).real)  # e + ln(e) = start
            return y * (start - e if start < 1 else math.log(e))
        case "hinge" | "margin":
            return y * min(p * y + s, max(p * y, 1.0 if loss == "hinge" else epsilon))
        case "squared_hinge" | "square":
            return y + r * math.exp(-2 * s)
        case "modified_huber":
            wait = (-1 - p * y) / 4
            if wait > s:
                return p + 4 * y * s
            return y - 2 * y * math.exp(-2 * (s - wait)) if wait > 0 else y + r * math.exp(-2 * s)
        case "squared":
            return y + r * math.exp(-s)
        case "clipped_square":
            end = min(max(p, 0.0), 1.0)
            slope = 2 * (end - y)
            wait = (p - end) / slope if slope else math.inf
            return p - slope * s if wait > s else y + (end - y) * math.exp(-2 * (s - wait))
        case "absolute":
            return y + sign * max(0.0, abs(r) - s)
        case "huber":
            if abs(r) <= epsilon:
                return y + r * math.exp(-s)
            wait = (abs(r) - epsilon) / epsilon if epsilon else math.inf
            return p - sign * epsilon * s if wait > s else y + sign * epsilon * math.exp(wait - s)
        case "epsilon_insensitive":
            return y + sign * max(epsilon, abs(r) - s)
        case "quantile":
            return y + sign * max(0.0, abs(r) - s * (quantile if r < 0 else 1 - quantile))
        case "poisson":  # e^-p approaches 1 / y; for |p| < 30
            gap = math.exp(-p) - 1 / y if y else 0.0
            return -math.log(1 / y + gap * math.exp(-y * s) if y else math.exp(-p) + s)
    raise ValueError(f"unknown loss {loss!r}")
