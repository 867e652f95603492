"""Reads labels from columns of tables: one per row, or any number.

========================================  ======================================================
column                                    labels of a row
========================================  ======================================================
numbers                                   one; null: none
strings                                   one; with `multilabel` several: ``sport;politics``
lists of numbers or strings               any number
several columns of 0 and 1                the names of the columns with 1
========================================  ======================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.bad_lines import BadCells
from thresher.data.columns import (
    arrow,
    finite,
    flattened,
    integers,
    is_number,
    is_string,
    numbers_of,
    plain,
)
from thresher.data.label_checks import NO_LABEL, missing_labels
from thresher.data.table_files import kind_of_strings, typed
from thresher.errors import ParameterError

__all__ = ["SEPARATORS", "columns_as_labels", "kind_of_labels", "labels_of", "separator_of"]

SEPARATORS = "|;,"
_RARE = 0.1  # a separator is in this share of the cells that have one, at least


def labels_of(name: str, column: Any, separator: str | None, kind: str | None) -> dict[str, Any]:
    """Return labels as arguments of `_core.make_block`, or "text_labels", or "text_sets".

    Parameters
    ----------
    name : str
        The column's name.
    column : pyarrow.Array
    separator : str or None
        What separates the labels in a string; None: a string is one label.
    kind : str or None
        "number": labels in strings are numbers.
    """
    pa = arrow("reading tables")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    type = column.type
    if is_string(type):
        if separator is None:
            return {"text_labels": np.array(column.to_pylist(), object)}
        rows, items = _split(column, separator)
        return _sets(name, rows, items, len(column), kind == "number")
    if _is_list(type):
        rows, items = flattened(column)
        if items.null_count:
            bad = rows[plain(items.is_null(), np.int64) == 1]
            raise BadCells(np.unique(bad), name, lambda _: "a label in the list is null")
        if pa.types.is_dictionary(items.type):
            items = items.cast(items.type.value_type)
        if is_number(items.type):
            return {
                "label_starts": _starts(rows, len(column)),
                "label_values": finite(name, rows, items),
            }
        if is_string(items.type):
            return _sets(name, rows, items, len(column), False)
    if not is_number(type) and not pa.types.is_null(type):
        raise ParameterError(f"labels must be numbers or strings; column '{name}' has type {type}")
    labels = np.full(len(column), np.nan)
    if not pa.types.is_null(type):
        rows, values = numbers_of(name, column)
        labels[rows] = values
    return {"labels": labels}


def columns_as_labels(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return "text_sets": the labels of a row are the names of the columns with 1 in it.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array
        Columns of 0 and 1, of booleans, or null for 0.
    """
    count = len(next(iter(columns.values())))
    names = np.array(list(columns), object)
    marks = np.zeros((count, len(columns)), bool)
    for at, (name, column) in enumerate(columns.items()):
        if not is_number(column.type) and not arrow("reading").types.is_null(column.type):
            raise ParameterError(f"column '{name}' of labels must hold 0 and 1: {column.type}")
        if not is_number(column.type):  # only nulls
            continue
        rows, values = numbers_of(name, column)
        bad = np.flatnonzero((values != 0) & (values != 1))
        if len(bad):
            raise BadCells(
                rows[bad], name,
                lambda i, values=values, bad=bad: f"expected 0 or 1; found {values[bad[i]]:g}",  # type: ignore[misc]
            )  # fmt: skip
        marks[rows, at] = values == 1
    rows, places = np.nonzero(marks)
    return {"text_sets": (_starts(rows, count), names[places])}


def separator_of(column: Any) -> str | None:
    """Return what separates labels in strings: ``|``, ``;`` or ``,``; None: nothing does.

    Examples
    --------
    >>> import pyarrow as pa
    >>> separator_of(pa.array(["a;b, c", "a", "b, c", None]))
    ';'
    """
    pa = arrow("reading tables")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_string(column.type):
        return None
    column = column.drop_null()
    any_of = pa.compute.match_substring_regex(column, pattern=f"[{SEPARATORS}]")
    having = int(plain(any_of, np.int64).sum())
    for separator in SEPARATORS:
        found = pa.compute.match_substring(column, pattern=separator)
        if having and int(plain(found, np.int64).sum()) >= _RARE * having:
            return separator
    return None


def kind_of_labels(column: Any, separator: str) -> str:
    """Return the kind of the labels in strings: "number" if all are numbers, else "string"."""
    if not is_string(column.type):
        return "string"
    _, items = _split(column, separator)
    return "number" if kind_of_strings(items) == "number" else "string"


def _is_list(type: Any) -> bool:
    types = arrow("reading tables").types
    return bool(types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type))


def _split(column: Any, separator: str) -> tuple[NDArray[np.int64], Any]:
    """Return the row of each label, and the labels, without spaces around them and empty ones."""
    pa = arrow("reading tables")
    rows, items = flattened(pa.compute.split_pattern(column.cast(pa.string()), pattern=separator))
    items = pa.compute.utf8_trim_whitespace(items)
    kept = np.flatnonzero(plain(pa.compute.binary_length(items), np.int64))
    return rows[kept], items.take(integers(kept))


def _starts(rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts


def _sets(
    name: str, rows: NDArray[np.int64], items: Any, count: int, numeric: bool
) -> dict[str, Any]:
    """Return the labels of each row, each label once."""
    codes = plain(items.dictionary_encode().indices, np.int64)
    pairs = rows * (codes.max(initial=0) + 1) + codes
    _, first = np.unique(pairs, return_index=True)
    if len(first) < len(rows):  # a row has a label twice
        kept = np.sort(first)
        rows, items = rows[kept], items.take(integers(kept))
    starts = _starts(rows, count)
    if not numeric:
        return {"text_sets": (starts, np.array(items.to_pylist(), object))}
    try:
        values = typed(name, items, "number")
    except BadCells as bad:
        raise BadCells(rows[bad.rows], name, bad.what, bad.hint) from None
    return {"label_starts": starts, "label_values": finite(name, rows, values)}


def weights_of(name: str, column: Any) -> NDArray[np.float64]:
    """Return the weights of rows; raise BadCells if one is missing or negative."""
    if column.null_count == len(column) > 0:
        raise BadCells(np.arange(len(column)), name, lambda _: "the weight is missing")
    rows, values = numbers_of(name, column)
    weights = np.full(len(column), np.nan)
    weights[rows] = values
    bad = np.flatnonzero(~(weights >= 0))
    if len(bad):
        raise BadCells(bad, name, lambda i: f"a weight must be 0 or more; found {weights[bad[i]]}")
    return weights


def refuse_missing(labels: tuple[str, ...], fields: dict[str, Any]) -> None:
    """Raise BadCells if rows have no label."""
    found = fields.get("text_labels", fields.get("labels"))
    if found is None or len(labels) != 1:
        return
    none = missing_labels(found)
    if none.any():
        raise BadCells(np.flatnonzero(none), labels[0], lambda _: NO_LABEL)
