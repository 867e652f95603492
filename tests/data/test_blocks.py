"""Blocks: places of rows, errors of rows, labels, and sums over features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from thresher import DataError, _core
from thresher.data.block import Block
from thresher.data.labels import LabelColumns, LabelSets, ManyClasses
from thresher.data.matrix_source import LabelArray, MatrixSource
from thresher.data.source import Position
from thresher.data.targets import Targets


def block(rows: int, file: str = "rows.svm", **given: Any) -> Block:
    """Return rows with one feature each: 0, 1, 2 and so on."""
    native = _core.make_block(np.arange(rows + 1), np.arange(rows), np.ones(rows), **given)
    return Block(native, file, Position())


def test_places() -> None:
    assert block(0).place(0) == "rows.svm"
    assert [block(2, first_line=5).place(row) for row in range(2)] == ["rows.svm:5", "rows.svm:6"]
    assert block(1, bytes=9).label_place(0) == "rows.svm:1:1"
    assert block(1).label_place(0) == "rows.svm:1"


def test_errors_of_the_core_get_the_place_of_their_row() -> None:
    def located(text: str, rows: int = 2) -> str:
        return str(block(rows).located(_core.DataError(text)))

    assert located("row 1: is bad\nand long") == "rows.svm:2: is bad\nand long"
    assert located("row 2: is bad") == "row 2: is bad"
    assert located("row 0: is bad", rows=0) == "row 0: is bad"
    assert located("a bad row 1: x") == "a bad row 1: x"


def test_rows_without_labels_have_no_sets_of_labels() -> None:
    for rows in (0, 2):
        with pytest.raises(DataError, match=r"rows\.svm.*: rows have no labels"):
            block(rows).label_sets()
    starts, labels = block(3, labels=np.array([1, np.nan, 2])).label_sets()
    assert (starts.tolist(), labels.tolist()) == ([0, 1, 1, 2], [1, 2])


def test_sums_over_features() -> None:
    native = _core.make_block(
        np.array([0, 2, 2, 5]), np.array([1, 2**40, 1, 3, 9]), np.array([2.0, 1, 0, -1, 5])
    )
    made = Block(native, "", Position())
    keys = np.array([1, 3, 2**40], np.uint64)
    assert made.sums(keys, np.array([10.0, 20, 40])).tolist() == [50, 0, 20]
    assert made.sums(keys[:0], np.zeros(0)).tolist() == [0, 0, 0]


def test_a_matrix_without_rows_has_no_block() -> None:
    assert list(MatrixSource(np.zeros((0, 3)), np.zeros(0)).blocks()) == []
    (made,) = MatrixSource(np.zeros((1, 3)), np.zeros(1)).blocks()
    assert made.rows == 1


# ---- labels --------------------------------------------------------------------------------------


def test_labels_that_are_all_known_take_none_of_a_checkpoint() -> None:
    labels = ManyClasses([1, 2])
    labels.state = labels.state
    with pytest.raises(ValueError, match="are all given now"):
        labels.state = [1]


def test_labels_of_columns() -> None:
    with pytest.raises(DataError, match="no row has a label"):
        LabelSets([])
    labels = LabelColumns(np.array(["a", "b"]))
    targets = labels.targets(LabelArray(sp.csr_array(np.array([[0, 1], [0, 0], [1, 1]]))))
    assert [one.tolist() for one in targets[:]] == [[-1, -1, 1], [1, -1, 1]]
    with pytest.raises(DataError, match="y must have 2 columns, one per label"):
        labels.targets(LabelArray(sp.csr_array(np.eye(3))))


def test_targets_are_a_sequence() -> None:
    targets = Targets.of_classes(np.array([2, 0, 1]), 3)
    every = [targets[output].tolist() for output in range(3)]
    assert every == [[-1, 1, -1], [-1, -1, 1], [1, -1, -1]]
    assert [one.tolist() for one in targets[1:]] == every[1:]
    assert [one.tolist() for one in targets[::-1]] == every[::-1]
    assert targets[-3].tolist() == every[0]
    for output in (3, -4):
        with pytest.raises(IndexError):
            targets[output]
