"""The base of parts whose rows are those of another source, such as shuffled ones."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any

from thresher.data.parts import Part
from thresher.data.read_options import ReadOptions

if TYPE_CHECKING:
    from thresher.data.source import Source


class SourcePart(Part, ABC):
    """All or some rows of another source.

    Parameters
    ----------
    source : Source
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.name, self.named, self.first = str(source), source.named, source.first
        self.columns, self.labels_given = tuple(source.columns), source.labels_given

    @property
    def size(self) -> int | None:
        """Bytes on disk, if known."""
        return self.source.size

    def facts(self) -> Any:
        """Return facts to detect a change of the source."""
        return self.source.facts()

    def is_file(self, path: str) -> bool:
        """Tell whether this file is a part of the source."""
        return any(part.is_file(path) for part in self.source.parts)

    def kinds(self) -> dict[str, str]:
        """Return the kinds of the columns of the source."""
        return self.source.kinds

    def settled(self, reading: ReadOptions) -> ReadOptions:
        """Return the options of reading with what the source decided."""
        return self.source.settled()

    @property
    def notes(self) -> list[str]:
        """What the user should know about the source."""
        return self.source.notes

    def label_words(self) -> tuple[str, ...]:
        """Return some labels, if they are known to be words before reading."""
        return self.source.label_words()
