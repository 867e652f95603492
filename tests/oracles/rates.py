"""Learning rates (R-3.3).

eta_i = eta0 * f(i) * decay^pass,    i = 1, 2, ... over all passes;  pass = 0, 1, ...

constant  f(i) = 1          inverse  f(i) = 1/i
sqrt      f(i) = 1/sqrt(i)  power    f(i) = i^-power

i counts steps. Relative rates divide eta_i by max(mean of s_1..s_i, s_i), s_i = (steepness of the
loss in step i) * ||x_i||^2 for the weights and s_i = (the steepness) for the bias; by 1 where that
is 0.
"""

from __future__ import annotations

import math

from .result import Vector


def rate(
    schedule: str,
    i: int,
    pass_number: int,
    eta0: float,
    decay: float = 1.0,
    power: float = 0.5,
) -> float:
    """Return eta_i, the rate of step i (1-based), made in pass ``pass_number`` (0-based)."""
    if schedule == "constant":
        f = 1.0
    elif schedule == "inverse":
        f = 1.0 / i
    elif schedule == "sqrt":
        f = 1.0 / math.sqrt(i)
    elif schedule == "power":
        f = float(i) ** -power
    else:
        raise ValueError(
            f"unknown schedule {schedule!r}; one of constant, inverse, sqrt, power is allowed"
        )
    return eta0 * f * decay**pass_number


class Relative:
    """The divisors of relative rates, step by step; 1 if rates are not relative."""

    def __init__(self, relative: bool) -> None:
        self.relative = relative
        self.norms: list[float] = []
        self.steep: list[float] = []

    def divisors(self, x: Vector, steepness: float) -> tuple[float, float]:
        """Return the divisors of the rates of the weights and of the bias."""
        if not self.relative:
            return 1.0, 1.0
        self.norms.append(steepness * sum(float(v) ** 2 for v in x))
        self.steep.append(steepness)
        norm = max(sum(self.norms) / len(self.norms), self.norms[-1])
        steep = max(sum(self.steep) / len(self.steep), self.steep[-1])
        return norm or 1.0, steep or 1.0


def steering_due(t: int) -> bool:
    """Tell whether gravity is set again after step t: from 64 on, eight times per doubling."""
    if t < 64:
        return False
    power = 1
    while 2 * power <= t:
        power = 2 * power
    return t % (power // 8) == 0
