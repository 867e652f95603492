"""Makes features of the columns of Arrow tables.

========================  =======================================================================
column                    features
========================  =======================================================================
numbers, booleans         one named as the column, with that value
strings, dictionaries     "column=value" with value 1
dates (option `dates`)    "column.year=2024", "column.month=3", "column.weekday=monday" and
                          "column.hour=17", with value 1
text (option `text`)      "column^word" for each word, in lower case; "column^two words" and so on
list of strings           "column^value" with value 1 for each
list of integers          "column^7" with value 1 for each
list of floats            "column^0", "column^1", ... with these values: a dense vector
map of string to number   "column^key" with that value
========================  =======================================================================

"=" means that the cell is the value, "^" that the cell contains it. The key of both is the hash
with "^", as in VW text. A null makes no feature, unless the option `missing` says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.bad_lines import BadCells
from thresher.data.features import FeatureEntries, hashed, join, key_of
from thresher.errors import ParameterError, setting

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "arrow",
    "entries_of_column",
    "finite",
    "flattened",
    "integers",
    "is_number",
    "is_string",
    "numbers_of",
    "plain",
    "single",
    "strings",
    "words_of",
]

_NOT_IN_WORDS = r"[^\p{L}\p{N}_\x00-\x7f]"  # characters outside ASCII that are not part of words
_WORD_BYTES = np.array([byte >= 128 or chr(byte).isalnum() or byte == 95 for byte in range(256)])


def arrow(what: str) -> Any:
    """Import `pyarrow`; if it is missing, raise an error that says how to install it."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise ParameterError(
            f"{what} needs the package pyarrow: pip install 'thresher[arrow]'"
        ) from None
    return pyarrow


def integers(values: NDArray[Any]) -> Any:
    """Return an Arrow array of integers.

    Unlike `pyarrow.array` and `pyarrow.scalar`, this does not import pandas, which takes 50 MiB
    and a third of a second.
    """
    pa = arrow("reading tables")
    values = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def plain(column: Any, dtype: type[np.int64] | type[np.float64]) -> NDArray[Any]:
    """Return a column of numbers or booleans without nulls as an array, without pandas."""
    pa = arrow("reading tables")
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    column = column.cast(pa.int64() if dtype is np.int64 else pa.float64(), safe=False)
    if not len(column):
        return np.zeros(0, dtype)
    return np.frombuffer(column.buffers()[1], dtype)[column.offset : column.offset + len(column)]


def strings(values: Sequence[str]) -> Any:
    """Return an Arrow array of strings, without importing pandas."""
    pa = arrow("reading tables")
    offsets, data = join([value.encode() for value in values])
    buffers = pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)
    return pa.StringArray.from_buffers(len(values), *buffers)


def single(column: Any) -> Any:
    """Return a column as one array instead of chunks."""
    pa = arrow("reading tables")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
    return column


def entries_of_column(
    name: str,
    column: pa.Array,
    text: bool,
    ngrams: int,
    categorical: bool,
    missing: str | None = None,
    dates: str | None = None,
) -> list[FeatureEntries]:
    """Return the features of a column.

    Parameters
    ----------
    name : str
    column : pyarrow.Array
    text : bool
        Whether its strings are text; each word is a feature.
    ngrams : int
        Sequences of up to `ngrams` words of text are features, too.
    categorical : bool
        Whether its numbers are categories.
    missing : {"error", "zero", "indicator"}, optional
        What nulls and NaN are: an error, no feature, or the feature "column=missing". By default
        nulls are no features, and NaN is an error.
    dates : {"parts"}, optional
        "parts": year, month, weekday and hour of dates and times are categories.
    """
    if missing is not None:
        from thresher.data.missing import without_missing

        column, gone = without_missing(name, column, missing)
        if len(gone):
            present = entries_of_column(name, column, text, ngrams, categorical, dates=dates)
            return present if missing == "zero" else [*present, _indicator(name, gone)]
    pa = arrow("reading tables")
    types, kind = pa.types, column.type
    if types.is_null(kind):
        return []
    if text:
        if not is_string(kind) and not (types.is_dictionary(kind) and is_string(kind.value_type)):
            raise ParameterError(f"text column '{name}' has type {kind}; it must hold strings")
        return _of_text(name, column.cast(pa.large_string()), ngrams)
    if types.is_map(kind):
        return [_of_map(name, column)]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [_of_lists(name, column)]
    if types.is_dictionary(kind):
        return [_of_dictionary(name, column)]
    if is_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return [_of_strings(name, *_present(column))]
    if is_number(kind):
        if categorical:
            return [_of_strings(name, *_present(column.cast(pa.large_string())))]
        return [_of_numbers(name, column)]
    if types.is_temporal(kind) and not types.is_duration(kind) and not types.is_interval(kind):
        if dates is None:
            raise ParameterError(
                f"column '{name}' holds dates or times ({kind})",
                hint=(setting("dates", "parts"), " makes features of year, month, weekday and "
                      "hour; ", setting("ignore"), " leaves it out"),
            )  # fmt: skip
        from thresher.data.dates import parts_of_dates

        parts = parts_of_dates(column)
        return [_of_strings(f"{name}.{part}", *_present(found)) for part, found in parts]
    raise ParameterError(
        f"column '{name}' has type {kind}, which cannot be used as features",
        hint=("leave it out with ", setting("ignore"), ", or turn it into numbers or strings"),
    )


