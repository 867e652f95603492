"""A search that was stopped at any point and resumed has the result of one that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import thresher
from support.files import pipe, svmlight
from thresher import Interrupted, Observer, OnePassSearchCV, scan
from thresher.data import matrix_source
from thresher.errors import DataError, ModelFileError, ParameterError

TRUNCATED = thresher.TruncatedGradientClassifier
# Searches of files: estimator, grid, classes of the rows, and options of the search.
CASES: dict[str, tuple[Any, dict[str, Any], tuple[int, ...], dict[str, Any]]] = {
    "lanes": (TRUNCATED(passes=2, shuffle="blocks"), {"gravity": [0.001, 0.1]}, (0, 1), {}),
    "two groups": (
        TRUNCATED(shuffle=False),
        {"gravity": [0.01, 0.1], "passes": [1, 2]},
        (0, 1),
        {},
    ),
    "threads": (TRUNCATED(passes=2), {"gravity": [0.01, 0.1]}, (2, 4, 9), {"n_jobs": 2}),
    "little memory": (
        TRUNCATED(passes=1, shuffle=False),
        {"gravity": [0.01, 0.1, 1.0]},
        (0, 1),
        {"memory_limit": 5000},
    ),
    "a rate from rows": (
        thresher.FTRLClassifier(passes=2, shuffle=False),
        {"l1": [0.1, 1.0]},
        (0, 1),
        {},
    ),
    "progressive": (
        TRUNCATED(passes=1, shuffle=False),
        {"gravity": [0.01, 0.1]},
        (0, 1),
        {"cv": "progressive"},
    ),
    "standardised": (
        thresher.FTRLRegressor(passes=2, shuffle=False),
        {"l1": [0.1, 1.0]},
        (0, 1, 2, 3),
        {},
    ),
    "plain fits": (
        TRUNCATED(tol=0.0, passes=3, shuffle=False),
        {"gravity": [0.01, 0.1]},
        (0, 1),
        {"cv": 2},
    ),
    "all rows": (thresher.CoordinateDescentClassifier(), {"l1": [0.01, 0.1]}, (0, 1), {"cv": 2}),
    "hashed": (
        TRUNCATED(store="hashed", average=True, passes=1, shuffle=False),
        {"gravity": [0.01]},
        (0, 1),
        {},
    ),
}


class StopsAt(Observer):
    """Stops a search at the n-th question whether it must stop."""

    def __init__(self, question: int) -> None:
        self.left = question

    def stops(self) -> bool:
        self.left -= 1
        return self.left < 0


class DiesAt(Observer):
    """Ends a search at the n-th progress as if the process was killed."""

    class Killed(BaseException):
        """The end of the process."""

    def __init__(self, progress: int) -> None:
        self.left = progress

    def progress(self, trainer: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.Killed


def source_of(files: list[Path], observer: Observer | None = None) -> Any:
    source = scan(files)
    if observer is not None:
        source.stops = observer.stops
    return source


def searched(case: str, rows: Any, **run: Any) -> OnePassSearchCV:
    estimator, grid, _, options = CASES[case]
    seed = {"random_state": 0} if "random_state" in estimator.get_params() else {}
    made = clone(estimator).set_params(**seed)
    search = OnePassSearchCV(made, grid, **{"cv": 3, **options})
    return search.fit(*(rows if isinstance(rows, tuple) else (rows,)), **run)


def bits(search: OnePassSearchCV, folder: Path) -> list[Any]:
    """Return everything of a result but its times."""
    search.best_model_.save(folder / "model")
    scores = {
        name: np.asarray(found, float).tobytes()
        for name, found in search.cv_results_.items()
        if "test_" in name
    }
    chosen = search.best_index_, search.n_readings_, search.nonzeros_.tolist()
    return [scores, *chosen, (folder / "model").read_bytes()]


def files_of(folder: Path, classes: tuple[int, ...] = (0, 1)) -> list[Path]:
    return [svmlight(folder / f"{n}.svm", rows=60, seed=n, classes=classes) for n in range(3)]


def check_stops(folder: Path, case: str, most: int) -> None:
    """Stop a search at no more than `most` of the points where it can stop, and resume it."""
    files, path = files_of(folder, CASES[case][2]), folder / "search.checkpoint"
    counting = StopsAt(10**9)
    whole = searched(case, source_of(files, counting), observer=counting)
    expected, all_points = bits(whole, folder), 10**9 - counting.left
    points = np.unique(np.linspace(0, all_points - 1, most).astype(int)).tolist()
    stopped = 0
    for point in points:
        path.unlink(missing_ok=True)
        observer = StopsAt(point)
        run = {"checkpoint": path, "every": np.inf}
        ended = None
        try:
            searched(case, source_of(files, observer), **run, observer=observer)
        except (Interrupted, KeyboardInterrupt) as error:
            ended = error
        # A search that waits less for its rows asks less often, and may not be stopped.
        assert ended is not None or observer.left >= 0
        assert path.exists() == isinstance(ended, Interrupted)  # else no row was learned
        stopped += path.exists()
        assert bits(searched(case, scan(files), **run, resume=True), folder) == expected, point
    assert stopped >= len(points) // 2


@pytest.mark.parametrize("case", CASES)
def test_stopped_and_resumed(tmp_path: Path, case: str) -> None:
    check_stops(tmp_path, case, 6)


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES)
def test_stopped_at_every_point(tmp_path: Path, case: str) -> None:
    check_stops(tmp_path, case, 1000)


@pytest.mark.parametrize("case", ["two groups", "plain fits", "progressive"])
def test_killed_and_resumed_again_and_again(tmp_path: Path, case: str) -> None:
    files, path = files_of(tmp_path), tmp_path / "search.checkpoint"
    expected = bits(searched(case, scan(files)), tmp_path)
    for attempt in range(2, 100):
        run = {"checkpoint": path, "every": 0.0, "resume": True}
        try:
            found = searched(case, scan(files), observer=DiesAt(attempt % 3 + 1), **run)
        except DiesAt.Killed:
            continue
        break
    assert bits(found, tmp_path) == expected


# ---- rows in memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["lanes", "two groups", "plain fits", "all rows"])
def test_rows_in_memory(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_source, "_CHUNK", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 12))
    data, path = (X, X[:, 0] > X[:, 1]), tmp_path / "search.checkpoint"
    counting = StopsAt(10**9)
    expected = bits(searched(case, data, observer=counting), tmp_path)
    for point in np.linspace(1, 10**9 - counting.left - 1, 5).astype(int).tolist():
        path.unlink(missing_ok=True)
        with pytest.raises((Interrupted, KeyboardInterrupt)):
            searched(case, data, checkpoint=path, every=np.inf, observer=StopsAt(point))
        found = searched(case, data, checkpoint=path, every=np.inf, resume=True)
        assert bits(found, tmp_path) == expected, point


# ---- refusals ------------------------------------------------------------------------------------


@pytest.fixture
def begun(tmp_path: Path) -> tuple[list[Path], Path]:
    """Return files and a checkpoint of a search of them."""
    files, path = files_of(tmp_path), tmp_path / "search.checkpoint"
    with pytest.raises(DiesAt.Killed):
        searched("two groups", scan(files), checkpoint=path, every=0.0, observer=DiesAt(4))
    return files, path


def refused(begun: tuple[list[Path], Path], **changed: Any) -> str:
    files, path = begun
    options = {"estimator": TRUNCATED(random_state=0, shuffle=False), "cv": 3}
    options |= {"param_grid": CASES["two groups"][1]} | changed
    with pytest.raises((ModelFileError, DataError)) as caught:
        OnePassSearchCV(**options).fit(scan(files), checkpoint=path, resume=True)
    return str(caught.value)


def test_another_search_is_refused(begun: tuple[list[Path], Path]) -> None:
    other = {"gravity": [0.01, 0.2], "passes": [1, 2]}
    assert "gravity was 0.1 in the search that wrote it" in refused(begun, param_grid=other)
    other = {"gravity": [0.01], "passes": [1, 2]}
    assert "the grid was '4 points'" in refused(begun, param_grid=other)
    assert "cv was 3" in refused(begun, cv=4)
    assert "scoring was None" in refused(begun, scoring="neg_log_loss")
    other_rule = thresher.ForwardBackwardClassifier(shuffle=False)
    assert "estimator was" in refused(begun, estimator=other_rule, param_grid={"passes": [1, 2]})


def test_other_rows_are_refused(begun: tuple[list[Path], Path]) -> None:
    files, _ = begun
    svmlight(files[1], rows=60, seed=9, classes=(0, 1))
    assert "the rows are not those of the search that wrote it" in refused(begun)


def test_the_same_rows_in_new_files(begun: tuple[list[Path], Path], tmp_path: Path) -> None:
    files, path = begun
    for file in files:
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content)
    found = searched("two groups", scan(files), checkpoint=path, resume=True)
    assert bits(found, tmp_path) == bits(searched("two groups", scan(files)), tmp_path)


def test_checkpoints_of_other_runs_are_refused(begun: tuple[list[Path], Path]) -> None:
    files, path = begun
    with pytest.raises(ModelFileError, match="is from a search, and the rule"):
        TRUNCATED().fit(scan(files), checkpoint=path, resume=True)
    with pytest.raises(ModelFileError, match="is from a search, and the rule"):
        thresher.CoordinateDescentClassifier().fit(scan(files), checkpoint=path, resume=True)
    path.unlink()
    TRUNCATED().fit(scan(files), checkpoint=path, every=0.0)
    assert "is from a rule that learns row by row, not from a search" in refused(begun)


def test_a_pipeline_has_no_checkpoint(tmp_path: Path) -> None:
    made = make_pipeline(StandardScaler(), TRUNCATED())
    search = OnePassSearchCV(made, {"truncatedgradientclassifier__gravity": [0.1]})
    with pytest.raises(ParameterError, match="checkpoint is not for a Pipeline"):
        search.fit(np.eye(4), [0, 1, 0, 1], checkpoint=tmp_path / "c")


def test_a_pipe_is_resumed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    y, path = (X[:, 0] > 0).astype(int), tmp_path / "search.checkpoint"
    expected = bits(searched("progressive", pipe(X, y)), tmp_path)
    with pytest.raises(Interrupted):
        searched("progressive", pipe(X, y), checkpoint=path, observer=StopsAt(3))
    found = searched("progressive", pipe(X, y), checkpoint=path, resume=True)
    assert bits(found, tmp_path) == expected
