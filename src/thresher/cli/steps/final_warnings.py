"""Warnings that are known when all rows have been read. They come before results are written."""

from __future__ import annotations

from thresher.cli.render.warning_sink import say
from thresher.data.collisions import Collisions
from thresher.data.source import Source
from thresher.errors import DataWarning, setting


class BadLinesWarning(DataWarning):
    """Lines were left out because they are malformed."""


class CollisionWarning(DataWarning):
    """Many features share a weight with another."""


def warn_of_bad_lines(source: Source) -> None:
    """Warn if lines of a source were left out.

    Parameters
    ----------
    source : Source
    """
    if source.bad_lines.warning:
        say(BadLinesWarning(source.bad_lines.warning))


def collisions_of(source: Source) -> Collisions | None:
    """Return the collisions of a source's features; None if they are not known.

    Parameters
    ----------
    source : Source
    """
    if source.distinct is None or source.bits is None:
        return None
    return Collisions(source.distinct, source.bits)


def warn_of_collisions(source: Source) -> None:
    """Warn if more features share a weight than with the suggested number of bits.

    Parameters
    ----------
    source : Source
    """
    folded = collisions_of(source)
    if folded is not None and folded.suggested_bits > folded.bits:
        more = setting("bits", folded.suggested_bits)
        say(CollisionWarning(folded.text, hint=("with ", more, ", at most 5 % would")))
