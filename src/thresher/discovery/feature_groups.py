"""Evidence of groups of features, such as namespaces: the sum of their squared z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.discovery.error_rates import ErrorRates
from thresher.errors import ParameterError


@dataclass(frozen=True)
class GroupEvidence:
    """Error rates of groups of features.

    The statistic of a group is the sum of z^2 over its features. Groups have different sizes, and
    features of a group go along with each other. So it is compared with its own redraws: it is
    measured from their mean, in units of their standard deviation; a redraw is measured from the
    other redraws in the same way.

    Attributes
    ----------
    labels : array of shape (groups,)
    members : array of int of shape (features,)
        The number of each feature's group.
    rates : ErrorRates
        Of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.discovery.feature_groups import GroupEvidence
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(np.arange(100), 10)
    >>> z, redrawn = rng.normal(size=1000), rng.normal(size=(1000, 20))
    >>> z[:10] += 2.0
    >>> evidence = GroupEvidence.of(groups, z, redrawn, np.full(1000, 30.0))
    >>> np.flatnonzero(evidence.rates.qvalues <= 0.1).tolist()
    [0]
    """

    labels: NDArray[Any]
    members: NDArray[np.int64]
    rates: ErrorRates

    @classmethod
    def of(
        cls,
        groups: NDArray[Any],
        z: NDArray[np.float64],
        redrawn: NDArray[Any],
        rows: NDArray[np.float64],
    ) -> GroupEvidence:
        """Compute the error rates of groups.

        Parameters
        ----------
        groups : array of shape (features,)
            The group of each feature.
        z : array of shape (features,)
        redrawn : array of shape (features, redraws)
        rows : array of shape (features,)
            Number of rows with each feature.
        """
        labels, members = np.unique(groups, return_inverse=True)
        members = members.astype(np.int64)
        totals = np.bincount(members, z * z, len(labels))
        null = np.stack(
            [np.bincount(members, column**2.0, len(labels)) for column in redrawn.T], axis=1
        )
        count = null.shape[1]
        mean, second = null.mean(axis=1), (null**2).mean(axis=1)
        others = (count * mean[:, None] - null) / (count - 1)
        seconds = (count * second[:, None] - null**2) / (count - 1)
        strength = (totals - mean) / _sd(second - mean**2, count)
        against = (null - others) / _sd(seconds - others**2, count - 1)
        frequency = np.asarray(np.bincount(members, rows, len(labels)), np.float64)
        return cls(
            labels,
            members,
            ErrorRates.of(np.maximum(strength, 0.0), np.maximum(against, 0.0), frequency),
        )


def groups_of(groups: Any, width: int) -> NDArray[Any]:
    """Return the group of each column as an array; raise ParameterError if it has another length.

    Parameters
    ----------
    groups : array of shape (features,)
    width : int
        Number of columns.
    """
    found = np.asarray(groups)
    if found.shape != (width,):
        raise ParameterError(
            owner="FeatureDiscovery",
            parameter="feature_groups",
            value=f"an array of shape {found.shape}",
            allowed=f"the group of each of the {width} columns",
        )
    return found


def _sd(variance: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    return np.asarray(np.sqrt(np.maximum(variance * count / (count - 1), 1e-12)))
