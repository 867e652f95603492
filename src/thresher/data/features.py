"""The key of a feature, which is the same in all sources, and rows made of entries.

If the name of a feature of the default namespace is a plain decimal number below 2^64, that number
is its key. The key of any other feature is the 64-bit hash of its name, "name" or "namespace^name".
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.bad_lines import BadCells

__all__ = [
    "FeatureEntries",
    "NamesWanted",
    "fold",
    "hashed",
    "join",
    "key_of",
    "rows_of_entries",
    "space_of",
]

NamesWanted = bool | NDArray[np.uint64]
"""Which features need names: False for none, True for all, or an array of keys."""


@dataclass(frozen=True)
class FeatureEntries:
    """Features of several rows, for example those of one column of a table.

    Entry i is a feature of row ``rows[i]``, with ``keys[i]`` and ``values[i]``. `rows` is in
    increasing order. `names` takes indices of entries and returns their names.
    """

    rows: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: NDArray[np.float64]
    names: Callable[[NDArray[np.intp]], list[bytes]]


def key_of(name: bytes) -> int:
    """Return the key of a feature of the default namespace.

    Examples
    --------
    >>> key_of(b"12")
    12
    """
    plain = name.isdigit() and (name[:1] != b"0" or name == b"0") and len(name) <= 20
    if plain and (number := int(name)) < 1 << 64:
        return number
    return int(_core.hash_name(name))


def space_of(name: str, columns: Container[str] = ()) -> str:
    """Return the namespace of a feature, or its column if it is one of these; else "".

    Examples
    --------
    >>> space_of("ad^sport"), space_of("colour=red", ["colour"]), space_of("age")
    ('ad', 'colour', '')
    """
    space, sign, _ = name.partition("^")
    column, equals, _ = name.partition("=")
    if equals and column in columns:
        return column
    return space if sign else ""


def join(names: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the offsets and the bytes of concatenated strings."""
    offsets = np.zeros(len(names) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, names), np.int64, len(names)), out=offsets[1:])
    return offsets, np.frombuffer(b"".join(names), np.uint8)


def hashed(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], prefix: bytes = b""
) -> NDArray[np.uint64]:
    """Return the hash of the prefix and each string."""
    return np.asarray(_core.hash_strings(offsets, data, prefix), dtype=np.uint64)


def fold(keys: NDArray[np.uint64], bits: int | None) -> NDArray[np.uint64]:
    """Return the lowest `bits` bits of keys; None: all bits."""
    return keys if bits is None else keys & np.uint64((1 << bits) - 1)


def rows_of_entries(
    columns: Sequence[FeatureEntries], rows: int, dtype: str, bits: int | None, names: NamesWanted
) -> dict[str, Any]:
    """Make rows of the entries of several columns, in the order of the columns.

    Returns
    -------
    dict
        Arguments of `_core.make_block`: starts, keys, values, names, columns.
    """
    counts = [np.bincount(column.rows, minlength=rows) for column in columns]
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(np.sum(counts, axis=0) if counts else starts[1:], out=starts[1:])
    keys = np.empty(starts[-1], np.uint64)
    values = np.empty(starts[-1], np.float64)
    free = starts[:-1].copy()
    found: dict[int, bytes] = {}
    if not isinstance(names, bool):
        names = np.unique(names)  # sorted once for all columns
    for column, count in zip(columns, counts, strict=True):
        first = np.cumsum(count) - count  # index of each row's first entry in the column
        at = (free - first)[column.rows] + np.arange(len(column.rows))
        folded = fold(column.keys, bits)
        keys[at] = folded
        values[at] = column.values
        free += count
        if names is not False:
            _collect_names(found, column, folded, names)
    if dtype == "float32":
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
        _check_range(values, columns)
    return {
        "starts": starts,
        "keys": keys.view(np.int64),
        "values": values,
        "names": list(found.items()) if names is not False else None,
        "columns": 0 if bits is None else 1 << bits,
    }


def _collect_names(
    found: dict[int, bytes], column: FeatureEntries, keys: NDArray[np.uint64], names: NamesWanted
) -> None:
    """Add the names of the features of a column; `names` is in increasing order."""
    distinct, at = np.unique(keys, return_index=True)
    if not isinstance(names, bool):
        place = np.searchsorted(names, distinct)
        wanted = place < np.searchsorted(names, distinct, side="right")
        distinct, at = distinct[wanted], at[wanted]
    for key, name in zip(distinct.tolist(), column.names(at), strict=True):
        found.setdefault(key, name)


def _check_range(values: NDArray[Any], columns: Sequence[FeatureEntries]) -> None:
    """Raise BadCells if a value is too large for float32."""
    if np.isfinite(values).all():
        return
    for column in columns:
        with np.errstate(over="ignore"):
            over = np.flatnonzero(~np.isfinite(column.values.astype(np.float32)))
        if len(over):
            name = column.names(over[:1])[0].decode("utf-8", "backslashreplace")
            raise BadCells(
                column.rows[over],
                name,
                lambda i, column=column, over=over: (  # type: ignore[misc]
                    f"{column.values[over[i]]} is too large for float32"
                ),
            )
