"""Makes tables of pandas, polars or Arrow from columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from thresher.errors import ParameterError

__all__ = ["frame_of"]

_KINDS = ("arrow", "pandas", "polars")


def frame_of(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str], kind: str) -> Any:
    """Return a table of pandas, polars or Arrow.

    Parameters
    ----------
    columns : mapping from str to sequence
        Lists or arrays of the same length; None is a missing cell.
    types : mapping from str to {"string", "uint64"}
        The types of columns that are not as their values are: also a column without rows, or with
        missing cells only, gets its type.
    kind : {"arrow", "pandas", "polars"}

    Examples
    --------
    >>> frame_of({"name": ["a", None], "weight": [0.5, 1.0]}, {"name": "string"}, "arrow").num_rows
    2
    """
    if kind not in _KINDS:
        raise ParameterError(parameter="kind", value=kind, allowed=f"one of {', '.join(_KINDS)}")
    try:
        make = {"arrow": _arrow, "pandas": _pandas, "polars": _polars}[kind]
        return make(columns, types)
    except ImportError:
        package = "pyarrow" if kind == "arrow" else kind
        raise ParameterError(
            f"kind={kind!r} needs the package {package}: pip install {package}"
        ) from None


def _arrow(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str]) -> Any:
    import pyarrow as pa

    known = {"string": pa.string(), "uint64": pa.uint64()}
    return pa.table(
        {
            name: pa.array(values, known[types[name]] if name in types else None)
            for name, values in columns.items()
        }
    )


def _pandas(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str]) -> Any:
    import pandas as pd

    known = {"string": "str" if int(pd.__version__.split(".")[0]) > 2 else "object"}
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=known.get(types[name], types[name]))
            if name in types
            else pd.Series(values)
            for name, values in columns.items()
        }
    )


def _polars(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str]) -> Any:
    import polars as pl

    known = {"string": pl.String, "uint64": pl.UInt64}
    return pl.DataFrame(
        [
            pl.Series(name, values, dtype=known[types[name]] if name in types else None)
            for name, values in columns.items()
        ]
    )