def numbers_of(name: str, column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows and values of the numbers that are not null; raise for infinite ones."""
    rows, present = _present(column)
    return rows, finite(name, rows, present)


def is_string(kind: Any) -> bool:
    """Tell whether an Arrow type holds strings."""
    types = arrow("reading tables").types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def is_number(kind: Any) -> bool:
    """Tell whether an Arrow type holds numbers or booleans."""
    types = arrow("reading tables").types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _present(column: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the rows whose value is not null, and their values."""
    if not column.null_count:
        return np.arange(len(column)), column
    return np.flatnonzero(plain(column.is_valid(), np.int64)), column.drop_null()


def finite(name: str, rows: NDArray[np.int64], column: pa.Array) -> NDArray[np.float64]:
    """Return the numbers of a column without nulls; raise BadCells if one is not finite.

    `rows` holds the row of each number, for the error.
    """
    values = plain(column, np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise BadCells(rows[bad], name, lambda i: f"{values[bad[i]]} is not a finite number")
    return values


def _of_numbers(name: str, column: pa.Array) -> FeatureEntries:
    rows, values = numbers_of(name, column)
    shown = name.encode()
    return FeatureEntries(
        rows,
        np.full(len(rows), key_of(shown), np.uint64),
        values,
        lambda at: [shown] * len(at),
    )


def _strings(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8], pa.Array]:
    """Return offsets and bytes of strings without nulls, and the array that holds them."""
    pa = arrow("reading tables")
    kind = column.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not wide and not pa.types.is_string(kind) and not pa.types.is_binary(kind):
        column, wide = column.cast(pa.large_string()), True
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8), column
    stored = np.frombuffer(offsets, np.int64 if wide else np.int32)
    ends = stored[column.offset : column.offset + len(column) + 1].astype(np.int64)
    empty = data is None or not data.size
    return ends, np.zeros(0, np.uint8) if empty else np.frombuffer(data, np.uint8), column


def _indicator(name: str, rows: NDArray[np.int64]) -> FeatureEntries:
    key, shown = key_of(f"{name}^missing".encode()), f"{name}=missing".encode()
    keys = np.full(len(rows), key, np.uint64)
    return FeatureEntries(rows, keys, np.ones(len(rows)), lambda at: [shown] * len(at))


def _names(prefix: bytes, column: pa.Array, at: NDArray[np.intp]) -> list[bytes]:
    picked = column.take(integers(at)).to_pylist()
    return [prefix + (one if isinstance(one, bytes) else one.encode()) for one in picked]


def _of_strings(
    name: str,
    rows: NDArray[np.int64],
    column: pa.Array,
    values: NDArray[np.float64] | None = None,
    sign: str = "=",
) -> FeatureEntries:
    prefix, shown = f"{name}^".encode(), f"{name}{sign}".encode()
    offsets, data, column = _strings(column)
    if values is None:
        values = np.ones(len(rows))
    return FeatureEntries(
        rows, hashed(offsets, data, prefix), values, lambda at: _names(shown, column, at)
    )


def _of_dictionary(name: str, column: pa.Array) -> FeatureEntries:
    prefix, shown = f"{name}^".encode(), f"{name}=".encode()
    if column.dictionary.null_count:  # a null in the dictionary is not counted in the column
        return _of_strings(name, *_present(column.dictionary_decode()))
    rows, present = _present(column)
    offsets, data, values = _strings(present.dictionary)
    places = plain(present.indices, np.int64)
    keys = hashed(offsets, data, prefix)[places]
    return FeatureEntries(
        rows, keys, np.ones(len(rows)), lambda at: _names(shown, values, places[at])
    )


