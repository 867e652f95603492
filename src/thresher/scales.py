"""Round numbers for the axes of charts."""

from __future__ import annotations

import math
from collections.abc import Sequence


def ticks_of(low: float, high: float) -> list[float]:
    """Return about 4 round numbers from low to high."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-12)))
    while (high - low) / step > 5:
        step *= 2 if f"{step:e}"[0] in "15" else 2.5
    while (high - low) / step < 2.5:
        step /= 2 if f"{step:e}"[0] in "12" else 2.5
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def counts_of(low: float, high: float) -> list[int]:
    """Return round counts between low and high, which are given as log10(count + 1).

    The counts are 0 and powers of ten; if these are few, also 2 and 5 times the powers.
    """
    powers, room = [10**i for i in range(16)], 0.01 * (high - low)
    for counts in (powers, [k * n for n in powers for k in (1, 2, 5)]):
        found = [n for n in (0, *counts) if low - room <= math.log10(n + 1.0) <= high + room]
        if len(found) >= 3:
            return found
    ends = round(10**low - 1), round(10**high - 1)
    return found if len(found) == 2 else sorted({max(0, end) for end in ends})


def range_of(values: Sequence[float], margin: float = 0.06) -> tuple[float, float]:
    """Return bounds with a margin around the values."""
    low, high = min(values), max(values)
    room = (high - low) * margin or abs(high) * margin or 1.0
    return low - room, high + room
