"""What the shell finds out about the input: notes on files, and labels that are words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from thresher.cli.render.errors import option_of
from thresher.cli.render.warning_sink import say
from thresher.data.source import Source
from thresher.data.text_part import TextPart
from thresher.losses import REGRESSOR_LOSSES

Options = TypeVar("Options")

OF_TABLES = (  # options of reading that have no effect on VW text and svmlight
    *("label", "weight", "text", "ignore", "columns", "missing", "dates"),
    *("header", "delimiter", "encoding", "quotes", "label_separator"),
)


def with_word_classes(options: Options, source: Source, tell: Callable[[str], None]) -> Options:
    """Return the options; with `multiclass` if the labels are words. Tell notes about the input.

    Parameters
    ----------
    options : TrainOptions or CompareOptions
    source : Source
    tell : callable
        Called with each note.
    """
    for note in source.notes:
        tell(note)
    given: Any = options
    without_effect(given.reading, source)
    several = given.multiclass or given.reading.get("multilabel")
    if several or getattr(given, "classes", None) or given.loss in REGRESSOR_LOSSES:
        return options
    words = source.label_words()
    if not words:
        return options
    tell(f"the labels are words, such as {_listed(words)}: each different word is a class")
    from thresher.overview.label_choice import separator_of  # imports much

    separator = separator_of(words)
    if separator:
        say(
            f"labels such as {_listed(words)} look like several labels with {separator!r} between "
            f"them, and each cell is one class; use --multilabel"
        )
    return replace(given, multiclass=True)  # type: ignore[no-any-return]


def without_effect(reading: Mapping[str, Any], source: Source) -> None:
    """Warn of options of tables if no file is a table.

    Parameters
    ----------
    reading : mapping
        The options of reading that were given.
    source : Source
    """
    formats = {part.format for part in source.parts if isinstance(part, TextPart)}
    if not all(isinstance(part, TextPart) for part in source.parts):
        return
    found = [option_of(name) for name in OF_TABLES if reading.get(name) not in (None, (), [])]
    if found:
        say(
            f"{', '.join(found)}: no effect, because this is an option of tables, and "
            f"{source.parts[0].name} has the format {' or '.join(sorted(formats))}; "
            f"is it a table? Then give its format, for example --format csv"
        )


def _listed(words: tuple[str, ...]) -> str:
    shown = [word if len(word) <= 30 else word[:27] + "..." for word in words[:5]]
    return ", ".join(shown) + (", ..." if len(words) > 5 else "")
