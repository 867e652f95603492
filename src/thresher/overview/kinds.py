"""The facts about a column, and its kind."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from thresher.data.text_columns import SAMPLE, use_by_counts
from thresher.overview.columns import ColumnCounter

__all__ = ["KINDS", "ColumnFacts", "column_facts", "is_id_name", "with_ratios"]

KINDS = ("number", "truth", "category", "text", "id", "date", "list", "other", "constant", "empty")
_TOP = 10  # most frequent values that are told
_DATES = 0.9  # share of dates in a column of dates
_NUMBERS = 0.5  # share of numbers in a column of numbers with some words
_ID_NAME = re.compile(
    r"(?:.*[_\s.-])?(?:id|ids|uuid|guid|key|index|idx|rowid|row|no|nr|number|#)\d*"
    r"|unnamed: ?\d+|.*[a-z]I[dD]|",
)


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column of a table.

    Attributes
    ----------
    name : str
    position : int
        From 0.
    kind : str
        One of `KINDS`; "other": its type cannot be used as features.
    type : str
        Its type in Parquet and Arrow files; empty in CSV files.
    rows, missing : int
        Cells, and how many of them are missing.
    missing_words : dict
        How often each spelling of a missing value occurs.
    distinct : int
        Different cells, without missing ones; different items of a column of lists.
    distinct_exact : bool
        Whether it was counted exactly.
    numbers, words : int
        Cells that are numbers; cells that are neither numbers, dates, nor true or false.
    first_word : str or None
        The first word in a column of numbers, and its row from 0.
    minimum, maximum, mean, largest : float or None
        Of the numbers; `largest` is the largest absolute value.
    whole : bool
        Whether all numbers are whole.
    ratio : float or None
        `largest`, relative to the median column of numbers.
    tokens : float
        Mean number of words in a cell that is not a number.
    top : list of (value, rows)
        The most frequent values.
    example : str
        The first cell that is not a number.
    """

    name: str
    position: int
    kind: str
    type: str = ""
    rows: int = 0
    missing: int = 0
    missing_words: tuple[tuple[str, int], ...] = ()
    distinct: int = 0
    distinct_exact: bool = True
    numbers: int = 0
    words: int = 0
    infinite: int = 0
    first_word: tuple[str, int] | None = None
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    largest: float | None = None
    whole: bool = False
    ratio: float | None = None
    tokens: float = 0.0
    top: tuple[tuple[Any, int], ...] = ()
    example: str = ""

    @property
    def present(self) -> int:
        """Cells that are not missing."""
        return self.rows - self.missing

    @property
    def mixed(self) -> bool:
        """Whether most cells are numbers and some are words."""
        return self.kind == "number" and self.words > 0 and self.numbers > 0

    @property
    def binary(self) -> bool:
        """Whether all numbers are 0 or 1, and both occur."""
        return self.kind == "number" and {value for value, _ in self.top} == {0.0, 1.0}

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as JSON types."""
        found = asdict(self)
        found["missing_words"] = dict(self.missing_words)
        found["top"] = [[_plain(value), rows] for value, rows in self.top]
        found["first_word"] = None if self.first_word is None else list(self.first_word)
        return found


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def column_facts(counted: ColumnCounter) -> ColumnFacts:
    """Return the facts about a column that was counted."""
    c, dashes = counted, counted.dashes
    has_numbers = c.numbers > c.infinite
    finite = c.numbers - c.infinite
    distinct, exact = c.distinct.count, c.distinct.exact
    if c.lists and c.values is not None:
        distinct, exact = len(c.values), True
    top = c.values.most_common(_TOP + 1) if c.values is not None else []
    top = [(value, rows) for value, rows in top if not dashes or value != "-"][:_TOP]
    distinct -= bool(dashes)
    missing_words = c.missing_words.most_common() + ([("-", dashes)] if dashes else [])
    strings = c.words + c.truths + c.dates
    facts = ColumnFacts(
        c.name,
        c.position,
        _kind(c),
        c.type,
        c.rows,
        c.missing + dashes,
        tuple(missing_words),
        min(distinct, c.rows) if not c.lists else distinct,
        exact,
        c.numbers,
        c.words - dashes,
        c.infinite,
        None,
        float(c.low) if has_numbers else None,
        float(c.high) if has_numbers else None,
        c.total / finite if has_numbers else None,
        c.largest if has_numbers else None,
        bool(has_numbers and c.whole),
        None,
        c.tokens / strings if strings and c.tokens else 0.0,
        tuple(top),
        c.sample[0] if c.sample else "",
    )
    words = [at for at, cell in enumerate(c.sample) if not dashes or cell.strip() != "-"]
    if facts.mixed and words and words[0] < len(c.first_words):
        at = words[0]
        facts = replace(facts, first_word=(c.sample[at], c.first_words[at]))
    return facts


def _kind(c: ColumnCounter) -> str:
    """Return the kind of a column."""
    present = c.rows - c.missing - c.dashes
    words = c.words - c.dashes
    if not c.usable:
        return "other"
    if not present:
        return "empty"
    if c.lists:
        return "list"
    distinct = c.distinct.count - bool(c.dashes)
    if distinct == 1 and present > 1:
        return "constant"
    if c.truths == present:
        return "truth"
    if c.dates >= _DATES * present:
        return "date"
    if c.numbers >= _NUMBERS * present:
        every = distinct >= 0.98 * present and present >= 20 and c.whole and not words
        counts_rows = c.step is not None and abs(c.step) == 1.0
        if every and (counts_rows or is_id_name(c.name)):
            return "id"
        return "id" if _is_first_id(c, present, distinct) and not words else "number"
    if c.type == "dictionary":
        return "category"
    return _use_of_sample(c.sample[:SAMPLE])


def _use_of_sample(cells: Sequence[str]) -> str:
    """Return the use of the first strings of a column, as the readers of tables decide it."""
    words = sum(len(cell.split()) for cell in cells) / max(len(cells), 1)
    return use_by_counts(words, len(set(cells)), len(cells))


def is_id_name(name: str) -> bool:
    """Tell whether a name is one that people give to identifiers of rows.

    Examples
    --------
    >>> [is_id_name(name) for name in ("customer_id", "userId", "Unnamed: 0", "width", "paid")]
    [True, True, True, False, False]
    """
    return bool(_ID_NAME.fullmatch(name.strip()) or _ID_NAME.fullmatch(name.strip().lower()))


def _is_first_id(c: ColumnCounter, present: int, distinct: int) -> bool:
    """Tell whether large whole numbers in the first column of a file without header are ids."""
    return (
        c.position == 0
        and c.name == "0"
        and present >= 50
        and c.whole
        and distinct >= 0.9 * present
        and c.largest > 10 * present
        and c.low >= 0
    )


def with_ratios(columns: Sequence[ColumnFacts], label: str | None) -> list[ColumnFacts]:
    """Return the columns, each of numbers with its size relative to the median column.

    The size of a column is its largest absolute value, as in `thresher.health.dynamic_range`.
    """
    used = [one for one in columns if one.kind == "number" and one.largest and one.name != label]
    if not used:
        return list(columns)
    sizes = sorted(one.largest or 0.0 for one in used)
    median = sizes[(len(sizes) - 1) // 2]
    names = {one.name for one in used}

    def ratio(one: ColumnFacts) -> float | None:
        found = (one.largest or 0.0) / median
        return found if one.name in names and math.isfinite(found) else None

    return [replace(one, ratio=ratio(one)) for one in columns]
