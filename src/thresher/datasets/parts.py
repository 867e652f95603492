"""The result of a parser, and random splits of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Parts: TypeAlias = list[tuple[Any, Array]]
"""Pairs of rows (CSR) and targets: training, test and, in some sets, validation."""

SEED = 20_090_101  # seed of every random split and shuffle


def signs(y: Array) -> Array:
    """Return labels as -1 and +1: +1 for positive numbers or True.

    Parameters
    ----------
    y : array
    """
    return np.where(y > 0, 1.0, -1.0)


def draw(y: Array, share: float, stratified: bool) -> tuple[Array, Array]:
    """Return shuffled row numbers of a training part and of the rest.

    Parameters
    ----------
    y : array
        Targets.
    share : float
        Share of rows in the training part.
    stratified : bool
        Whether the share is the same in each class.
    """
    rng = np.random.default_rng(SEED)
    order = rng.permutation(y.size)
    groups = [order[y[order] == c] for c in np.unique(y)] if stratified else [order]
    train = np.concatenate([g[: round(share * g.size)] for g in groups])
    test = np.concatenate([g[round(share * g.size) :] for g in groups])
    return rng.permutation(train), rng.permutation(test)


def draw_counts(rows: int, counts: Sequence[int], of: int) -> list[Array]:
    """Draw the row numbers of several parts at random, no row twice.

    Parameters
    ----------
    rows : int
        Number of rows.
    counts : sequence of int
        Size of each part, if there are `of` rows; else parts are drawn in proportion.
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
