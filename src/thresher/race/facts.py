"""What a race looks at before it begins: facts about the rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thresher.data.arrays import is_sparse, nonzeros
from thresher.race.scaling import ColumnScale

_LOOKED_AT = 1 << 22  # values from which the scales of columns are computed


@dataclass(frozen=True)
class Facts:
    """Facts about the rows of a race.

    Attributes
    ----------
    rows, features : int
    stored : int
        Number of stored values.
    outputs : int
        Number of models of one fit: 1, or the number of classes or labels.
    multilabel : bool
        Whether rows have any number of labels.
    rarest : float or None
        Share of the rows of the rarest class; None: rows are not of one class each.
    spread : float
        Largest scale of a column divided by the smallest; see `ColumnScale`.
    total : int
        Number of all rows; more than `rows`, if these are a sample of a source.

    Examples
    --------
    >>> import numpy as np
    >>> facts = facts_of(np.array([[1.0, 100.0], [0.5, 300.0]]), np.array([0, 1]), 1)
    >>> facts.rows, facts.features, facts.rarest, facts.spread > 100
    (2, 2, 0.5, True)
    """

    rows: int
    features: int
    stored: int
    outputs: int
    multilabel: bool
    rarest: float | None
    spread: float
    total: int

    @property
    def density(self) -> float:
        """Share of the values that are stored."""
        return self.stored / max(self.rows * self.features, 1)

    @property
    def complete(self) -> bool:
        """Whether these are all rows."""
        return self.rows == self.total

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON types."""
        return asdict(self)


def facts_of(X: Any, y: Any, outputs: int, total: int | None = None) -> Facts:
    """Return the facts about rows in memory.

    Parameters
    ----------
    X : CSR matrix or array
    y : array, or CSR matrix of labels
    outputs : int
        Number of outputs; 0: a regression.
    total : int, optional
        Number of all rows, if these are a sample.
    """
    rarest = None
    if outputs and not is_sparse(y):
        rarest = float(np.unique(y, return_counts=True)[1].min() / len(y))
    return Facts(
        rows=int(X.shape[0]),
        features=int(X.shape[1]),
        stored=nonzeros(X),
        outputs=max(outputs, 1),
        multilabel=is_sparse(y),
        rarest=rarest,
        spread=ColumnScale.of(X[:: 1 + nonzeros(X) // _LOOKED_AT]).spread,
        total=int(X.shape[0]) if total is None else total,
    )
