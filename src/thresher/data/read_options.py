"""The options of `scan`, checked, and the kinds of table columns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thresher.data.bad_lines import check_policy
from thresher.data.formats import FORMATS
from thresher.errors import ParameterError

KINDS = ("number", "truth", "string")  # kinds of table columns


class Stopped(KeyboardInterrupt):
    """Reading was stopped between two blocks, because `Source.stops` returned True."""


@dataclass(frozen=True)
class ReadOptions:
    """The options of `scan`; see there."""

    format: str | None = None
    bits: int | None = None
    zero_based: bool = False
    multilabel: bool = False
    interactions: tuple[str, ...] = ()
    label: str | None = None
    weight: str | None = None
    text: tuple[str, ...] = ()
    ngrams: int = 1
    ignore: tuple[str, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    threads: int | None = None
    on_bad_line: str = "error"
    labelled: bool = True
    shuffle_buffer: int = 1 << 16

    def __post_init__(self) -> None:
        """Raise ParameterError if an option has a value that is not allowed."""
        if self.format is not None and self.format not in FORMATS:
            raise ParameterError(
                parameter="format", value=self.format, allowed=f"one of {', '.join(FORMATS)}"
            )
        if self.bits is not None and not (
            isinstance(self.bits, int) and not isinstance(self.bits, bool) and 1 <= self.bits <= 40
        ):
            raise ParameterError(
                parameter="bits", value=self.bits, allowed="a whole number from 1 to 40"
            )
        if self.threads is not None and not (
            isinstance(self.threads, int) and 1 <= self.threads <= 256
        ):
            raise ParameterError(parameter="threads", value=self.threads, allowed="from 1 to 256")
        for pair in self.interactions:
            if len(pair) != 2 or not pair.isascii() or not pair.isprintable() or " " in pair:
                raise ParameterError(
                    parameter="interactions",
                    value=pair,
                    allowed="pairs of letters, the first of two namespaces, as in 'ab'",
                )
        if not 1 <= self.ngrams <= 8:
            raise ParameterError(parameter="ngrams", value=self.ngrams, allowed="from 1 to 8")
        for name, kind in self.kinds:
            if kind not in KINDS:
                raise ParameterError(
                    f"a kind must be one of {', '.join(KINDS)}; the kind of column '{name}' is "
                    f"{kind!r}",
                    parameter="kinds",
                    value=kind,
                    allowed=f"of {', '.join(KINDS)}",
                )
        rows = self.shuffle_buffer
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise ParameterError(
                parameter="shuffle_buffer", value=rows, allowed="a number of rows >= 1"
            )
        check_policy(self.on_bad_line)

    @classmethod
    def of(cls, **options: Any) -> ReadOptions:
        """Make it from the arguments of `scan`: sequences of any type, and kinds as a mapping."""
        for name in ("interactions", "text", "ignore"):
            if name in options:
                options[name] = tuple(options[name])
        if "kinds" in options:
            options["kinds"] = tuple((options["kinds"] or {}).items())
        return cls(**options)

    @property
    def workers(self) -> int:
        """Number of threads that parse."""
        return self.threads or len(os.sched_getaffinity(0))

    @property
    def keeps_going(self) -> bool:
        """Whether bad lines are left out, and reading continues after them."""
        return self.on_bad_line != "error"


class ColumnKinds:
    """How each column of tables is read: as numbers, as true and false, or as strings.

    All tables of a source share one object, so that a column has the same kind in all of them.

    Parameters
    ----------
    given : mapping of str to {"number", "truth", "string"}
        Kinds that are known before reading.
    fixed : bool
        Whether no more columns are added. Other columns of a CSV file are strings then: a column
        that a model does not use cannot have bad cells.

    Attributes
    ----------
    found : dict
        The kinds that are known so far.
    """

    def __init__(self, given: Mapping[str, str], fixed: bool = False) -> None:
        self.found, self.fixed = dict(given), fixed

    def add(self, found: Mapping[str, str]) -> None:
        """Add the kinds of columns that are not known yet."""
        if not self.fixed:
            self.found = {**found, **self.found}
