"""Arrow tables whose strings are views, as polars writes them into files."""

from __future__ import annotations

from typing import Any

from thresher.data.columns import arrow

__all__ = ["without_views"]


def without_views(table: Any) -> Any:
    """Return an Arrow table in which no string is a view: Arrow has few functions for views.

    Strings in lists, maps and dictionaries are not views either.

    Parameters
    ----------
    table : pyarrow.Table
    """
    pa = arrow("reading tables")
    for at, field in enumerate(table.schema):
        kind = _plain(pa, field.type)
        if kind != field.type:
            column = _cast(pa, table.column(at), kind)
            table = table.set_column(at, field.with_type(kind), column)
    return table


def _plain(pa: Any, kind: Any) -> Any:
    """Return a type without views."""
    types, name = pa.types, str(kind)
    if name in ("string_view", "binary_view"):
        return pa.large_string() if name == "string_view" else pa.large_binary()
    made = kind
    if types.is_dictionary(kind):
        made = pa.dictionary(kind.index_type, _plain(pa, kind.value_type), kind.ordered)
    elif types.is_map(kind):
        made = pa.map_(_plain(pa, kind.key_type), _plain(pa, kind.item_type))
    elif types.is_list(kind):
        made = pa.list_(_plain(pa, kind.value_type))
    elif types.is_large_list(kind):
        made = pa.large_list(_plain(pa, kind.value_type))
    elif types.is_fixed_size_list(kind):
        made = pa.list_(_plain(pa, kind.value_type), kind.list_size)
    return made if "_view" in name else kind


def _cast(pa: Any, column: Any, kind: Any) -> Any:
    """Return a column of a table as another type."""
    if not pa.types.is_dictionary(kind):
        return column.cast(kind)
    chunks = [
        pa.DictionaryArray.from_arrays(
            chunk.indices, chunk.dictionary.cast(kind.value_type), ordered=kind.ordered
        )
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, kind)
