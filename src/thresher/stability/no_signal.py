"""How many features are selected when labels have nothing to do with the rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import ParameterError
from thresher.model.supports import is_whole
from thresher.stability.bounds import Bound, fits_needed
from thresher.stability.halves import SelectionCounts

_TIMES = 2.0  # a count above this multiple of the bound contradicts the bound


@dataclass(frozen=True)
class WithoutSignal:
    """Numbers of features selected when there is no signal at all: labels are permuted.

    Attributes
    ----------
    counts : tuple of int
        Number of features selected, for each permutation of the labels.
    n_selected_mean : float
        Mean number of features that a fit selects with permuted labels; NaN without permutations.
    bound : Bound or None
        The bound that this number gives.

    Examples
    --------
    >>> from thresher.stability import WithoutSignal
    >>> found = WithoutSignal((5, 8, 6, 7, 5), 30.0)
    >>> found.mean
    6.2
    >>> print(found)
    selected when there is no signal at all: 6.2 features on average (5, 8, 6, 7, 5)
    """

    counts: tuple[int, ...] = ()
    n_selected_mean: float = float("nan")
    bound: Bound | None = None

    @property
    def mean(self) -> float:
        """Mean of the counts; NaN without permutations."""
        return float(np.mean(self.counts)) if self.counts else float("nan")

    def __str__(self) -> str:
        """Return the counts as a sentence."""
        if not self.counts:
            return "selected when there is no signal at all: not measured"
        told = ", ".join(map(str, self.counts))
        return (
            f"selected when there is no signal at all: {self.mean:.3g} features on average ({told})"
        )

    def contradicts(self, bound: Bound) -> bool:
        """Return whether the mean is more than twice a bound, and twice the own bound.

        The own bound is compared too, because fits on permuted labels may select more features
        than fits on the labels.

        Parameters
        ----------
        bound : Bound
            Of the selection by the labels.
        """
        numbers = [b.number for b in (bound, self.bound) if b is not None and b.number is not None]
        return bool(self.counts) and bound.number is not None and self.mean > _TIMES * max(numbers)


def n_selected(counts: Sequence[SelectionCounts], threshold: float, pairs: int) -> int:
    """Return how many features are selected by enough of the fits, for any value."""
    needed = fits_needed(threshold, pairs)
    return len(np.unique(np.concatenate([c.features[c.counts >= needed] for c in counts])))


def warn_of_features(owner: str, found: WithoutSignal, bound: Bound) -> None:
    """Warn if permuted labels select more features than the bound explains."""
    if found.contradicts(bound):
        warnings.warn(
            f"{owner}: features are not exchangeable, and the bound does not hold: with permuted "
            f"labels {found.mean:.3g} features are selected on average, all of them false, but "
            f"the bound on false selections is {bound.number:.3g}; frequent features are often "
            f"selected by chance more often than rare ones",
            UserWarning,
            stacklevel=3,
        )


def check_permutations(permutations: Any, owner: str) -> None:
    """Raise ParameterError if a number of permutations is not a whole number >= 0."""
    if not is_whole(permutations) or permutations < 0:
        raise ParameterError(
            f"{owner}: permutations must be a whole number >= 0; got {permutations!r}"
        )


# ---- labels of streams ---------------------------------------------------------------------------

_KEPT = 10_000  # rows whose labels are kept to draw from


class RandomLabels:
    """Labels for the rows of a stream that do not depend on the rows.

    Each row gets the label of a random earlier row; the first row keeps its own. It is drawn from a
    uniform sample of at most 10,000 of the earlier rows. So labels have the frequencies of the
    stream, and one reading is enough. The result depends on the seed and the labels, not on the
    size of blocks.

    Parameters
    ----------
    seed : int
    kept : int
        Size of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.stability.no_signal import RandomLabels
    >>> labels = np.repeat([1.0, 2.0, 3.0], 4)
    >>> RandomLabels(seed=0).drawn(labels).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 2.0]
    """

    def __init__(self, seed: int, kept: int = _KEPT) -> None:
        self.seed, self.kept = seed, kept
        self.begin()

    def begin(self) -> None:
        """Start a pass: the first row follows."""
        self._random = np.random.default_rng(self.seed)
        self._row = 0
        self._sample = np.zeros(0)

    def drawn(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return random labels of the next rows.

        Parameters
        ----------
        labels : array of shape (rows,)
            Their labels.
        """
        count = len(labels)
        rows = np.arange(self._row + 1, self._row + count + 1)  # rows so far
        shares = self._random.random((count, 2))  # row by row, so that blocks do not matter
        places = (shares[:, 0] * rows).astype(np.int64)  # row r replaces one of r, or none
        places = np.where(rows <= self.kept, rows - 1, places)
        drawn = (shares[:, 1] * np.minimum(rows - 1, self.kept)).astype(np.int64)
        size = int(min(self._row + count, self.kept))
        sample = np.zeros(size, labels.dtype)
        sample[: len(self._sample)] = self._sample
        stored = np.flatnonzero(places < self.kept)
        if count:
            found = _last_stored(places[stored], stored, drawn, count)
            if self._row == 0:
                found[0] = 0
            labels, given = np.where(found >= 0, labels[found], sample[drawn]), labels
            sample[places[stored]] = given[stored]  # of equal places the last one counts
        self._sample, self._row = sample, self._row + count
        return labels


def _last_stored(
    places: NDArray[np.int64], rows: NDArray[np.int64], drawn: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return the last row before each row that was stored at the drawn place; -1: none."""
    keys = np.sort(places * count + rows)
    at = np.searchsorted(keys, drawn * count + np.arange(count)) - 1
    keys = np.append(keys, -count - 1)  # for at = -1
    return np.where(keys[at] // count == drawn, keys[at] % count, -1)
