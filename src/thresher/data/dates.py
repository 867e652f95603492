"""Dates and times as categories: year, month, weekday and hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["parts_of_dates"]

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def parts_of_dates(column: pa.Array) -> list[tuple[str, pa.Array]]:
    """Return the name of each part, and a column of strings with nulls where the date is null.

    Dates have year, month and weekday; times have the hour; timestamps have all four, in their own
    time zone.

    Parameters
    ----------
    column : pyarrow.Array

    Examples
    --------
    >>> import datetime, pyarrow
    >>> column = pyarrow.array([datetime.datetime(2024, 3, 4, 17, 30)])
    >>> [(part, found.to_pylist()) for part, found in parts_of_dates(column)]
    [('year', ['2024']), ('month', ['3']), ('weekday', ['monday']), ('hour', ['17'])]
    """
    from thresher.data.columns import arrow, strings

    pa = arrow("reading tables")
    pc, types = pa.compute, pa.types
    found = []
    if not types.is_time(column.type):
        found += [("year", pc.year(column)), ("month", pc.month(column))]
        found += [("weekday", strings(_WEEKDAYS).take(pc.day_of_week(column)))]
    if not types.is_date(column.type):
        found += [("hour", pc.hour(column))]
    return [(part, values.cast(pa.large_string())) for part, values in found]
