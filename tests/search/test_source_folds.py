"""Folds of a source: a hash of the row's number decides, for any size of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

import thresher
from support.files import svmlight
from support.source_searches import files_of
from thresher import OnePassSearchCV, scan
from thresher.data.targets import Targets
from thresher.search.folds import fold_numbers
from thresher.stability import StreamingStabilitySelection


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return files_of(tmp_path_factory.mktemp("search"))


def test_targets_of_single_outputs_are_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there are several classes, only the class of each row is needed."""
    path = svmlight(tmp_path / "rows.svm", rows=120, classes=(2, 4, 9))
    asked, before = list[int](), Targets.__getitem__

    def counted(self: Targets, output: int) -> Any:
        if len(self) > 1 and output != 0:  # a batch needs the targets of output 0
            asked.append(output)
        return before(self, output)

    clf = thresher.FTRLClassifier(passes=1)
    monkeypatch.setattr(Targets, "__getitem__", counted)
    search = OnePassSearchCV(clf, {"l1": [0.1, 1.0]}, refit=False).fit(scan(path))
    assert search.best_score_ > 0.5
    weights = {2: 1.0, 4: 2.0, 9: 1.0}
    halves = StreamingStabilitySelection(clf.set_params(class_weight=weights), pairs=2)
    assert halves.fit(scan(path)).n_rows_ >= 118
    rows, y = load_svmlight_file(str(path))
    assert halves.fit(rows, y).n_rows_ >= 118
    assert asked == []


def test_folds_are_fixed() -> None:
    """The first numbers of SplitMix64 with seed 0 are published."""
    assert fold_numbers(0, 1, 2**40).tolist() == [0xE220A8397B1DCDAF % 2**40]
    assert fold_numbers(1, 2, 1000).tolist() == [
        0x6E789E6AA1B965F4 % 1000,
        0x06C45D188009454F % 1000,
    ]
    counts = np.bincount(fold_numbers(0, 100_000, 5))
    assert (np.abs(counts - 20_000) < 600).all()


@given(st.integers(0, 2**40), st.lists(st.integers(0, 50), max_size=6), st.integers(2, 11))
def test_folds_do_not_depend_on_blocks(first: int, sizes: list[int], count: int) -> None:
    """Folds of blocks equal those of all rows together."""
    starts = first + np.cumsum([0, *sizes])
    parts = [fold_numbers(int(at), size, count) for at, size in zip(starts, sizes, strict=False)]
    whole = fold_numbers(first, sum(sizes), count)
    assert np.concatenate([np.zeros(0, int), *parts]).tolist() == whole.tolist()
