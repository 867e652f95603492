"""Missing cells of tables and frames: null and NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.bad_lines import BadCells
from thresher.errors import Words, setting

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["advice", "without_missing"]


def without_missing(
    name: str, column: pa.Array, missing: str
) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return a column with nulls in place of NaN, and the rows of its nulls.

    Parameters
    ----------
    name : str
    column : pyarrow.Array
    missing : {"error", "zero", "indicator"}
        "error": raise BadCells if a cell is missing.
    """
    from thresher.data.columns import arrow, plain

    pa = arrow("reading tables")
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode()
    nan = 0
    if pa.types.is_floating(column.type):
        bad = column.is_nan()
        nan = int(pa.compute.sum(bad).as_py() or 0)
        if nan:
            column = pa.compute.if_else(bad, pa.nulls(1, column.type)[0], column)
    if not column.null_count:
        return column, np.zeros(0, np.int64)
    rows = np.flatnonzero(plain(column.is_null(), np.int64))
    if missing == "error":
        what = f"the value is missing ({'NaN' if nan else 'null'})"
        raise BadCells(rows, name, lambda _: what, advice(name))
    return column, rows


def advice(name: Any) -> Words:
    """Return what can be done about the missing cells of a column."""
    return (
        setting("missing", "indicator", "scan or reading= of fit"),
        f" adds a feature '{name}=missing', ",
        setting("missing", "zero"),
        " takes such cells as 0",
    )
