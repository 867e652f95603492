"""Numbers, times and objects as text."""

from __future__ import annotations

import json
import math
from typing import Any

from thresher.progress.texts import duration as duration


def as_json(facts: dict[str, Any]) -> str:
    """Return one line of JSON; infinite numbers and NaN become null."""
    known = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }
    return json.dumps(known, allow_nan=False)


def size(count: float) -> str:
    """Return a number of bytes with its unit.

    Examples
    --------
    >>> size(12), size(3400)
    ('12 B', '3.4 kB')
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def counted(number: int, what: str) -> str:
    """Return a number and its noun, in the plural if it is not 1.

    Parameters
    ----------
    number : int
    what : str
        The noun in the singular.

    Examples
    --------
    >>> counted(1, "model"), counted(1200, "model")
    ('1 model', '1,200 models')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
