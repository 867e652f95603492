"""The use of the columns of a table: labels, weights, text; by name or by position."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from thresher.errors import DataError, InputError, setting

__all__ = ["AUTO", "USUAL_LABELS", "TableColumns"]

AUTO = "auto"  # in `text`: strings that look like text are text
USUAL_LABELS = ("label", "y", "target", "class")
_POSITION = re.compile(r"-?\d+")


@dataclass(frozen=True)
class TableColumns:
    """The use of the columns of a table.

    A column is given by its name, or by its position: 0 is the first, -1 is the last. A name that
    the table has is never a position.

    Parameters
    ----------
    label : str, optional
        The column of labels; by default the only column named label, y, target or class. With
        `multilabel` also several columns of 0 and 1, one per label: ``a,b`` or ``topic_*``.
    weight : str, optional
        The column of row weights.
    text : sequence of str
        Columns of text: their words are features. "auto": also columns that look like text.
    ngrams : int
        Sequences of up to `ngrams` words of text are features.
    categorical : sequence of str
        Columns whose numbers are categories.
    ignore : sequence of str
        Columns to leave out.
    label_needed : bool
        Whether a table without labels is an error. If False, columns of labels and weights, and
        columns to ignore, may be missing, and are not read.
    multilabel : bool
        Whether rows have any number of labels.
    missing, dates : str, optional
        As for `entries_of_column`.
    """

    label: str | None = None
    weight: str | None = None
    text: Sequence[str] = ()
    ngrams: int = 1
    categorical: Sequence[str] = ()
    ignore: Sequence[str] = ()
    label_needed: bool = True
    multilabel: bool = False
    missing: str | None = None
    dates: str | None = None

    def located(self, source: str, names: list[str]) -> TableColumns:
        """Return the same with names instead of positions; raise DataError if a column is missing.

        Parameters
        ----------
        source : str
            The file, for errors.
        names : list of str
            The columns of the table.
        """

        def found(given: Iterable[str], needed: bool) -> tuple[str, ...]:
            places = ((name, _name_of(name, names)) for name in given)
            missing = [name for name, place in places if place is None] if needed else []
            if missing:
                raise DataError(f"{source}: there is no column '{missing[0]}'; {_listed(names)}")
            return tuple(_name_of(name, names) or name for name in given)

        text = self.text if AUTO in names else [name for name in self.text if name != AUTO]
        weight = found([self.weight] if self.weight else [], self.label_needed)
        return replace(
            self,
            weight=weight[0] if weight else None,
            text=found(text, True),
            categorical=found(self.categorical, True),
            ignore=found(self.ignore, self.label_needed),
        )

    def is_auto(self, names: list[str]) -> bool:
        """Tell whether columns that look like text are text."""
        return AUTO in self.text and AUTO not in names

    def labels_in(
        self, source: str, names: list[str], cells: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Return the columns of labels; raise an error if there is none, and one is needed.

        Parameters
        ----------
        source : str
            The file, for errors.
        names : list of str
            The columns of the table.
        cells : sequence of str
            The first row, for an error about a table without names.
        """
        if self.label == "":  # a frame without labels
            return ()
        if self.label is not None:
            one = _name_of(self.label, names)
            if one is not None:
                return (one,)
            several = _several(self.label, names, self.label_needed) if self.multilabel else ()
            if several or not self.label_needed:
                return several
            raise self._no_label(source, names)
        usual = [name for name in names if name in USUAL_LABELS and name not in self.ignore]
        if not usual and self.label_needed:  # Class, TARGET
            usual = [
                name for name in names if name.lower() in USUAL_LABELS and name not in self.ignore
            ]
        if len(usual) == 1:
            return (usual[0],)
        if not usual and not self.label_needed:
            return ()
        found = f"{' and '.join(usual)} could be" if usual else f"none is {_or(USUAL_LABELS)}"
        raise InputError(
            f"which column is the label? {found}",
            place=source,
            parameter="label",
            allowed=f"one of {', '.join(names)}",
            hint=(
                *("name it with ", setting("label"), ", or ", setting("label", "-1")),
                f" for the last column; {_listed(names, cells)}",
            ),
        )

    def _no_label(self, source: str, names: list[str]) -> Exception:
        assert self.label is not None
        if not self.multilabel and _several(self.label, names, True):
            return InputError(
                f"{self.label!r} names several columns",
                place=source,
                parameter="label",
                hint=("one column per label needs ", setting("multilabel", True)),
            )
        return DataError(f"{source}: there is no column '{self.label}'; {_listed(names)}")


def _name_of(given: str, names: list[str]) -> str | None:
    """Return the column with this name, or else at this position."""
    if given in names or not _POSITION.fullmatch(given):
        return given if given in names else None
    place = int(given)
    return names[place] if -len(names) <= place < len(names) else None


def _several(given: str, names: list[str], needed: bool) -> tuple[str, ...]:
    """Return the columns of a list of names or patterns; none if one is needed and missing."""
    found: list[str] = []
    for name in map(str.strip, given.split(",")):
        one = _name_of(name, names)
        matches = [one] if one is not None else fnmatch.filter(names, name)
        if not matches and needed:
            return ()
        found += [match for match in matches if match not in found]
    return tuple(found)


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(names: list[str], cells: Sequence[str] = ()) -> str:
    words = names[:50]
    if cells:  # names that say nothing
        words = [f"{name} ({cell[:12]})" for name, cell in zip(words, cells, strict=False)]
    return f"the columns are {', '.join(words)}" + (", ..." if len(names) > 50 else "")
