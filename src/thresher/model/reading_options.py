"""The options of reading in the description of a model: what a file of a model may say.

Programs that read rows for a model trust these options. A file may come from a stranger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from thresher.data.formats import FORMATS
from thresher.data.read_options import KINDS, MISSING, is_delimiter, is_encoding, is_pair
from thresher.file_format import from_json

__all__ = ["checked_reading"]


def _is_flag(value: Any) -> bool:
    return isinstance(value, int) and value in (0, 1)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _numbers(first: int, last: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and first <= value <= last


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _are_different(value: Any) -> bool:
    return _are_texts(value) and len(set(value)) == len(value)


def _are_pairs(value: Any) -> bool:
    return _are_texts(value) and all(map(is_pair, value))


def _are_kinds(value: Any) -> bool:
    return isinstance(value, dict) and all(kind in KINDS for kind in value.values())


# For each option what it may be, besides None if it has a default that depends on the data.
_FLAGS = {"zero_based": False, "multilabel": False, "header": True, "quotes": True}
_VALUES: dict[str, tuple[Callable[[Any], bool], str, bool]] = {
    **{name: (_is_flag, "true or false", free) for name, free in _FLAGS.items()},
    "bits": (_numbers(1, 40), "a whole number from 1 to 40", True),
    "ngrams": (_numbers(1, 8), "a whole number from 1 to 8", False),
    "first": (_numbers(0, 1), "0 or 1", False),
    "format": (_one_of(*FORMATS), f"one of {', '.join(FORMATS)}", True),
    "missing": (_one_of(*MISSING), f"one of {', '.join(MISSING)}", True),
    "dates": (_one_of("parts"), "'parts'", True),
    "delimiter": (is_delimiter, "one character", True),
    "encoding": (is_encoding, "a known one", True),
    **{name: (_is_text, "text", True) for name in ("label", "weight", "label_separator")},
}
# Those that are saved as JSON in a text, which is empty if there is nothing.
_STRUCTURES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "interactions": (_are_pairs, "pairs of letters"),
    "text": (_are_texts, "a list of names"),
    "ignore": (_are_texts, "a list of names"),
    "columns": (_are_different, "a list of different names"),
    "frame_columns": (_are_texts, "a list of names"),
    "kinds": (_are_kinds, f"a kind for each column, of {', '.join(KINDS)}"),
}


def checked_reading(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with options of reading as training writes them now.

    Earlier versions wrote some values that mean the same, as ``ngrams=2.0``. Raises ValueError if
    an option is none that training writes or wrote.

    Parameters
    ----------
    parameters : mapping
        The parameters of a model, from its file.

    Examples
    --------
    >>> checked_reading({"bits": 18, "interactions": '["ab"]', "l1": 0.1, "ngrams": 2.0})
    {'bits': 18, 'interactions': '["ab"]', 'l1': 0.1, 'ngrams': 2}
    >>> checked_reading({"bits": 99})
    Traceback (most recent call last):
        ...
    ValueError: its option of reading 'bits' is 99; it must be a whole number from 1 to 40
    """
    found = {name: _as_now(name, value) for name, value in parameters.items()}
    for name, (is_valid, allowed, optional) in _VALUES.items():
        value = found.get(name)
        if name in found and not (is_valid(value) or (optional and value is None)):
            raise _wrong(name, value, allowed)
    for name, (is_valid, allowed) in _STRUCTURES.items():
        text = found.get(name, "")
        if text != "" and not is_valid(_loaded(text)):
            raise _wrong(name, text, allowed)
    return found


def _as_now(name: str, value: Any) -> Any:
    """Return an option as training writes it now; other values stay."""
    number = isinstance(value, float) and value.is_integer()
    if name in ("zero_based", "multilabel") and (value is None or (number and value in (0, 1))):
        return bool(value)
    if name == "ngrams" and (number or isinstance(value, bool)):
        return int(value)
    return value


def _loaded(text: Any) -> Any:
    """Return what a text in JSON says; None if it is not JSON, or an entry occurs twice."""
    try:
        return from_json(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _wrong(name: str, value: Any, allowed: str) -> ValueError:
    shown = repr(value[:40] if isinstance(value, str) else value)
    return ValueError(f"its option of reading {name!r} is {shown[:60]}; it must be {allowed}")
