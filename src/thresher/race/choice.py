"""The choice of the winner: the sparsest candidate that is about as good as the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from thresher.race.measures import mean_and_error
from thresher.race.result import Entrant


@dataclass(frozen=True)
class Scored:
    """The losses of a candidate, row by row.

    Attributes
    ----------
    losses : array of shape (rows,)
        Of the rows that were held out.
    error : float
        Share of wrong labels; for a regression the mean loss.
    nonzeros : float
    slope : float
        The number that decisions were multiplied by; see `slope_of`.
    """

    losses: NDArray[np.float64]
    error: float
    nonzeros: float
    slope: float = 1.0


def judged(
    entrants: Sequence[Entrant],
    scored: Mapping[int, Scored],
    weights: NDArray[np.float64],
    tolerance: float,
) -> list[Entrant]:
    """Return the entrants with their differences to the best, and mark the winner.

    The best has the least mean loss; if several have it, the least error, then the fewest nonzero
    weights. The winner is the candidate with the fewest nonzero weights among those whose mean
    loss is at most `tolerance` standard errors larger. The standard error is that of the mean
    difference to the best, over the same rows: losses of the same row go up and down together, so
    differences are known better than losses.

    Parameters
    ----------
    entrants : sequence of Entrant
    scored : mapping
        The losses of those entrants that were measured, by their number.
    weights : array of shape (rows,)
    tolerance : float
    """
    means = {n: mean_and_error(one.losses, weights)[0] for n, one in scored.items()}
    best = min(means, key=lambda n: (means[n], scored[n].error, scored[n].nonzeros, n))
    behind = {
        n: mean_and_error(one.losses - scored[best].losses, weights) for n, one in scored.items()
    }
    within = [n for n, (mean, error) in behind.items() if n == best or mean <= tolerance * error]
    winner = min(within, key=lambda n: (scored[n].nonzeros, means[n], n))
    found = []
    for n, entrant in enumerate(entrants):
        if n not in scored:
            found.append(entrant)
            continue
        mean, error = behind[n]
        found.append(
            replace(
                entrant,
                behind=mean,
                behind_error=0.0 if n == best else error,
                chosen=n == winner,
                why=_why(n, best, winner, n in within, mean, error, tolerance),
            )
        )
    return found


def _why(
    n: int, best: int, winner: int, within: bool, mean: float, error: float, tolerance: float
) -> str:
    limit = f"{tolerance:g} standard error{'' if tolerance == 1 else 's'}"
    if n == winner == best:
        return f"the least loss; no sparser candidate is within {limit} of it"
    if n == winner:
        return f"the sparsest candidate within {limit} of the least loss"
    if n == best:
        return f"the least loss, but a sparser candidate is within {limit} of it"
    if within:
        return f"within {limit} of the least loss, but not the sparsest"
    times = "" if not error > 0 else f", which is {mean / error:.3g} standard errors"
    return f"its loss is larger by {mean:.3g}{times}"
