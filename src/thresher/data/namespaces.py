"""Namespaces of VW text that occur in a source, and pairs of them that `interactions` names."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from thresher.errors import DataWarning, setting

_SHOWN = 20  # namespaces in a warning
_ANY = ":"  # stands for any namespace


class NamespaceWarning(DataWarning):
    """A pair of `interactions` makes no feature, because a namespace does not occur."""


class Namespaces:
    """Collects the namespaces of all rows, and warns of pairs that make no feature.

    Parameters
    ----------
    pairs : sequence of str
        First letters of two namespaces; ":" is any namespace.

    Examples
    --------
    >>> found = Namespaces(["ua", "ux"])
    >>> found.add([b"user", b"ad"])
    >>> print(found.warning())
    interactions='ux' makes no feature: no namespace begins with 'x'; the namespaces are ad, user
    """

    def __init__(self, pairs: Sequence[str]) -> None:
        self.pairs = tuple(pairs)
        self.seen: set[str] = set()
        self._warned = False

    def add(self, spaces: Iterable[bytes]) -> None:
        """Add namespaces that occur; the default one is empty.

        Parameters
        ----------
        spaces : iterable of bytes
        """
        self.seen.update(space.decode(errors="replace") for space in spaces)

    def warning(self) -> NamespaceWarning | None:
        """Return the warning after all rows; None if all pairs make features."""
        letters = {space[:1] or " " for space in self.seen}
        idle = [
            pair
            for pair in self.pairs
            if not all(letter == _ANY or letter in letters for letter in pair)
        ]
        if not idle:
            return None
        lacking = sorted({k for pair in idle for k in pair if k != _ANY and k not in letters})
        named = sorted(space or "the default one" for space in self.seen)
        more = f" and {len(named) - _SHOWN:,} others" if len(named) > _SHOWN else ""
        known = f"the namespaces are {', '.join(named[:_SHOWN])}{more}"
        if not named:
            known = "no row has a namespace; interactions are made of VW text only"
        settings: list[object] = []
        for pair in idle:
            settings += [", " if settings else "", setting("interactions", pair)]
        makes = "makes" if len(idle) == 1 else "make"
        return NamespaceWarning(
            (
                *settings,  # type: ignore[arg-type]
                f" {makes} no feature: no namespace begins with "
                f"{' or '.join(map(repr, lacking))}; {known}",
            )
        )

    def warn(self) -> None:
        """Warn once of pairs that make no feature."""
        found = None if self._warned else self.warning()
        self._warned = True
        if found is not None:
            warnings.warn(found, stacklevel=3)
