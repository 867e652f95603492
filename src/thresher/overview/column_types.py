"""Which types of the columns of Parquet and Arrow files can be used as features."""

from __future__ import annotations

from typing import Any

from thresher.data.columns import arrow, is_number, is_string

__all__ = ["is_list", "is_usable"]


def is_list(kind: Any) -> bool:
    """Tell whether an Arrow type holds lists or maps."""
    types = arrow("reading tables").types
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists or types.is_map(kind))


def is_usable(kind: Any) -> bool:
    """Tell whether `entries_of_column` makes features of an Arrow type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_usable(pa.list_(pa.string())), is_usable(pa.list_(pa.list_(pa.string())))
    (True, False)
    """
    types = arrow("reading tables").types
    if types.is_map(kind):
        return is_string(kind.key_type) and is_number(kind.item_type)
    if is_list(kind):
        item = kind.value_type
        numbers = types.is_floating(item) or types.is_integer(item)
        return bool(numbers or is_string(item) or types.is_dictionary(item))
    if types.is_temporal(kind):
        return not (types.is_duration(kind) or types.is_interval(kind))
    words = is_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    return bool(words or is_number(kind) or types.is_dictionary(kind) or types.is_null(kind))
