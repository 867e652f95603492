"""Files to search, and a comparison of a search of a file with `GridSearchCV` in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV

from support.files import svmlight, vw
from thresher import OnePassSearchCV, scan
from thresher.search.folds import fold_numbers

AS_STORED = {"shuffle": False, "passes": 2}


def files_of(folder: Path) -> dict[str, Path]:
    """Return files of two classes, three classes, values, and named features."""
    return {
        "two": svmlight(folder / "two.svm", rows=300),
        "three": svmlight(folder / "three.svm", rows=300, classes=(2, 4, 9)),
        "values": svmlight(folder / "values.svm", rows=300, classes=(0, 1, 2, 3, 4, 5)),
        "names": vw(folder / "names.vw", rows=300),
    }


def folds(rows: int, count: int) -> list[tuple[Any, Any]]:
    """Return the folds of a source as splits of rows in memory."""
    number = fold_numbers(0, rows, count)
    return [(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(count)]


def agree(path: Path, estimator: Any, grid: Any, scoring: list[str], **options: Any) -> Any:
    """Search a file and the same rows in memory; the results must be equal."""
    X, y = load_svmlight_file(str(path))
    y = y if estimator.task == "regressor" else y.astype(int)
    refit = scoring[0]
    ours = OnePassSearchCV(estimator, grid, scoring=scoring, refit=refit, cv=4, **options)
    ours.fit(scan(path))
    theirs = GridSearchCV(estimator, grid, scoring=scoring, refit=refit, cv=folds(300, 4))
    theirs.fit(X, y)
    for name, expected in theirs.cv_results_.items():
        if name.startswith(("split", "mean_test", "std_test")):
            np.testing.assert_allclose(ours.cv_results_[name], expected, rtol=1e-6, err_msg=name)
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.n_splits_ == 4
    in_memory = OnePassSearchCV(estimator, grid, cv=folds(300, 4), refit=False).fit(X, y)
    assert ours.nonzeros_.tolist() == in_memory.nonzeros_.tolist()
    return ours
