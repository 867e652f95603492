"""Error against nonzeros: which of several models are worth having."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Dot:
    """One model of a search: what it costs in nonzeros, and how often it errs.

    Attributes
    ----------
    name : str
        What tells it from the others, such as "gravity=0.0001".
    nonzeros : float
        Weights that are not zero.
    error : float
        Its error; not finite where it failed.
    spread : float or None
        Standard error of the error, where it is known.
    failure : str
        Why it failed.

    Examples
    --------
    >>> from thresher.frontier import Dot
    >>> Dot("gravity=0.01", 120, 0.08, 0.01).failed
    False
    """

    name: str
    nonzeros: float
    error: float
    spread: float | None = None
    failure: str = ""

    @property
    def failed(self) -> bool:
        """Whether there is no error to speak of."""
        return not math.isfinite(self.error)


class Frontier:
    """Models by nonzeros and error: the best, the frontier, and the sparsest good one.

    Parameters
    ----------
    dots : sequence of Dot
        In any order.
    measure : str
        What the errors are.

    Attributes
    ----------
    best : int or None
        The point of the least error; of equals the sparsest. None where all failed.
    chosen : int or None
        The sparsest point whose error is within one standard error of the best one's; without
        standard errors, the best.
    efficient : tuple of int
        Points that no other beats in both nonzeros and error, from sparse to dense.

    Examples
    --------
    >>> from thresher.frontier import Dot, Frontier
    >>> points = [Dot("a", 900, 0.07, 0.01), Dot("b", 90, 0.075, 0.01), Dot("c", 80, 0.3)]
    >>> frontier = Frontier([*points, Dot("d", 1000, 0.08, 0.01)])
    >>> frontier.best, frontier.chosen, frontier.efficient
    (0, 1, (2, 1, 0))
    """

    def __init__(self, dots: Sequence[Dot], measure: str = "error") -> None:
        self.dots, self.measure = tuple(dots), measure
        sound = [i for i, point in enumerate(self.dots) if not point.failed]
        order = sorted(sound, key=lambda i: (self.dots[i].nonzeros, self.dots[i].error, i))
        self.best = min(
            order, key=lambda i: (self.dots[i].error, self.dots[i].nonzeros), default=None
        )
        self.chosen = self.best
        if self.best is not None:
            limit = self.dots[self.best].error + (self.dots[self.best].spread or 0.0)
            self.chosen = next(i for i in order if self.dots[i].error <= limit)
        efficient: list[int] = []
        for i in order:
            if not efficient or self.dots[i].error < self.dots[efficient[-1]].error:
                efficient.append(i)
        self.efficient = tuple(efficient)

    def __len__(self) -> int:
        return len(self.dots)

    def mark(self, point: int) -> str:
        """Say in a word what a point is, or why it failed.

        Parameters
        ----------
        point : int
        """
        if self.dots[point].failed:
            why = self.dots[point].failure
            return f"failed: {why}" if why else "failed"
        words = [("best", point == self.best), ("chosen", point == self.chosen)]
        found = [word for word, true in words if true]
        return " and ".join(found) or ("frontier" if point in self.efficient else "")


def errors_of(
    scores: NDArray[np.float64], scoring: Any, classifies: bool
) -> tuple[str, NDArray[np.float64]]:
    """Return what errors are called, and the errors of scores.

    Parameters
    ----------
    scores : array
    scoring : str, callable or None
    classifies : bool

    Examples
    --------
    >>> import numpy as np
    >>> errors_of(np.array([0.9]), None, True)[0]
    'error rate'
    >>> errors_of(np.array([-0.25]), "neg_log_loss", True)
    ('log loss', array([0.25]))
    """
    name = scoring or ("accuracy" if classifies else "r2")
    if not isinstance(name, str):
        return "minus score", -scores
    if name.startswith("neg_"):
        return name.removeprefix("neg_").replace("_", " "), -scores
    return "error rate" if name == "accuracy" else f"1 - {name}", 1.0 - scores


def drawn_nonzeros(dot: Dot) -> float:
    """Return where a point stands on a logarithmic scale that has a place for zero."""
    return math.log10(dot.nonzeros + 1.0)


def ticks_of(low: float, high: float) -> list[float]:
    """Return about 4 round numbers from low to high."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-12)))
    while (high - low) / step > 5:
        step *= 2 if f"{step:e}"[0] in "15" else 2.5
    while (high - low) / step < 2.5:
        step /= 2 if f"{step:e}"[0] in "12" else 2.5
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def counts_of(low: float, high: float) -> list[int]:
    """Return round counts from low to high, both on the scale of `drawn_nonzeros`.

    Powers of ten, and 0; where these are few, also twice and five times them.
    """
    powers, room = [10**i for i in range(16)], 0.01 * (high - low)
    for counts in (powers, [k * n for n in powers for k in (1, 2, 5)]):
        found = [n for n in (0, *counts) if low - room <= math.log10(n + 1.0) <= high + room]
        if len(found) >= 3:
            return found
    ends = round(10**low - 1), round(10**high - 1)
    return found if len(found) == 2 else sorted({max(0, end) for end in ends})


def range_of(values: Sequence[float], margin: float = 0.06) -> tuple[float, float]:
    """Return bounds that leave room around the values."""
    low, high = min(values), max(values)
    room = (high - low) * margin or abs(high) * margin or 1.0
    return low - room, high + room
