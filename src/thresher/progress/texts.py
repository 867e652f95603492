"""Losses, durations and bars as text."""

from __future__ import annotations

import math


def loss_text(loss: float | None) -> str:
    """Return a loss in at most 9 characters (10 with a sign); empty if there is none.

    Examples
    --------
    >>> loss_text(0.25), loss_text(10.9), loss_text(931980.5), loss_text(1.2e-7)
    ('0.2500', '10.9000', '9.320e+05', '1.200e-07')
    """
    if loss is None:
        return ""
    size = abs(loss)
    plain = loss == 0 or 1e-3 <= size < 9999.99995 or not math.isfinite(loss)
    if plain:
        return f"{loss:.4f}"
    return f"{loss:.3e}" if 1e-99 <= size < 1e99 else f"{loss:.2e}"


def duration(seconds: float | None) -> str:
    """Return a duration in a short form.

    Examples
    --------
    >>> duration(42), duration(90), duration(7200)
    ('42 s', '1:30', '2 h 00')
    """
    if seconds is None:
        return ""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600} h {whole % 3600 // 60:02}"


def bar(share: float | None, width: int) -> str:
    """Return a bar of `width` characters; empty if the share is unknown, or the bar too short.

    Examples
    --------
    >>> bar(0.5, 12), bar(None, 12), bar(0.5, 4)
    ('[=====     ]', '', '')
    """
    if share is None or width < 8:
        return ""
    full = math.floor(min(max(share, 0.0), 1.0) * (width - 2))
    return "[" + "=" * full + " " * (width - 2 - full) + "]"
