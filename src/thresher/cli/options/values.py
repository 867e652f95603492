"""Values that options give as text: times, sizes, classes and class weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from thresher.errors import ParameterError

_SECONDS = {"s": 1, "m": 60, "h": 3600, None: 1}
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def seconds_of(text: str, option: str = "--every") -> float:
    """Return the seconds of a time such as 60s, 0.1s, 5m or 2h.

    Examples
    --------
    >>> seconds_of("5m")
    300.0
    """
    found = re.fullmatch(r"(\d+(?:\.\d*)?)(s|m|h)?", text)
    if found is None:
        raise ParameterError(f"{option} must be a time such as 60s, 0.1s or 5m; got {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


def stages_of(text: str | None) -> int | None:
    """Return the number of stages that --every gives on a cluster."""
    if text is None:
        return None
    if not text.isdigit() or int(text) < 1:
        raise ParameterError(f"--every is a number of stages on a cluster; got {text!r}")
    return int(text)


def bytes_of(text: str | None) -> int | None:
    """Return the bytes of a size such as 500M, 4G or 1e9.

    Examples
    --------
    >>> bytes_of("1.5G")
    1500000000
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*([kMGT]?)B?", text.strip())
    if found is None or float(found[1]) * _BYTES[found[2]] < 1:
        raise ParameterError(f"--memory must be a size such as 500M or 4G; got {text!r}")
    return int(float(found[1]) * _BYTES[found[2]])


def classes_of(text: str | None) -> Sequence[Any] | None:
    """Return a list of classes: numbers, or words if one of them is not a number.

    Examples
    --------
    >>> classes_of("1,2"), classes_of("1,cat")
    ([1.0, 2.0], ['1', 'cat'])
    """
    if text is None:
        return None
    words = text.split(",")
    numbers = [_number_or_word(word) for word in words]
    return words if any(isinstance(number, str) for number in numbers) else numbers


def class_weights_of(text: str) -> dict[Any, float] | str:
    """Return the weights by class, or "balanced".

    Examples
    --------
    >>> class_weights_of("1:2,cat:0.5")
    {1.0: 2.0, 'cat': 0.5}
    """
    if text == "balanced":
        return text
    found: dict[Any, float] = {}
    for entry in text.split(","):
        word, _, weight = entry.rpartition(":")
        label = _number_or_word(word)
        try:
            found[label] = float(weight)
        except ValueError:
            found[label] = -1.0
        if not word or not 0 <= found[label] < float("inf"):
            raise ParameterError(
                f"--class-weight must be balanced, or CLASS:WEIGHT,..., weights >= 0; got {text!r}"
            )
    return found


def _number_or_word(word: str) -> Any:
    try:
        return float(word)
    except ValueError:
        return word
