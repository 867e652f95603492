"""Frames: pandas, polars, Arrow tables, and objects with the Arrow C stream or `__dataframe__`.

A frame of numbers becomes a matrix. A frame with words (strings, categories, dates, lists) becomes
an Arrow table, whose columns make the same features as those of a Parquet file.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.arrow_views import without_views
from thresher.data.columns import arrow, is_number, plain, single
from thresher.errors import DataWarning, ParameterError, setting

__all__ = [
    "MixedColumnWarning",
    "arrow_table",
    "cells_of",
    "columns_of",
    "has_words",
    "is_frame",
    "is_labelled_frame",
    "matrix_of",
    "opened",
    "outside",
    "select",
    "sparse_columns",
    "unique_names",
]

_NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean", "empty")


class MixedColumnWarning(DataWarning):
    """A column of a frame holds values of several types; all of them are read as strings."""


def is_frame(X: Any) -> bool:
    """Tell whether X is a frame; no package is imported.

    Examples
    --------
    >>> import numpy, pyarrow
    >>> is_frame(pyarrow.table({"a": [1]})), is_frame(numpy.zeros((1, 1))), is_frame(["a.csv"])
    (True, False, False)
    """
    if isinstance(X, type) or hasattr(X, "tocsr") or isinstance(X, np.ndarray):
        return False
    if _polars_type(X):
        return _polars_type(X) in ("DataFrame", "LazyFrame")
    if hasattr(X, "__dataframe__") or _is_pandas(X):
        return True
    chunks = hasattr(X, "combine_chunks") and not hasattr(X, "schema")
    return hasattr(X, "__arrow_c_stream__") and getattr(X, "ndim", 2) != 1 and not chunks


def is_labelled_frame(X: Any) -> bool:
    """Tell whether X is a tuple of a frame and its labels, and perhaps weights."""
    return (
        isinstance(X, tuple)
        and len(X) in (2, 3)
        and is_frame(X[0])
        and not any(isinstance(y, tuple) or (is_frame(y) and _width(y) != 1) for y in X[1:])
    )


def opened(frame: Any) -> Any:
    """Return a frame as pandas, polars or an Arrow table; reads lazy frames and streams."""
    if _polars_type(frame) == "LazyFrame":
        return frame.collect()
    if _polars_type(frame) or _is_pandas(frame):
        return frame
    return without_views(_table_of(frame))


def _table_of(frame: Any) -> Any:
    pa = arrow("a DataFrame")
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()
    try:
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(frame).read_all()
        from pyarrow.interchange import from_dataframe

        return from_dataframe(frame)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise ParameterError(
            f"a {type(frame).__name__} cannot be read as a table: {error}"
        ) from error


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns")


def _polars_type(X: Any) -> str:
    """Return the name of a type of polars; empty: the type is of another package."""
    kind = type(X)
    return kind.__name__ if kind.__module__.partition(".")[0] == "polars" else ""


def _width(frame: Any) -> int:
    return len(columns_of(opened(frame)))


# ---- the columns of an opened frame --------------------------------------------------------------


def columns_of(frame: Any) -> list[Any]:
    """Return the names of the columns of an opened frame."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def unique_names(names: Sequence[Any]) -> list[str]:
    """Return names as strings; raise ParameterError if two of them are equal."""
    found = [str(name) for name in names]
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise ParameterError(f"two columns are named '{twice}'", hint="give them different names")
    return found


def select(frame: Any, names: Sequence[Any]) -> Any:
    """Return an opened frame with only these columns, in this order."""
    return frame[list(names)] if _is_pandas(frame) else frame.select(list(names))


def cells_of(frame: Any, name: Any) -> NDArray[Any]:
    """Return the cells of a column of an opened frame as an array."""
    if name not in columns_of(frame):
        shown = ", ".join(map(str, columns_of(frame)[:50]))
        raise ParameterError(f"there is no column {name!r}; the columns are {shown}")
    if hasattr(frame, "column_names"):
        return np.asarray(frame.column(name).to_numpy())
    return np.asarray(frame[name].to_numpy())


def has_words(frame: Any) -> bool:
    """Tell whether an opened frame has columns of other types than numbers and booleans."""
    if _is_pandas(frame):
        return not all(_of_numbers(frame.iloc[:, k]) for k in range(frame.shape[1]))
    if _polars_type(frame):
        return not all(d.is_numeric() or str(d) == "Boolean" for d in frame.dtypes)
    return not all(is_number(column.type) for column in frame.columns)


def _of_numbers(column: Any) -> bool:
    """Tell whether a pandas column holds only numbers and booleans."""
    from pandas.api.types import infer_dtype, is_numeric_dtype

    dtype = column.dtype.subtype if _is_sparse(column) else column.dtype
    if dtype.kind == "O" and not hasattr(dtype, "na_value"):
        return infer_dtype(column, skipna=True) in _NUMBERS
    return bool(is_numeric_dtype(dtype))  # booleans count


