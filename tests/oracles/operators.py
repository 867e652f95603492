"""The truncation operators (R-2.1 to R-2.3, A-01), entry by entry.

    T0(v, theta)    = v              if |v| >= theta, else 0
    T1(v, a, theta) = max(0, v - a)  if 0 <= v <= theta
                      min(0, v + a)  if -theta <= v <= 0
                      v              otherwise
    soft(v, a)      = sgn(v) * max(|v| - a, 0)         ( = T1(v, a, inf), R-2.3)

a >= 0; theta in [0, inf]. Both are cast to the dtype of v first.
"""

from __future__ import annotations

import numpy as np

from .result import Vector


def T0(v: Vector, theta: float) -> Vector:
    """Round the entries smaller than theta to zero (R-2.1)."""
    result = v.copy()
    result[np.abs(v) < v.dtype.type(theta)] = 0
    return result


def T1(v: Vector, a: float, theta: float) -> Vector:
    """Shrink the entries of magnitude up to theta towards zero by a (R-2.2)."""
    real = v.dtype.type
    zero = real(0)
    a = real(a)
    theta = real(theta)
    result = v.copy()
    positive = (v >= 0) & (v <= theta)
    negative = (v <= 0) & (v >= -theta)
    result[positive] = np.maximum(zero, v[positive] - a)
    result[negative] = np.minimum(zero, v[negative] + a)
    return result


def soft(v: Vector, a: float) -> Vector:
    """Shrink every entry towards zero by a (R-2.3)."""
    real = v.dtype.type
    shrunk: Vector = np.sign(v) * np.maximum(np.abs(v) - real(a), real(0))
    return shrunk
