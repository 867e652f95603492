"""Backward elimination: which features to drop from a fit, without fitting again for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Estimate:
    """Coefficients of a fit, and how far they are from 0.

    Attributes
    ----------
    c : array of shape (features,)
    inverse : array of shape (features, features)
        Inverse of the curvature of the loss.
    covariance : array of shape (features, features)
    """

    c: NDArray[np.float64]
    inverse: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @property
    def wald(self) -> NDArray[np.float64]:
        """Each coefficient in units of its standard error."""
        variance = np.maximum(np.diag(self.covariance), 0.0)
        return np.asarray(self.c / np.maximum(np.sqrt(variance), 1e-300))

    def block(self, at: NDArray[np.intp]) -> Estimate:
        """Return the part of some features."""
        places = np.ix_(at, at)
        return Estimate(self.c[at], self.inverse[places], self.covariance[places])


def weakest(outputs: Sequence[Estimate], least: float, most: int) -> list[int]:
    """Return the features to drop, in their order: always the weakest of those that remain.

    A feature is as strong as its largest absolute Wald ratio over the outputs. If a feature is
    dropped, the others change as they do for a quadratic loss. So this is exact for the squared
    loss, and near for others.

    Parameters
    ----------
    outputs : sequence of Estimate
        Of the features that may be dropped, for each output.
    least : float
        Ratio of a feature that remains.
    most : int
        Number of features to drop.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.elimination import Estimate, weakest
    >>> copies = np.linalg.inv([[1.0, 0.99], [0.99, 1.0]])
    >>> weakest([Estimate(np.array([3.0, 2.9]), copies, copies)], least=2.0, most=2)
    [1]
    """
    states = [_Downdated(each) for each in outputs]
    dropped: list[int] = []
    remains = np.ones(len(outputs[0].c), bool)
    while remains.any() and len(dropped) < most:
        strength = np.max([state.strength() for state in states], axis=0)
        strength[~remains] = np.inf
        at = int(strength.argmin())
        if strength[at] >= least:
            break
        for state in states:
            state.drop(at)
        dropped.append(at)
        remains[at] = False
    return dropped


class _Downdated:
    """An estimate after some features were dropped.

    With T the inverse, V the covariance and g = T_j / T_jj, dropping feature j gives

        c - g c_j,   T - g T_j',   V - g u' - u g'   with u = V_j - g V_jj / 2

    Only the columns of dropped features are computed.
    """

    def __init__(self, given: Estimate) -> None:
        self.given, self.c = given, given.c.copy()
        self.variance = np.diag(given.covariance).copy()
        size = len(self.c)
        self.t, self.g, self.u = (np.zeros((size, 0)) for _ in range(3))

    def strength(self) -> NDArray[np.float64]:
        return np.asarray(np.abs(self.c) / np.sqrt(np.maximum(self.variance, 1e-300)))

    def drop(self, j: int) -> None:
        t = self.given.inverse[:, j] - self.g @ self.t[j]
        column = self.given.covariance[:, j] - self.g @ self.u[j] - self.u @ self.g[j]
        g = t / max(t[j], 1e-300)
        u = column - g * column[j] / 2
        self.c -= g * self.c[j]
        self.variance -= 2 * g * u
        self.t, self.g, self.u = (
            np.c_[one, new] for one, new in ((self.t, t), (self.g, g), (self.u, u))
        )
