"""Sums of evidence: what a reading knows of every feature; sums of other rows can be added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.errors import ParameterError

_LEAST = 1e-300


@dataclass(frozen=True)
class EvidenceSums:
    """The sums of one output over all rows, for every feature that occurred (R-18).

    Attributes
    ----------
    keys : array of uint64 of shape (features,)
        Feature numbers, increasing.
    rows : array of shape (features,)
        Number of rows with a nonzero value.
    S : array of shape (features,)
        Sum of value times residual: y minus the prediction without the feature.
    realised, predicted : array of shape (features,)
        Sums of squared value times squared residual, and times the predicted variance.
    redrawn_S : array of shape (features, redraws)
        `S` with targets redrawn from the predictions.
    redrawn_D : array of shape (features, redraws) or None
        What the variance of a redraw adds to `predicted`; None: every redraw has the variance of
        the data, as in a regression.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.sums import EvidenceSums
    >>> one = EvidenceSums(*np.ones((5, 1)), np.ones((1, 2)), np.zeros((1, 2)))
    >>> two = one + one
    >>> two.S.tolist(), two.z().round(3).tolist()
    ([2.0], [1.414])
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.float64]
    S: NDArray[np.float64]
    realised: NDArray[np.float64]
    predicted: NDArray[np.float64]
    redrawn_S: NDArray[np.float32]
    redrawn_D: NDArray[np.float32] | None

    @classmethod
    def of_core(cls, sums: Mapping[str, Any], redraws: int) -> Self:
        """Return the sums that the core has."""

        def table(name: str) -> Any:
            values = sums[name]
            return values.reshape(-1, redraws) if values.size or not len(sums["keys"]) else None

        return cls(
            keys=sums["keys"],
            rows=sums["rows"],
            S=sums["S"],
            realised=sums["realised"],
            predicted=sums["predicted"],
            redrawn_S=table("redrawn_S"),
            redrawn_D=table("redrawn_D"),
        )

    @property
    def redraws(self) -> int:
        """Number of redraws."""
        return int(self.redrawn_S.shape[1])

    def z(self) -> NDArray[np.float64]:
        """Return z of every feature; 0 where the variance is 0."""
        return _ratio(self.S, (self.realised + 2 * self.predicted) / 3)

    def redrawn_z(self) -> NDArray[np.float32]:
        """Return the absolute z of every feature in every redraw."""
        D, variance = self.redrawn_D, self.predicted
        if D is None:
            D, variance = np.zeros(0, np.float32), (self.realised + 2 * self.predicted) / 3
        z = _core.redrawn_z(self.redrawn_S.ravel(), D.ravel(), variance)
        return np.asarray(z, np.float32).reshape(self.redrawn_S.shape)

    def __add__(self, other: EvidenceSums) -> EvidenceSums:
        """Return the sums over the rows of both: other rows, with other redraws."""
        return EvidenceSums.total([self, other])

    @classmethod
    def total(cls, parts: Sequence[EvidenceSums]) -> EvidenceSums:
        """Return the sums over the rows of all parts.

        Parameters
        ----------
        parts : sequence of EvidenceSums
            Of different rows, and with different seeds of the redraws.
        """
        parts = [part for part in parts if len(part.keys)] or list(parts[:1])
        if len({(part.redraws, part.redrawn_D is None) for part in parts}) != 1:
            raise ParameterError("sums of evidence need the same task and number of redraws")
        keys = np.unique(np.concatenate([part.keys for part in parts]))
        places = [np.searchsorted(keys, part.keys) for part in parts]

        def added(name: str) -> Any:
            arrays = [getattr(part, name) for part in parts]
            if arrays[0] is None:
                return None
            whole = np.zeros((len(keys), *arrays[0].shape[1:]), arrays[0].dtype)
            for at, array in zip(places, arrays, strict=True):
                whole[at] += array
            return whole

        names = ("rows", "S", "realised", "predicted", "redrawn_S", "redrawn_D")
        return cls(keys, **{name: added(name) for name in names})


def _ratio(S: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    found = S / np.sqrt(np.maximum(variance, _LEAST))
    return np.asarray(np.where(variance > _LEAST, found, 0.0))
