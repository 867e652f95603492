"""What the shell finds out about the input: notes on files, and labels that are words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from thresher.cli.render.warning_sink import say
from thresher.data.source import Source
from thresher.losses import REGRESSOR_LOSSES

Options = TypeVar("Options")


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


def _listed(words: tuple[str, ...]) -> str:
    shown = [word if len(word) <= 30 else word[:27] + "..." for word in words[:5]]
    return ", ".join(shown) + (", ..." if len(words) > 5 else "")
