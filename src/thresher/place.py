"""Where a model stands among those of the search it came from, as its file keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from thresher.frontier import Dot, Frontier

_MANY = 500  # models of a search that are kept at most
_LEAST = 1e-9  # nonzeros that are not 0, in the mean over folds


@dataclass(frozen=True)
class Place:
    """A model among those of its search: error against nonzeros.

    Attributes
    ----------
    dots : tuple of Dot
        Models that have an error.
    measure : str
        What the errors are.
    at : int
        Which of them it is.

    Examples
    --------
    >>> from thresher.frontier import Dot, Frontier
    >>> from thresher.place import Place
    >>> dots = [Dot("a", 9, 0.3), Dot("b", 9, float("nan")), Dot("c", 99, 0.1)]
    >>> place = Place.of(Frontier(dots), 2)
    >>> place.at, place.frontier.best
    (1, 1)
    >>> Place.from_dict(place.to_dict()) == place
    True
    """

    dots: tuple[Dot, ...]
    measure: str
    at: int

    @classmethod
    def of(cls, frontier: Frontier, at: int) -> Place | None:
        """Return the place of a point; None where it has no error.

        Of a large search the frontier is kept, and of the others the first.

        Parameters
        ----------
        frontier : Frontier
        at : int
        """
        sound = [i for i, dot in enumerate(frontier.dots) if not dot.failed]
        if at not in sound:
            return None
        matter = {at, *frontier.efficient}  # the best and the chosen are of the frontier
        others = [i for i in sound if i not in matter][: max(0, _MANY - len(matter))]
        kept = sorted({*matter, *others})
        dots = (frontier.dots[i] for i in kept)
        told = tuple(Dot(d.name, float(d.nonzeros), float(d.error), _real(d.spread)) for d in dots)
        return cls(told, frontier.measure, kept.index(at))

    @property
    def frontier(self) -> Frontier:
        """The models of the search, which tells the best of them."""
        return Frontier(self.dots, self.measure)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        dots = [[dot.name, dot.nonzeros, dot.error, dot.spread] for dot in self.dots]
        return {"measure": self.measure, "at": self.at, "models": dots}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Place:
        """Make a place of what `to_dict` returned; raise ValueError where that was not it.

        Parameters
        ----------
        values : mapping
        """
        measure, at, models = values["measure"], values["at"], values["models"]
        if (
            not isinstance(measure, str)
            or not isinstance(models, list)
            or isinstance(at, bool)
            or not isinstance(at, int)
            or not 0 <= at < len(models)
        ):
            raise ValueError("its frontier cannot be read")
        dots = []
        for name, nonzeros, error, spread in models:
            numbers = [nonzeros, error, 0.0 if spread is None else spread]
            if not isinstance(name, str) or not all(type(number) is float for number in numbers):
                raise ValueError("its frontier cannot be read")
            if (
                not all(map(math.isfinite, numbers))
                or not (nonzeros == 0 or _LEAST <= nonzeros < 2.0**64)
                or numbers[2] < 0
            ):
                raise ValueError("its frontier has numbers that no model has")
            dots.append(Dot(name, nonzeros, error, spread))
        return cls(tuple(dots), measure, at)


def tell_place(estimator: Any, place: Place | None) -> None:
    """Let the model of a fitted estimator know its place; further learning forgets it.

    Parameters
    ----------
    estimator : estimator
    place : Place or None
    """
    estimator._model = replace(estimator.model_, frontier=place)
    estimator._place = place


def _real(spread: float | None) -> float | None:
    return None if spread is None or not math.isfinite(spread) else float(spread)
