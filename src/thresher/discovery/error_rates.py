"""Error rates of a selection: how many features without effect would look as strong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core

LEAST = 2.0  # strength of a feature that is selected
_LIKE = 50  # least number of features of about the same frequency, for a p-value
_BINS = 2  # bins of the frequency in a factor of 2


@dataclass(frozen=True)
class ErrorRates:
    """Strength of each feature against the same statistic of redrawn targets.

    Attributes
    ----------
    strength : array of shape (features,)
        |z|, or another statistic that is large for features with effect.
    expected_false : array of shape (features,)
        Number of features without effect that are expected to be at least as strong.
    qvalues : array of shape (features,)
        Expected share of features without effect among those at least as strong (FDR).
    redrawn : array of float32 of shape (features, R)
        The same statistic in each redraw.
    rows : array of shape (features,)
        Number of rows with the feature.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.error_rates import ErrorRates
    >>> rng = np.random.default_rng(0)
    >>> null = np.abs(rng.normal(size=(1000, 20)))
    >>> rates = ErrorRates.of(np.r_[8.0, np.abs(rng.normal(size=999))], null, np.full(1000, 50))
    >>> float(rates.expected_false[0]), int((rates.qvalues <= 0.1).sum())
    (0.05, 1)
    """

    strength: NDArray[np.float64]
    expected_false: NDArray[np.float64]
    qvalues: NDArray[np.float64]
    redrawn: NDArray[np.float32]
    rows: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        strength: NDArray[np.float64],
        redrawn: NDArray[Any],
        rows: NDArray[np.float64],
    ) -> ErrorRates:
        """Compare with redraws.

            E0(t) = (1 + #{strength* >= t}) / R,   FDR(t) = E0(t) / #{strength >= t},
            q_j = least FDR(t) over 2 <= t <= strength_j

        q is 1 for a strength below 2. Features of one row have at most sqrt(3), and all of them
        together if the label of the row surprises the model; a long row would bring hundreds.

        Parameters
        ----------
        strength : array of shape (features,)
        redrawn : array of shape (features, R)
            The same statistic in each redraw.
        rows : array of shape (features,)
            Number of rows with the feature.
        """
        single = redrawn.astype(np.float32, copy=False)
        order = np.argsort(strength, kind="stable")
        weakest_first = strength[order].astype(np.float32)
        stronger = _core.exceedances(single.ravel(), weakest_first)
        expected = (1 + stronger) / redrawn.shape[1]
        selected = len(strength) - np.searchsorted(weakest_first, weakest_first)
        share = np.where(weakest_first >= LEAST, expected / selected, 1.0)
        q = np.minimum(1.0, np.minimum.accumulate(share))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return cls(strength, expected[back], q[back], single, rows)

    @property
    def pvalues(self) -> NDArray[np.float64]:
        """Share of redraws at least as strong, of features that are about as frequent."""
        return self._by_frequency[0]

    @property
    def alike(self) -> NDArray[np.int64]:
        """Number of features that are about as frequent."""
        return self._by_frequency[1]

    @cached_property
    def _by_frequency(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return _by_frequency(self.strength.astype(np.float32), self.redrawn, self.rows)

    def by_fdr(self, fdr: float) -> NDArray[np.intp]:
        """Return the features with a q-value of at most `fdr`."""
        return np.flatnonzero((self.qvalues <= fdr) & (self.strength >= LEAST))

    def by_number(self, expected_false: float) -> NDArray[np.intp]:
        """Return the features for which at most this number of false ones is expected."""
        return np.flatnonzero((self.expected_false <= expected_false) & (self.strength >= LEAST))


def _by_frequency(
    strength: NDArray[np.float32], redrawn: NDArray[np.float32], rows: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return p-values against redraws of features within a factor 2 in frequency, at least 50."""
    bins = np.floor(_BINS * np.log2(np.maximum(rows, 1.0))).astype(np.int64)
    present = np.unique(bins)
    sorted_redraws = {b: np.sort(redrawn[bins == b], axis=None) for b in present.tolist()}
    sizes = {b: int((bins == b).sum()) for b in present.tolist()}
    p, alike = np.ones(len(strength)), np.zeros(len(strength), np.int64)
    for own in present.tolist():
        reach = _BINS
        near = [b for b in sizes if abs(b - own) <= reach]
        while sum(sizes[b] for b in near) < min(_LIKE, len(strength)):
            reach += 1
            near = [b for b in sizes if abs(b - own) <= reach]
        at = np.flatnonzero(bins == own)
        stronger = np.zeros(len(at))
        for b in near:
            pool = sorted_redraws[b]
            stronger += len(pool) - np.searchsorted(pool, strength[at])
        alike[at] = sum(sizes[b] for b in near)
        p[at] = (1 + stronger) / (1 + alike[at] * redrawn.shape[1])
    return p, alike
