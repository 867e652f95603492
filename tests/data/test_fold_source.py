"""Rows of a source inside or outside of a fold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from thresher import DataError, FTRLClassifier, scan
from thresher.data.fold_source import FoldSource
from thresher.data.row_folds import fold_numbers


def rows_of(source: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the features, the labels and the weights of all rows."""
    features, labels, weights = [], [], []
    for block in source.blocks():
        keys = np.split(np.asarray(block.native.keys), np.asarray(block.native.starts)[1:-1])
        features += [key.tolist() for key in keys]
        sets = block.label_sets()
        labels += [own.tolist() for own in np.split(sets[1], sets[0][1:-1])]
        weights += [1.0] * block.rows if block.weights is None else block.weights.tolist()
    return features, labels, weights


ROW = pd.DataFrame({"g": [1.0]})
TEXTS = {
    "rows.svm": "".join(f"{i % 3} {1 + i % 5}:1 {7 + i}:2\n" for i in range(100)),
    "rows.vw": "".join(f"{i % 2 * 2 - 1} {1 + i % 4} |a word{i}\n" for i in range(100)),
    "rows.csv": "y,a,b\n" + "".join(f"c{i % 3},{i},w{i % 7}\n" for i in range(100)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_both_parts_are_all_rows(tmp_path: Path, name: str) -> None:
    """Features, labels and weights of the rows stay, in their order."""
    file = tmp_path / name
    file.write_text(TEXTS[name])
    source = scan(file, **({"label": "y"} if name.endswith("csv") else {}))
    every = rows_of(source)
    folds = fold_numbers(0, 100, 4)
    for outside in (False, True):
        part = FoldSource(source, 2, 4, outside)
        own = np.flatnonzero((folds == 2) != outside)
        for found, expected in zip(rows_of(part), every, strict=True):
            assert found == [expected[row] for row in own]
        assert rows_of(part) == rows_of(part)
        assert part.named == source.named
        assert part.described() == source.described()


def test_blocks_without_a_row_of_the_fold() -> None:
    """They are left out; positions count them, and with names all rows come."""
    rows = [({f"f{i}": 1.0}, i % 2) for i in range(40)]
    source = scan(lambda: iter([part for row in rows for part in (row, (ROW, [1]))]))
    part = FoldSource(source, 1, 4)
    own = np.flatnonzero(fold_numbers(0, 80, 4) == 1)
    every = rows_of(source)[0]
    assert rows_of(part)[0] == [every[row] for row in own]
    blocks = list(part.blocks())
    assert len(blocks) == len(own) < 30
    assert [block.end.offset for block in blocks] == (own + 1).tolist()
    for at in (0, 3, len(blocks) - 1):
        rest = part.blocks(blocks[at].end)
        assert [block.end for block in rest] == [block.end for block in blocks[at + 1 :]]
    assert sum(block.rows for block in part.blocks(names="blocks")) == 80


def test_rows_with_several_labels(tmp_path: Path) -> None:
    """Rows may have any number of labels, also none."""
    (tmp_path / "sets.svm").write_text("1,2 1:1\n 2:1\n3 1:1\n" * 20)
    source = scan(tmp_path / "sets.svm", multilabel=True)
    labels, folds = rows_of(source)[1], fold_numbers(0, 60, 3)
    part = FoldSource(source, 0, 3)
    assert rows_of(part)[1] == [labels[row] for row in np.flatnonzero(folds == 0)]
    assert next(part.blocks()).labels is None


def test_the_place_of_a_bad_row(tmp_path: Path) -> None:
    """An error names the line in the file."""
    lines = [f"{i % 2} 1:1" for i in range(50)]
    lines[30] = "7 1:1"
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    source = scan(tmp_path / "rows.svm")
    part = FoldSource(source, int(fold_numbers(30, 1, 2)[0]), 2)
    with pytest.raises(DataError, match=r"rows.svm:31:1: the label is 7"):
        FTRLClassifier(passes=1).fit(part, classes="binary")
