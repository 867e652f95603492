"""Learning rates (R-3.3).

eta_i = eta0 * f(i) * decay^pass,    i = 1, 2, ... over all passes;  pass = 0, 1, ...

constant  f(i) = 1          inverse  f(i) = 1/i
sqrt      f(i) = 1/sqrt(i)  power    f(i) = i^-power
"""

from __future__ import annotations

import math


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
