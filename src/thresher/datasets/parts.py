"""What a parser returns, and how rows are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Parts: TypeAlias = list[tuple[Any, Array]]
"""Rows (CSR) and targets: of training, of the test and, in some, of validation."""

SEED = 20_090_101  # of every random split and shuffle


def signs(y: Array) -> Array:
    """Map two-valued labels to -1/+1, positive (or true) ones to +1.

    Parameters
    ----------
    y : array
    """
    return np.where(y > 0, 1.0, -1.0)


def draw(y: Array, share: float, stratified: bool) -> tuple[Array, Array]:
    """Draw shuffled row numbers of a training part and of the rest.

    Parameters
    ----------
    y : array
        Targets.
    share : float
        Of the training part.
    stratified : bool
        Of each class the same share.
    """
    rng = np.random.default_rng(SEED)
    order = rng.permutation(y.size)
    groups = [order[y[order] == c] for c in np.unique(y)] if stratified else [order]
    train = np.concatenate([g[: round(share * g.size)] for g in groups])
    test = np.concatenate([g[round(share * g.size) :] for g in groups])
    return rng.permutation(train), rng.permutation(test)


def draw_counts(rows: int, counts: Sequence[int], of: int) -> list[Array]:
    """Draw row numbers, no row twice.

    Parameters
    ----------
    rows : int
        How many there are.
    counts : sequence of int
        How many of `of` rows each part has; other numbers of rows are drawn in proportion.
    of : int

    Examples
    --------
    >>> from thresher.datasets.parts import draw_counts
    >>> [part.size for part in draw_counts(100, (500, 20), 1000)]
    [50, 2]
    """
    order = np.random.default_rng(SEED).permutation(rows)
    ends = np.cumsum([max(1, round(rows * count / of)) for count in counts])
    return np.split(order, ends)[: len(counts)]
