"""Scales of columns that no row has, and of values that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from thresher import DataError, _core
from thresher.data.block import Block
from thresher.data.collisions import Collisions
from thresher.data.column_scales import ColumnScales
from thresher.data.source import Position


def block(values: list[float], first_line: int = 1) -> Block:
    """Return rows 1, 3, 5 and so on with one value each; the others have none."""
    starts = np.repeat(np.arange(len(values) + 1), 2)[:-1]
    native = _core.make_block(
        starts, np.arange(len(values)), np.array(values, float), first_line=first_line
    )
    return Block(native, "rows.svm", Position())


@pytest.mark.parametrize("how", ["variance", "max", "standard"])
def test_rows_without_features(how: str) -> None:
    for blocks in ([], [block([])], [block([0.0])]):
        scales = ColumnScales.measured(blocks, how)
        assert len(scales.keys) == 0
        keys: Any = np.array([0, 7, -1])
        assert scales.of(keys).tolist() == [1, 1, 1]
        assert scales.centres_of(keys).tolist() == [0, 0, 0]
    scales = ColumnScales.measured([block([0.0, 2.0])], "max")
    assert scales.of(np.array([0, 1, 2, -1])).tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(bad: float) -> None:
    blocks = [block([1, 2]), block([1, 2, bad, bad], first_line=11)]
    with pytest.raises(DataError, match=r"^rows\.svm:16: a value is not finite"):
        ColumnScales.measured(blocks, "variance")


def test_more_bits_are_named_if_they_help() -> None:
    found = str(Collisions(100_000, 18))
    assert found.endswith("share a weight with another; with 21 bits, at most 5 % would")
    assert str(Collisions(100_000, 21)).endswith("share a weight with another")
