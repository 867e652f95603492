"""Digests of the cells of tables: the same however the cells are converted later."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from thresher import _core
from thresher.data.columns import arrow, plain, single

__all__ = ["digest_of_table"]


def digest_of_table(table: Any, ignored: Collection[str]) -> int:
    """Return a digest of the cells of a table, and of the names of its columns.

    It does not depend on chunks, nor on the type of numbers and the kinds of columns which a
    reading asks for.

    Parameters
    ----------
    table : pyarrow.Table
    ignored : collection of str
        Columns that are left out.
    """
    chain: int = table.num_rows
    for name in table.column_names:
        if name not in ignored:
            chain = _mixed(chain, name.encode(errors="replace"))
            chain = _with_cells(chain, single(table.column(name)))
    return chain


def _mixed(chain: int, content: bytes) -> int:
    return int(_core.mix_keys(chain, _core.hash_name(content)))


def _bits(array: Any) -> bytes:
    """Return the bits of an array of true and false, without missing ones and without pandas."""
    cells = array.cast(arrow("reading tables").uint8())
    flags = np.frombuffer(cells.buffers()[1], np.uint8)[cells.offset : cells.offset + len(cells)]
    return np.packbits(flags).tobytes()


def _with_cells(chain: int, array: Any) -> int:
    """Return the chain after the cells of a column."""
    pa = arrow("reading tables")
    array = _stored(pa, array)
    kind, sort = array.type, _sort(pa.types, array.type)
    if sort == "null":
        return _mixed(chain, b"%d" % len(array))
    if sort == "other":  # slow, for types that are rare
        return _mixed(chain, repr(array.to_pylist()).encode(errors="replace"))
    if array.null_count:  # a missing cell may have any bytes
        chain = _mixed(chain, _bits(array.is_valid()))
        array = array.drop_null()
    if not len(array):
        return chain
    if sort == "struct":
        for column in array.flatten():
            chain = _with_cells(chain, column)
        return chain
    if sort == "list":
        chain = _mixed(chain, plain(pa.compute.list_value_length(array), np.int64).tobytes())
        return _with_cells(chain, array.flatten())
    if sort == "bits":
        return _mixed(chain, _bits(array))
    if sort == "bytes":
        return _with_bytes(chain, array)
    size = kind.bit_width // 8
    cells = array.buffers()[1].slice(array.offset * size, len(array) * size)
    return _mixed(chain, cells.to_pybytes())


def _stored(pa: Any, array: Any) -> Any:
    """Return a column whose type says how its cells are stored."""
    types = pa.types
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_map(array.type):
        pairs = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
        return array.cast(pa.list_(pairs))
    views = {"string_view": "string", "binary_view": "binary"}
    view = views.get(str(array.type))
    return array if view is None else array.cast(getattr(pa, view)())


def _sort(types: Any, kind: Any) -> str:
    """Return how the cells of a type are stored."""
    if types.is_null(kind):
        return "null"
    if types.is_struct(kind):
        return "struct"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    if types.is_boolean(kind):
        return "bits"
    small = types.is_string(kind) or types.is_binary(kind)
    if small or types.is_large_string(kind) or types.is_large_binary(kind):
        return "bytes"
    fixed = types.is_primitive(kind) or types.is_decimal(kind)
    return "fixed" if fixed or types.is_fixed_size_binary(kind) else "other"


def _with_bytes(chain: int, array: Any) -> int:
    """Return the chain after an array of strings or bytes, without missing ones."""
    large = str(array.type).startswith("large")
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, np.int64 if large else np.int32)
    ends = ends[array.offset : array.offset + len(array) + 1]
    chain = _mixed(chain, np.diff(ends).tobytes())
    first, last = int(ends[0]), int(ends[-1])
    return _mixed(chain, content.slice(first, last - first).to_pybytes() if last > first else b"")
