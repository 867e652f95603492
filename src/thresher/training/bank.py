"""How many lanes the rule one-pass combines, by the memory and the time that they need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIMIT = 2**31  # bytes of the weights of all outputs
MOST_OUTPUTS = 16  # with more, twelve lanes take too much time


def lanes_for(params: Mapping[str, Any], outputs: int, width: int) -> int:
    """Return the value of lanes="auto": 12, or 4 if 12 lanes need too much memory or time.

    `width` is the number of features, if it is known.
    """
    fits = bytes_of(12, str(params["dtype"]), outputs, width) <= LIMIT
    return 12 if fits and outputs <= MOST_OUTPUTS else 4


def bytes_of(lanes: int, dtype: str, outputs: int, width: int) -> int:
    """Return the bytes of the weights of all outputs in a dense store."""
    size = 4 if dtype == "float32" else 8
    cell = (outputs * (2 * lanes + 2) + 2) * size + 8
    line = 64
    return width * (line if cell <= line else -(-cell // line) * line)


def fewer_lanes(outputs: int) -> str:
    """Return the text of the note that four lanes are used."""
    why = f"there are {outputs:,} outputs" if outputs > MOST_OUTPUTS else "12 need more than 2 GiB"
    return f"one-pass combines 4 lanes, because {why}; lanes=12 is a little more accurate"