# ---- matrices ------------------------------------------------------------------------------------


def _is_sparse(column: Any) -> bool:
    return hasattr(column.dtype, "fill_value") and hasattr(column.dtype, "subtype")


def sparse_columns(frame: Any) -> list[int]:
    """Return the numbers of the columns of a pandas frame that are stored sparsely."""
    if not _is_pandas(frame):
        return []
    return [k for k in range(frame.shape[1]) if _is_sparse(frame.iloc[:, k])]


def matrix_of(frame: Any) -> Any:
    """Return an opened frame of numbers as an array, with NaN for nulls.

    If a column is sparse, it is a CSR matrix, and sparse columns are not made dense.
    """
    if sparse_columns(frame):
        return _csr_of(frame)
    if not hasattr(frame, "column_names"):
        found = frame.to_numpy()
        if found.dtype == object:  # nullable types of pandas
            found = frame.to_numpy(np.float64, na_value=np.nan)
        return found
    columns = []
    for column in map(single, frame.columns):
        there = np.full(len(column), np.nan) if column.null_count else plain(column, np.float64)
        if column.null_count:
            there[plain(column.is_valid(), np.int64) == 1] = plain(column.drop_null(), np.float64)
        columns.append(there)
    return np.column_stack(columns) if columns else np.zeros((frame.num_rows, 0))


def _csr_of(frame: Any) -> Any:
    import scipy.sparse as sp

    rows: list[NDArray[Any]] = []
    values: list[NDArray[Any]] = []
    for k in range(frame.shape[1]):
        column = frame.iloc[:, k]
        if _is_sparse(column) and not column.dtype.fill_value:  # 0 or False
            cells = column.array
            rows.append(cells.sp_index.indices)
            values.append(np.asarray(cells.sp_values))
        else:
            dense = np.asarray(column.to_numpy(np.float64, na_value=np.nan))
            rows.append(np.flatnonzero(dense))
            values.append(dense[rows[-1]])
    starts = np.concatenate([[0], np.cumsum([len(part) for part in rows])])
    parts = np.concatenate(values), np.concatenate(rows), starts
    return sp.csc_matrix(parts, shape=frame.shape).tocsr()


# ---- Arrow tables --------------------------------------------------------------------------------


def arrow_table(frame: Any, ignore: Collection[str] = ()) -> Any:
    """Return a frame as an Arrow table; numbers without nulls are not copied.

    Columns of pandas that are to be ignored are empty: Arrow may not have their types.
    """
    pa = arrow("a DataFrame with words")
    frame = opened(frame)
    if isinstance(frame, pa.Table):
        unique_names(frame.column_names)
        return frame
    if _polars_type(frame):
        return frame.to_arrow()
    names = unique_names(columns_of(frame))
    columns = [
        pa.nulls(len(frame)) if name in ignore else _arrow_column(pa, name, frame.iloc[:, k])
        for k, name in enumerate(names)
    ]
    return without_views(pa.table(columns, names=names))


def _arrow_column(pa: Any, name: str, column: Any) -> Any:
    """Return a pandas column as an Arrow array; mixed types become strings."""
    if _is_sparse(column):
        column = column.sparse.to_dense()
    if hasattr(column, "cat"):
        levels = column.cat.categories
        if not _of_numbers(levels) and str(levels.dtype) not in ("str", "string"):
            column = column.cat.rename_categories(levels.map(str))
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        if column.dtype != object:
            raise ParameterError(
                f"column '{name}' has type {column.dtype}, which cannot be used as features",
                hint=("leave it out with ", setting("ignore"),
                      ", or turn it into numbers or strings"),
            ) from error  # fmt: skip
        present = column.dropna()
        kinds = sorted({type(cell).__name__ for cell in present})
        if not all(isinstance(cell, str | int | float | np.generic) for cell in present):
            raise ParameterError(
                f"column '{name}' holds objects of the types {', '.join(kinds)}",
                hint=("leave it out with ", setting("ignore"),
                      ", or turn it into numbers or strings"),
            ) from error  # fmt: skip
        words = sum(isinstance(cell, str) for cell in present)
        message = MixedColumnWarning(
            f"column '{name}' has {words:,} words and {len(present) - words:,} other values; all "
            f"are read as categories",
            hint=f"turn it into strings with frame['{name}'].astype(str) if that is right",
        )
        warnings.warn(message, stacklevel=outside())
        gone = column.isna().to_numpy()
        cells = [None if none else str(cell) for cell, none in zip(column, gone, strict=True)]
        return pa.array(cells, pa.large_string())


def outside() -> int:
    """Return the level of the first caller outside the package, for a warning."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("thresher"):
        level, frame = level + 1, frame.f_back
    return level