def _of_text(name: str, column: pa.Array, ngrams: int) -> list[FeatureEntries]:
    pa = arrow("reading tables")
    rows, flat = _words(column)
    parts = [_of_strings(name, rows, flat, sign="^")]
    grams, space = flat, strings([" "])[0].cast(pa.large_string())
    for length in range(2, ngrams + 1):
        count = len(flat) - length + 1
        if count <= 0:
            break
        # grams[i] holds the words i to i + length - 1. Those across two rows are dropped below.
        grams = pa.compute.binary_join_element_wise(
            grams.slice(0, count), flat.slice(length - 1), space
        )
        same = rows[:count] == rows[length - 1 :]
        found = grams.take(integers(np.flatnonzero(same)))
        parts.append(_of_strings(name, rows[:count][same], found, sign="^"))
    return parts


def _words(column: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the row of each word, and the words, in lower case.

    Words are found by bytes. First, characters outside ASCII that are not part of words become
    spaces; then all bytes outside ASCII are part of words. On ASCII, a split by a regular
    expression takes twice as long.
    """
    pa = arrow("reading tables")
    rows, present = _present(column)
    lower = pa.compute.utf8_lower(present)
    if not pa.compute.all(pa.compute.string_is_ascii(lower)).as_py():
        lower = pa.compute.replace_substring_regex(lower, pattern=_NOT_IN_WORDS, replacement=" ")
    offsets, data, _ = _strings(lower)
    data = data[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    inside = _WORD_BYTES[data]
    begins = np.ones(len(data) + 1, bool)  # whether the byte before is not part of the same word
    begins[1:] = ~inside
    begins[offsets] = True
    firsts = np.flatnonzero(inside & begins[:-1])
    places = np.concatenate([[0], np.cumsum(inside)])  # offset of each byte among bytes of words
    ends = np.append(places[firsts], places[-1]).astype(np.int64)
    words = pa.LargeStringArray.from_buffers(
        len(firsts), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data[inside]))
    )
    return rows[np.searchsorted(offsets, firsts, side="right") - 1], words


def words_of(column: pa.Array) -> list[str]:
    """Return the words of all rows of a text column, in lower case."""
    words: list[str] = _words(column.cast(arrow("reading tables").large_string()))[1].to_pylist()
    return words


def flattened(lists: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the row of each item, and the items."""
    pc = arrow("reading tables").compute
    rows, lengths = _present(pc.list_value_length(lists))
    return np.repeat(rows, plain(lengths, np.int64)), pc.list_flatten(lists)


def _of_lists(name: str, column: pa.Array) -> FeatureEntries:
    pa = arrow("reading tables")
    rows, items = flattened(column)
    kind = items.type
    if pa.types.is_floating(kind):
        first = np.searchsorted(rows, rows)  # index of the first item of the same row
        places = np.arange(len(rows)) - first
        there, items = _present(items)
        rows, places = rows[there], places[there]
        return _of_vector(name, rows, places, finite(name, rows, items))
    if pa.types.is_dictionary(kind) or pa.types.is_integer(kind):
        items = items.cast(pa.large_string())
    elif not is_string(kind):
        raise ParameterError(
            f"column '{name}' has type {column.type}; lists must hold strings, integers or floats",
            hint=("leave it out with ", setting("ignore")),
        )
    there, items = _present(items)
    return _of_strings(name, rows[there], items, sign="^")


def _of_vector(
    name: str, rows: NDArray[np.int64], places: NDArray[np.int64], values: NDArray[np.float64]
) -> FeatureEntries:
    shown = [f"{name}^{place}".encode() for place in range(int(places.max(initial=-1)) + 1)]
    keys = hashed(*join(shown))[places]
    return FeatureEntries(rows, keys, values, lambda at: [shown[place] for place in places[at]])


def _of_map(name: str, column: pa.Array) -> FeatureEntries:
    pa = arrow("reading tables")
    kind = column.type
    if not is_string(kind.key_type) or not is_number(kind.item_type):
        raise ParameterError(
            f"column '{name}' has type {kind}; maps must hold strings and numbers",
            hint=("leave it out with ", setting("ignore")),
        )
    pairs = pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
    rows, flat = flattened(column.cast(pairs))
    there, values = _present(flat.field("value"))
    keys = flat.field("key").take(integers(there))
    return _of_strings(name, rows[there], keys, finite(name, rows[there], values), sign="^")
