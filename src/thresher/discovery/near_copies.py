"""Near-copies among the selected features, found by their redraws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, pdtrc

from thresher.discovery.sums import EvidenceSums

SHARE = 0.1  # of selected features that are near-copies: more is said
_LEAST = 8  # redraws, of all outputs
_MOST = 2000  # features that are compared: the strongest
_COPY = 0.8  # correlation of features that are near-copies
_ALARM = 0.05  # largest probability of a false alarm


@dataclass(frozen=True)
class NearCopies:
    """The redraws of some features.

    Redraws are random projections of the columns: their correlation estimates that of the columns,
    where rows are not predicted with certainty.

    Attributes
    ----------
    at : array of int
        Positions of the features.
    redraws : array of shape (features, redraws)
        With sum of squares 1.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.near_copies import NearCopies
    >>> from thresher.discovery.sums import EvidenceSums
    >>> S = np.random.default_rng(0).normal(size=(4, 20))
    >>> S[3] = 2 * S[1]
    >>> sums = EvidenceSums(*np.ones((5, 4)), S, None)
    >>> found = NearCopies.of([sums], np.arange(4), np.ones(4))
    >>> found.share(np.arange(4)), found.share(np.arange(3))
    ((0.5, [1, 3]), (0.0, [1, 2]))
    """

    at: NDArray[np.intp]
    redraws: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        sums: Sequence[EvidenceSums],
        chosen: NDArray[np.intp],
        strength: NDArray[np.float64],
    ) -> NearCopies:
        """Return the redraws of the strongest selected features.

        Parameters
        ----------
        sums : sequence of EvidenceSums
        chosen : array of int
            Positions of the selected features.
        strength : array of shape (features,)
            Of all features.
        """
        at = chosen[np.argsort(-strength[chosen], kind="stable")][:_MOST]
        drawn = np.concatenate([each.redrawn_S[at] for each in sums], axis=1)
        size = np.sqrt((drawn.astype(np.float64) ** 2).sum(axis=1))
        return cls(at, drawn / np.where(size > 0, size, 1.0)[:, None])

    def enough(self, chosen: NDArray[np.intp]) -> bool:
        """Return whether there are enough redraws to tell near-copies from chance.

        The squared correlation of two independent features over R redraws has the distribution
        Beta(1 / 2, (R - 1) / 2). The number of pairs that look alike is about Poisson.

        Parameters
        ----------
        chosen : array of int
            Positions of the features to compare.
        """
        n, redraws = int(np.isin(self.at, chosen).sum()), int(self.redraws.shape[1])
        pairs = n * (n - 1) / 2 * betaincc(0.5, (redraws - 1) / 2, _COPY**2)
        alarm = pdtrc(np.floor(SHARE * n / 2), pairs) if pairs > 0 else 0.0  # more than SHARE
        return redraws >= _LEAST and bool(alarm <= _ALARM)

    def share(self, chosen: NDArray[np.intp]) -> tuple[float, list[int]]:
        """Return the share of features with a near-copy, and the positions of the nearest pair.

        Parameters
        ----------
        chosen : array of int
            Positions of the features to compare.
        """
        kept = np.isin(self.at, chosen)
        at, unit = self.at[kept], self.redraws[kept]
        if len(at) < 2:
            return 0.0, []
        alike = np.abs(unit @ unit.T)
        np.fill_diagonal(alike, 0.0)
        nearest = np.unravel_index(int(alike.argmax()), alike.shape)
        share = float((alike.max(axis=1) > _COPY).mean())
        return share, at[list(nearest)].tolist()
