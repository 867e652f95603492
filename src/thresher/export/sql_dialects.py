"""How databases write names, strings, numbers, and the functions that predictions need."""

from __future__ import annotations

from dataclasses import dataclass

from thresher.errors import ParameterError

__all__ = ["DIALECTS", "Dialect", "dialect_of"]


@dataclass(frozen=True)
class Dialect:
    """The SQL of a database.

    Parameters
    ----------
    name : str
    quote : str
        The character around names; within a name it is doubled.
    number, string : str
        The types of double precision numbers and of strings, in a cast.
    greatest : str
        The function that returns the largest of its arguments.
    most_columns : int
        Number of columns that a table or a result can have.
    backslash : bool
        Whether a backslash in a string must be doubled.
    """

    name: str
    quote: str
    number: str
    string: str
    greatest: str
    most_columns: int
    backslash: bool = False

    def identifier(self, name: str) -> str:
        """Return a name of a column or a table."""
        _check(name)
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def text(self, value: str) -> str:
        """Return a string."""
        _check(value)
        value = value.replace("\\", "\\\\") if self.backslash else value
        return "'" + value.replace("'", "''") + "'"

    @staticmethod
    def double(value: float) -> str:
        """Return a number; an exponent makes it double precision instead of a decimal number."""
        shown = repr(float(value))
        return shown if "e" in shown else f"{shown}e0"

    def clipped(self, expression: str, low: float, high: float) -> str:
        """Return an expression with its values limited to a range; NULL stays NULL.

        Some databases ignore NULL in the functions that return the smallest or the largest value.
        """
        least, most = self.double(low), self.double(high)
        return (
            f"CASE WHEN {expression} < {least} THEN {least} WHEN {expression} > {most} THEN {most} "
            f"ELSE {expression} END"
        )


def _check(text: str) -> None:
    if "\0" in text:
        raise ParameterError(f"{text!r} contains the character NUL, which SQL cannot represent")


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("sqlite", '"', "REAL", "TEXT", "max", 2000),
        Dialect("duckdb", '"', "DOUBLE", "VARCHAR", "greatest", 10_000),
        Dialect("postgres", '"', "DOUBLE PRECISION", "TEXT", "greatest", 1600),
        Dialect("mysql", "`", "DOUBLE", "CHAR", "greatest", 4096, backslash=True),
    )
}


def dialect_of(name: str) -> Dialect:
    """Return the dialect with a name; raise ParameterError if there is none."""
    if name not in DIALECTS:
        raise ParameterError(
            parameter="dialect", value=name, allowed=f"one of {', '.join(DIALECTS)}"
        )
    return DIALECTS[name]
