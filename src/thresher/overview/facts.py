"""All facts about the data that `look` gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from thresher.overview.features import FeatureFacts
from thresher.overview.kinds import ColumnFacts
from thresher.overview.labels import LabelFacts
from thresher.overview.sniff import Sniffed
from thresher.overview.table_batches import BadLineCount

__all__ = ["DataFacts", "RowCount", "names_of"]


@dataclass(frozen=True)
class RowCount:
    """How many rows there are.

    Attributes
    ----------
    read : int
        Rows that were looked at: all, or the first ones.
    total : int or None
        Rows of all files; estimated unless `exact`; None if it cannot be known.
    exact : bool
    """

    read: int = 0
    total: int | None = 0
    exact: bool = True

    @property
    def all_read(self) -> bool:
        """Whether all rows were looked at."""
        return self.exact and self.total == self.read


@dataclass(frozen=True)
class DataFacts:
    """What the data are.

    Attributes
    ----------
    files : tuple of Sniffed
        Empty for data in memory.
    name : str
        Name of the data in texts.
    rows : RowCount
    columns : tuple of ColumnFacts
        Of tables.
    features : FeatureFacts or None
        Of sparse rows.
    label : LabelFacts
    duplicates : int
        Rows that repeat an earlier row.
    duplicates_exact : bool
    bad : BadLineCount
    problems : tuple of str
        What else was seen, such as files whose columns differ.
    reading : dict
        Options of reading that were given.
    """

    files: tuple[Sniffed, ...] = ()
    name: str = ""
    rows: RowCount = field(default_factory=RowCount)
    columns: tuple[ColumnFacts, ...] = ()
    features: FeatureFacts | None = None
    label: LabelFacts = field(default_factory=LabelFacts)
    duplicates: int = 0
    duplicates_exact: bool = True
    bad: BadLineCount = field(default_factory=BadLineCount)
    problems: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Sniffed | None:
        """The first file."""
        return self.files[0] if self.files else None

    def column(self, name: str) -> ColumnFacts | None:
        """Return the column of a name."""
        return next((one for one in self.columns if one.name == name), None)


def names_of(files: Sequence[Sniffed]) -> str:
    """Return the names of files for a text."""
    if not files:
        return ""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return files[0].path + more
