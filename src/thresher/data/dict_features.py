"""The features of a row that is given as a dict {name: value}.

========================  =======================================================================
value                     features
========================  =======================================================================
number, boolean           one with the name, and that value
string                    "name^string" with value 1
list of strings           "name^string" with value 1 for each: a bag of words
list of whole numbers     "name^7" with value 1 for each
list of other numbers     "name^0", "name^1", ... with these values
None                      none
========================  =======================================================================

A name is a string. A whole number, or a string of digits, is the number of the feature.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from thresher.data.bad_lines import BadCells

__all__ = ["features_of"]

_EXPECTED = "expected a number, string, boolean, None or a list of words"


def features_of(row: int, name: Any, value: Any) -> list[tuple[bytes, float]]:
    """Return the features, by name, and values that an item of a dict makes.

    Parameters
    ----------
    row : int
        The number of the row, for errors.
    name, value : object

    Raises
    ------
    BadCells
        If the name or the value is of another type.

    Examples
    --------
    >>> features_of(0, "age", 31), features_of(0, "text", ["a", "b"])
    ([(b'age', 31.0)], [(b'text^a', 1.0), (b'text^b', 1.0)])
    """
    if value is None:
        return []
    try:
        shown = _name_of(name)
        if isinstance(value, str):
            return [(shown + b"^" + value.encode(), 1.0)]
        if isinstance(value, numbers.Real | np.bool_):
            return [(shown, float(value))]
        if isinstance(value, list | tuple):
            return _of_list(shown, value)
        what = f"{_EXPECTED}; found {type(value).__name__}"
    except OverflowError:
        what = "the number is too large"
    except UnicodeEncodeError:
        what = "its text is not valid Unicode"
    except TypeError as error:
        what = str(error)
    text = name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
    raise BadCells(np.array([row]), text, lambda _: what)


def _name_of(name: Any) -> bytes:
    if isinstance(name, str):
        return name.encode()
    if isinstance(name, bytes):
        return name
    if _is_number(name, numbers.Integral):
        return str(name).encode()
    raise TypeError(f"a name must be a string or a whole number; found {type(name).__name__}")


def _of_list(shown: bytes, items: Sequence[Any]) -> list[tuple[bytes, float]]:
    present = [(i, item) for i, item in enumerate(items) if item is not None]
    if all(isinstance(item, str) for _, item in present):
        return [(shown + b"^" + item.encode(), 1.0) for _, item in present]
    for _, item in present:
        if not _is_number(item, numbers.Real):
            raise TypeError(
                f"a list must hold only strings or only numbers; found {type(item).__name__}"
            )
    if all(_is_number(item, numbers.Integral) for _, item in present):
        return [(shown + f"^{int(item)}".encode(), 1.0) for _, item in present]
    return [(shown + f"^{i}".encode(), float(item)) for i, item in present]


def _is_number(item: Any, kind: type) -> bool:
    """Tell whether an item is a number of this kind; True and False are not."""
    return isinstance(item, kind) and not isinstance(item, bool)
