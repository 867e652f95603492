"""Features by name -> keys: the rule that all sources follow, and rows put together from parts.

A feature of the default namespace whose name is a plain decimal number below 2^64 has that number
as its key; every other one the 64-bit hash of its display name, "name" or "namespace^name".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
]

NamesWanted = bool | NDArray[np.uint64]
"""Which features' names are wanted: none, all, or those of these keys."""


@dataclass(frozen=True)
class FeatureEntries:
    """Some features of many rows: those of a column, or of all.

    `rows` is in increasing order; `names` gives the display names of some of the features by their
    places.
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


def join(names: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return offsets and bytes of strings laid end to end."""
    offsets = np.zeros(len(names) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, names), np.int64, len(names)), out=offsets[1:])
    return offsets, np.frombuffer(b"".join(names), np.uint8)


def hashed(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], prefix: bytes = b""
) -> NDArray[np.uint64]:
    """Return the hash of each string, as if the prefix stood before it."""
    return np.asarray(_core.hash_strings(offsets, data, prefix), dtype=np.uint64)


def fold(keys: NDArray[np.uint64], bits: int | None) -> NDArray[np.uint64]:
    """Return the lowest bits of keys; None: all."""
    return keys if bits is None else keys & np.uint64((1 << bits) - 1)


def rows_of_entries(
    parts: Sequence[FeatureEntries], rows: int, dtype: str, bits: int | None, names: NamesWanted
) -> dict[str, Any]:
    """Put the parts of each row together, in the order of the parts.

    Returns
    -------
    dict
        Arguments of `_core.make_block`: starts, keys, values, names, columns.
    """
    counts = [np.bincount(part.rows, minlength=rows) for part in parts]
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(np.sum(counts, axis=0) if counts else starts[1:], out=starts[1:])
    keys = np.empty(starts[-1], np.uint64)
    values = np.empty(starts[-1], np.float64)
    free = starts[:-1].copy()
    found: dict[int, bytes] = {}
    for part, count in zip(parts, counts, strict=True):
        first = np.cumsum(count) - count  # of each row, in the part
        at = (free - first)[part.rows] + np.arange(len(part.rows))
        folded = fold(part.keys, bits)
        keys[at] = folded
        values[at] = part.values
        free += count
        if names is not False:
            _collect(found, part, folded, names)
    if dtype == "float32":
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
        _check_range(values, parts, starts)
    return {
        "starts": starts,
        "keys": keys.view(np.int64),
        "values": values,
        "names": list(found.items()) if names is not False else None,
        "columns": 0 if bits is None else 1 << bits,
    }


def _collect(
    found: dict[int, bytes], part: FeatureEntries, keys: NDArray[np.uint64], names: NamesWanted
) -> None:
    distinct, at = np.unique(keys, return_index=True)
    if not isinstance(names, bool):
        wanted = np.isin(distinct, names)
        distinct, at = distinct[wanted], at[wanted]
    for key, name in zip(distinct.tolist(), part.names(at), strict=True):
        found.setdefault(key, name)


def _check_range(
    values: NDArray[Any], parts: Sequence[FeatureEntries], starts: NDArray[np.int64]
) -> None:
    if np.isfinite(values).all():
        return
    for part in parts:
        with np.errstate(over="ignore"):
            over = np.flatnonzero(~np.isfinite(part.values.astype(np.float32)))
        if len(over):
            name = part.names(over[:1])[0].decode("utf-8", "backslashreplace")
            raise BadCells(
                part.rows[over],
                name,
                lambda i, part=part, over=over: (  # type: ignore[misc]
                    f"{part.values[over[i]]} is too large for float32"
                ),
            )
