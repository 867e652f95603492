"""Parses tables of the UCI repository."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from thresher.datasets.files import open_file
from thresher.datasets.parts import Array, Parts, draw, signs
from thresher.errors import DataError


def parse(
    paths: list[Path],
    sizes: tuple[int, int],
    positive: str | None,
    label: int = -1,
    drop: Collection[int] = (),
    onehot: Collection[int] = (),
    header: bool = False,
    comma: str | None = ",",
) -> Parts:
    """Read a table and split it at random.

    Parameters
    ----------
    paths : list of Path
    sizes : tuple of int
        Number of training and test rows; a table of another length is split in proportion.
    positive : str or None
        Label of class +1; None for regression.
    label : int
        The column of labels.
    drop, onehot : collection of int
        Columns to leave out, and columns of categories.
    header : bool
        Whether the first line names columns.
    comma : str or None
        The separator; None for white space.
    """
    try:
        cells = _cells(paths[0], header, comma)
        return _parts(cells, sizes, positive, label, drop, onehot)
    except (ValueError, IndexError) as error:
        raise DataError(f"{paths[0]}: {error}") from error


def _cells(path: Path, header: bool, comma: str | None) -> Array:
    with open_file(path) as stream:
        lines = [line for line in stream.read().decode("ascii").splitlines() if line.strip()]
    rows = [[cell.strip() for cell in line.split(comma)] for line in lines[header:]]
    if not rows:
        raise ValueError("the file has no rows")
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(f"row {number} has {len(row)} cells, row 1 has {len(rows[0])}")
    return np.array(rows)


def _parts(
    cells: Array,
    sizes: tuple[int, int],
    positive: str | None,
    label: int,
    drop: Collection[int],
    onehot: Collection[int],
) -> Parts:
    import scipy.sparse as sp

    target = cells[:, label]
    is_real = positive is None  # zoo writes its class numbers as y1 .. y7
    y = _numbers(np.char.lstrip(target, "y")) if is_real else signs(target == positive)
    train, test = draw(y, sizes[0] / sum(sizes), stratified=False)
    blocks: list[Array] = []
    for j in sorted(set(range(cells.shape[1])) - {label % cells.shape[1], *drop}):
        known = cells[:, j] != "?"
        if j in onehot:
            blocks.append(cells[:, j, None] == np.unique(cells[known, j]))
        else:
            column = np.full(len(cells), np.nan)
            column[known] = _numbers(cells[known, j])
            blocks.append(_scaled(column, train))
    x = sp.csr_matrix(np.hstack(blocks).astype(np.float32))
    return [(x[train], y[train]), (x[test], y[test])]


def _numbers(cells: Array) -> Array:
    numbers = cells.astype(float)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{cells[~np.isfinite(numbers)][0]!s} is not a finite number")
    return numbers


def _scaled(column: Array, train: Array) -> Array:
    """Return a column scaled to [0, 1] over training rows; missing values are 0."""
    seen = column[train][~np.isnan(column[train])]
    low, high = (seen.min(), seen.max()) if seen.size else (0.0, 1.0)
    column = (column - low) / (high - low if high > low else 1.0)
    return np.nan_to_num(column, nan=0.0)[:, None]
