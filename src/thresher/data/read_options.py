"""How files are read: the options of `scan`, checked, and what becomes of bad lines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from thresher.atomic import naming
from thresher.errors import DataError, ParameterError

if TYPE_CHECKING:
    from thresher.data.block import Block

FORMATS = ("svmlight", "vw", "csv", "parquet", "arrow", "cache")
KINDS = ("number", "truth", "string")  # of columns of tables


class Stopped(KeyboardInterrupt):
    """A source was asked to stop, and did so between two blocks."""


@dataclass(frozen=True)
class Reading:
    """The options of `scan`, which documents them."""

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

    def __post_init__(self) -> None:
        """Raise ParameterError for an option that is not allowed."""
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
                    f"kinds must be of {', '.join(KINDS)}; got {kind!r} for the column '{name}'",
                    parameter="kinds",
                    value=kind,
                    allowed=f"of {', '.join(KINDS)}",
                )
        policy, _, file = self.on_bad_line.partition("=")
        if not (self.on_bad_line in ("error", "skip") or (policy == "quarantine" and file)):
            raise ParameterError(
                parameter="on_bad_line",
                value=self.on_bad_line,
                allowed="error, skip or quarantine=FILE",
            )

    @classmethod
    def of(cls, **options: Any) -> Reading:
        """Make it of the options as `scan` takes them: any sequences, and kinds as a mapping."""
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
        """Whether bad lines are left out, and reading goes on behind them."""
        return self.on_bad_line != "error"


class Kinds:
    """What columns of tables are taken for: decided once, and the same in all that share it.

    Parameters
    ----------
    given : mapping of str to {"number", "truth", "string"}
        What was decided before.
    fixed : bool
        Whether no other columns are decided. Those of a CSV file are strings then: columns that a
        model has not learned from cannot have bad cells.

    Attributes
    ----------
    found : dict
        Those given, and those decided so far.
    """

    def __init__(self, given: Mapping[str, str], fixed: bool = False) -> None:
        self.found, self.fixed = dict(given), fixed

    def add(self, found: Mapping[str, str]) -> None:
        """Take what was found of columns that were not known before."""
        if not self.fixed:
            self.found = {**found, **self.found}


class BadLines:
    """Lines that are no examples: reported, counted, or put aside.

    Parameters
    ----------
    policy : {"error", "skip", "quarantine=FILE"}
    """

    def __init__(self, policy: str) -> None:
        self.policy, _, self.file = policy.partition("=")
        self.count = 0
        self.first: str | None = None  # the first one, described
        self._written = 0  # bytes put aside
        self._place = (-1, -1)  # file and line of the last bad line: later passes meet it again
        self._out: IO[bytes] | None = None

    def see(self, block: Block) -> DataError | None:
        """Deal with the bad lines of a block; return the error to raise behind its rows."""
        for bad in block.native.bad:
            line = block.native.first_line + bad.line
            where = ""
            if self.first is None:  # finding the true line may take time
                where = f"{block.file}:{block.true_line(line)}:{bad.column}: {bad.what}"
            if self.policy == "error":
                return DataError(where)
            self.put_aside(block.end.file, line, where, bad.text)
        return None

    def put_aside(self, file: int, line: int, what: str, text: bytes) -> None:
        """Count a bad line, and copy it where it belongs; once, however often it is read."""
        if (file, line) <= self._place:
            return
        self._place = (file, line)
        self.count += 1
        self.first = self.first or what
        if self.policy == "quarantine":
            self._put(text)

    def _put(self, text: bytes) -> None:
        if self._out is None:
            mode = "r+b" if self._written else "wb"
            self._out = open(self.file, mode, buffering=0)  # noqa: SIM115
            self._out.truncate(self._written)
            self._out.seek(self._written)
        with naming(self.file):
            self._out.write(text + b"\n")
        self._written += len(text) + 1

    @property
    def warning(self) -> str:
        """What to tell of them at the end; nothing where there were none."""
        if self.count == 0:
            return ""
        if self.count == 1:
            return f"1 bad line left out: {self.first}"
        return f"{self.count:,} bad lines left out; the first: {self.first}"

    @property
    def state(self) -> list[Any]:
        """As JSON can carry it."""
        return [self.count, self.first, self._written, list(self._place)]

    @state.setter
    def state(self, saved: list[Any]) -> None:
        self.count, self.first, self._written, (file, line) = saved
        self._place = (int(file), int(line))
