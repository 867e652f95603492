"""Parses sets of svmlight text, or VW text whose names are numbers; both count from 1."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thresher.datasets.files import open_file
from thresher.datasets.parts import Array, Parts, draw, draw_counts, signs
from thresher.errors import DataError


def parse(paths: list[Path], width: int) -> Parts:
    """Read training and test files, or one file that is split 70/30.

    Parameters
    ----------
    paths : list of Path
    width : int
        Number of features.
    """
    parts = [_rows(path, width) for path in paths]
    if len(parts) > 1:
        return parts
    x, y = parts[0]
    return [(x[rows], y[rows]) for rows in draw(y, 0.7, stratified=True)]


def parse_drawn(paths: list[Path], width: int, counts: Sequence[int], of: int) -> Parts:
    """Read parts drawn at random from the last file; all rows of a first file are for training.

    Parameters
    ----------
    paths : list of Path
    width : int
    counts : sequence of int
        Sizes of the parts: training, validation, test; or validation, test.
    of : int
        Number of rows in the file that these sizes are for.
    """
    with open_file(paths[-1]) as stream:
        rows = sum(1 for _ in stream)
    drawn = [_rows(paths[-1], width, rows) for rows in draw_counts(rows, counts, of)]
    train, valid, test = [*(_rows(path, width) for path in paths[:-1]), *drawn]
    return [train, test, valid]


def _rows(path: Path, width: int, wanted: Array | None = None) -> tuple[Any, Array]:
    from sklearn.datasets import load_svmlight_file

    with open_file(path) as stream:
        if wanted is None:
            text = stream.read()
        else:
            chosen = set(wanted.tolist())
            text = b"".join(line for number, line in enumerate(stream) if number in chosen)
    if ".vw" in path.suffixes:  # `label |namespace index:value ...` without its namespace
        text = re.sub(rb"\|\S*", b"", text)
    try:
        x, y = load_svmlight_file(
            io.BytesIO(text), n_features=width, dtype=np.float32, zero_based=False
        )
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    if not y.size:
        raise DataError(f"{path}: the file has no rows")
    if not (np.isfinite(x.data).all() and np.isfinite(y).all()):
        raise DataError(f"{path}: a label or a value is not a finite number of single precision")
    return x, signs(y)
