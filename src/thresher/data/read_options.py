"""The options of `scan`, checked, and the kinds of table columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.bad_lines import check_policy
from thresher.data.formats import FORMATS
from thresher.errors import ParameterError
from thresher.threads import available_threads

if TYPE_CHECKING:
    from thresher.data.csv_layout import CsvLayout

KINDS = ("number", "truth", "string", "text")  # kinds of table columns
NEWER = (  # options that version 0.1.0 did not have
    *("header", "columns", "delimiter", "encoding", "quotes", "label_separator"),
    *("missing", "dates", "unlabelled"),
)
MISSING = ("error", "zero", "indicator")  # what missing cells of tables are
UNLABELLED = ("error", "skip")  # what training rows without a label are


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
    unlabelled: str = "error"
    labelled: bool = True
    header: bool | None = None
    columns: tuple[str, ...] = ()
    delimiter: str | None = None
    encoding: str | None = None
    quotes: bool | None = None
    label_separator: str | None = None
    missing: str | None = None
    dates: str | None = None
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
            if not is_pair(pair):
                raise ParameterError(
                    parameter="interactions",
                    value=pair,
                    allowed="pairs of letters, the first of two namespaces, as in 'ab'",
                )
        if type(self.ngrams) is not int or not 1 <= self.ngrams <= 8:
            raise ParameterError(
                parameter="ngrams", value=self.ngrams, allowed="a whole number from 1 to 8"
            )
        for name in ("zero_based", "multilabel", "header", "quotes"):
            flag = getattr(self, name)
            is_flag = isinstance(flag, int) and flag in (0, 1)
            if not is_flag and flag is not getattr(ReadOptions, name):
                raise ParameterError(parameter=name, value=flag, allowed="True or False")
        if not isinstance(self.label_separator, str | None):
            raise ParameterError(
                parameter="label_separator", value=self.label_separator, allowed="text"
            )
        for name, kind in self.kinds:
            if kind not in KINDS:
                raise ParameterError(
                    f"a kind must be one of {', '.join(KINDS)}; the kind of column '{name}' is "
                    f"{kind!r}",
                    parameter="kinds",
                    value=kind,
                    allowed=f"of {', '.join(KINDS)}",
                )
        if self.missing not in (None, *MISSING):
            raise ParameterError(
                parameter="missing", value=self.missing, allowed=f"one of {', '.join(MISSING)}"
            )
        if self.unlabelled not in UNLABELLED:
            raise ParameterError(
                parameter="unlabelled", value=self.unlabelled, allowed="error or skip"
            )
        if self.dates not in (None, "parts"):
            raise ParameterError(parameter="dates", value=self.dates, allowed="'parts'")
        rows = self.shuffle_buffer
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise ParameterError(
                parameter="shuffle_buffer", value=rows, allowed="a number of rows >= 1"
            )
        check_policy(self.on_bad_line)
        check_csv(self.delimiter, self.encoding, self.columns)

    @classmethod
    def of(cls, **options: Any) -> ReadOptions:
        """Make it from the arguments of `scan`: sequences of any type, and kinds as a mapping."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise ParameterError(
                    f"{name!r} is not an option of reading; the options are {', '.join(known)}",
                    parameter=name,
                )
        for name, given in options.items():
            if isinstance(given, np.generic):  # np.True_, np.int64(2)
                options[name] = given.item()
        for name in ("interactions", "text", "ignore", "columns"):
            if name in options:
                given = options[name]
                one = isinstance(given, str | int) and name != "interactions"
                options[name] = tuple(map(str, [given] if one else given))
        for name in ("label", "weight"):
            options[name] = column_name(name, options.get(name))
        if options.get("format") == "tsv":
            options |= {"format": "csv", "delimiter": options.get("delimiter") or "\t"}
        word = options.get("delimiter")
        if isinstance(word, str):
            options["delimiter"] = {"tab": "\t", "\\t": "\t", "space": " "}.get(word, word)
        if "kinds" in options:
            options["kinds"] = tuple((options["kinds"] or {}).items())
        return cls(**options)

    def plain(self) -> dict[str, Any]:
        """Return all options as a dict, without newer ones that are not set.

        Caches and checkpoints of older versions do not have these.
        """
        found, defaults = asdict(self), ReadOptions()
        return {
            name: value
            for name, value in found.items()
            if name not in NEWER or value != getattr(defaults, name)
        }

    @property
    def workers(self) -> int:
        """Number of threads that parse."""
        return self.threads or available_threads()

    @property
    def keeps_going(self) -> bool:
        """Whether bad lines are left out, and reading continues after them."""
        return self.on_bad_line != "error"


def column_name(option: str, given: Any) -> str | None:
    """Return a column as text: a name, a position, or several names."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Sequence):
        names = [str(name) for name in given]
        if option == "label" and names and not any("," in name for name in names):
            return ",".join(names)
        allowed = "a column, or a sequence of columns without commas in their names"
        raise ParameterError(parameter=option, value=given, allowed=allowed)
    return str(given)


def is_pair(pair: str) -> bool:
    """Tell whether a text is two letters of namespaces."""
    return len(pair) == 2 and pair.isascii() and pair.isprintable() and " " not in pair


def is_delimiter(text: Any) -> bool:
    """Tell whether cells of CSV files may be separated by a text."""
    one = isinstance(text, str) and len(text) == 1
    return one and text.isascii() and text not in '\r\n"\0'


def is_encoding(name: Any) -> bool:
    """Tell whether a name is that of an encoding of text; some codecs, as of zip, are of bytes."""
    try:
        "".encode(name)
        return isinstance(b"".decode(name), str)
    except (LookupError, TypeError, ValueError):
        return False


def check_csv(delimiter: str | None, encoding: str | None, columns: tuple[str, ...]) -> None:
    """Raise ParameterError if an option of CSV files has a value that is not allowed."""
    if delimiter is not None and not is_delimiter(delimiter):
        raise ParameterError(
            parameter="delimiter", value=delimiter, allowed="one character, or tab, as in ';'"
        )
    if encoding is not None and not is_encoding(encoding):
        raise ParameterError(
            parameter="encoding", value=encoding, allowed="a known one, such as latin-1"
        )
    if len(set(columns)) < len(columns):
        twice = next(name for name, count in Counter(columns).items() if count > 1)
        raise ParameterError(parameter="columns", value=twice, allowed="different names")


class ColumnKinds:
    """How each column of tables is read: as numbers, true and false, strings, or text.

    All tables of a source share one object, so that a column has the same kind in all of them.

    Parameters
    ----------
    given : mapping of str to {"number", "truth", "string", "text"}
        Kinds that are known before reading.
    fixed : bool
        Whether no more columns are added. Other columns of a CSV file are strings then: a column
        that a model does not use cannot have bad cells.

    Attributes
    ----------
    found : dict
        The kinds that are known so far.
    separator : str or None
        What separates the labels of a row, if it is given or known so far.
    layout : CsvLayout or None
        The layout of the first CSV file.
    """

    def __init__(self, given: Mapping[str, str], fixed: bool = False) -> None:
        self.found, self.fixed = dict(given), fixed
        self.separator: str | None = None
        self.layout: CsvLayout | None = None

    def add(self, found: Mapping[str, str]) -> None:
        """Add the kinds of columns that are not known yet."""
        if not self.fixed:
            self.found = {**found, **self.found}
