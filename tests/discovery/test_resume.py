"""Exact resume of a discovery: stopped at any visit, it ends with the same bits."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from support.discovery_cases import discovered, same_results, signal
from support.files import pipe, svmlight, vw
from thresher import DataError, ParameterError
from thresher.errors import ModelFileError
from thresher.training.observer import Interrupted, Observer

FORMS = ["crossfit", "stream", "joint"]
forms = pytest.mark.parametrize("form", FORMS)
pytestmark = pytest.mark.filterwarnings("ignore::thresher.discovery.DiscoveryWarning")


class StopsAt(Observer):
    """Stops a run at its n-th visit of rows."""

    def __init__(self, visit: int) -> None:
        self.left, self.events = visit, []

    def tell(self, event: str, **facts: Any) -> None:
        self.events.append(event)
        self.left -= event == "reading"

    def stops(self) -> bool:
        return self.left <= 0


@pytest.fixture(autouse=True)
def many_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix of 900 x 40 has 4 visits in a reading."""
    monkeypatch.setattr("thresher.discovery.readings._CHUNK", 9000)


def resumed(
    options: dict[str, Any], fit: Any, path: Path, most: int = 99, again: Any = None
) -> Any:
    """Stop after each visit, and resume each time; return the result and the number of stops."""
    for stops in range(most):
        made = discovered(**options)
        observer = StopsAt(1)
        with contextlib.suppress(Interrupted):
            fit(made, checkpoint=path, resume=stops > 0, observer=observer)
            return made, stops
        assert observer.events[-1] == "checkpoint"
        assert not hasattr(made, "n_rows_")
    raise AssertionError("the run does not end")


@forms
@pytest.mark.parametrize("kind", ["classification", "regression", "classes"])
def test_rows_in_memory(tmp_path: Path, form: str, kind: str) -> None:
    X, y = signal(kind)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(y))
    for more in ({}, {"sample_weight": weights}):
        path = tmp_path / f"run{len(more)}"
        whole = discovered(form=form).fit(X, y, **more)
        found, stops = resumed(
            {"form": form}, lambda made, m=more, **run: made.fit(X, y, **m, **run), path
        )
        assert stops == (4 if form == "stream" else 8)
        same_results(found, whole)


@forms
@pytest.mark.parametrize(("jobs", "classes"), [(1, (-1, 1)), (2, (0, 1)), (2, (1, 2, 3))])
def test_files(tmp_path: Path, form: str, jobs: int, classes: tuple[int, ...]) -> None:
    parts = [svmlight(tmp_path / f"{k}.svm", rows=150, seed=k, classes=classes) for k in range(4)]
    whole = discovered(form=form).fit(thresher.scan(parts))
    found, stops = resumed(
        {"form": form, "n_jobs": jobs, "refit": True},
        lambda made, **run: made.fit(thresher.scan(parts), **run),
        tmp_path / "run",
    )
    assert stops == (4 if form == "stream" else 8)
    same_results(found, whole)
    assert found.model_.n_features == 60


def test_names_of_a_file(tmp_path: Path) -> None:
    parts = [vw(tmp_path / f"{k}.vw", rows=150, seed=k) for k in range(4)]
    for form in ("stream", "crossfit"):
        whole = discovered(form=form).fit(thresher.scan(parts))
        found, _ = resumed(
            {"form": form},
            lambda made, **run: made.fit(thresher.scan(parts), **run),
            tmp_path / form,
        )
        same_results(found, whole)
        assert [f.feature for f in found.findings(5)] == [f.feature for f in whole.findings(5)]


def test_groups_and_folds_one_after_the_other(tmp_path: Path) -> None:
    X, y = signal()
    groups = np.arange(900) // 3
    whole = discovered().fit(X, y, groups=groups)
    found, stops = resumed(
        {"memory_limit": 1},
        lambda made, **run: made.fit(X, y, groups=groups, **run),
        tmp_path / "run",
    )
    assert stops == 6 * 4
    same_results(found, whole)


@pytest.mark.parametrize("visit", [2, 5, 11, 21])
def test_another_memory_limit_changes_nothing(tmp_path: Path, visit: int) -> None:
    X, y = signal()
    whole = discovered().fit(X, y)
    for first, then in ((1, None), (None, 1), (2 * 40 * 128, 1)):
        path = tmp_path / f"run {first}"
        if first is None and visit > 8:
            continue
        with pytest.raises(Interrupted):
            discovered(memory_limit=first).fit(
                X, y, checkpoint=path, observer=StopsAt(min(visit, 15))
            )
        again = discovered(memory_limit=then, n_jobs=2)
        same_results(again.fit(X, y, checkpoint=path, resume=True), whole)


def test_without_a_seed_the_resumed_run_uses_that_of_the_checkpoint(tmp_path: Path) -> None:
    X, y = signal()
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        discovered(random_state=None).fit(X, y, checkpoint=path, observer=StopsAt(3))
    first, second = (
        discovered(random_state=None).fit(X, y, checkpoint=path, resume=True) for _ in range(2)
    )
    same_results(first, second)


def test_a_stream_of_standard_input_is_not_lost(tmp_path: Path) -> None:
    X, y = signal()
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        discovered().fit(pipe(X, y, 100), checkpoint=path, observer=StopsAt(3))
    whole = discovered(form="stream").fit(X, y)
    found = discovered().fit(pipe(X, y, 100), checkpoint=path, resume=True)
    np.testing.assert_array_equal(found.z_, whole.z_)


def test_checkpoints_are_written_by_time(tmp_path: Path) -> None:
    X, y = signal()
    for every, number in ((0.0, 8), (1e6, 0)):
        observer = StopsAt(10**9)
        path = tmp_path / f"run {number}"
        discovered().fit(X, y, checkpoint=path, every=every, observer=observer)
        assert observer.events.count("checkpoint") == number
        assert path.exists() == (number > 0)
    again = discovered().fit(X, y, checkpoint=tmp_path / "run 8", resume=True)  # only the end
    same_results(again, discovered().fit(X, y))
    nothing = tmp_path / "nothing"
    same_results(discovered().fit(X, y, checkpoint=nothing, resume=True), again)


def test_checkpoints_of_other_runs_are_refused(tmp_path: Path) -> None:
    X, y = signal()
    path, groups = tmp_path / "run", np.arange(900) // 3
    with pytest.raises(Interrupted):
        discovered().fit(X, y, checkpoint=path, observer=StopsAt(2))
    again = {"checkpoint": path, "resume": True}
    for options, message in (
        ({"form": "stream"}, r"form was 'crossfit'.*is 'stream' now"),
        ({"random_state": 1}, "seed was"),
        ({"redraws": 7}, "redraws was 20.*is 7 now"),
        ({"folds": 4}, "folds was 5"),
        ({"dtype": "float64"}, "dtype was 'float32'"),
    ):
        with pytest.raises(ModelFileError, match=message):
            discovered(**options).fit(X, y, **again)
    other = X.copy()
    other[5, 5] += 1
    with pytest.raises(ModelFileError, match="are not those of the run that wrote it"):
        discovered().fit(other, y, **again)
    with pytest.raises(ModelFileError, match="list of classes was"):
        discovered().fit(X, y + 1, **again)
    with pytest.raises(ModelFileError, match="groups= is not that of the run"):
        discovered().fit(X, y, groups=groups, **again)
    with pytest.raises(ModelFileError):
        thresher.FTRLClassifier(random_state=0).fit(X, y, **again)
    with pytest.raises(Interrupted):
        thresher.FTRLClassifier(random_state=0).fit(
            X, y, checkpoint=tmp_path / "other", observer=_StopsTraining()
        )
    with pytest.raises(ModelFileError, match="is not from a discovery of features"):
        discovered().fit(X, y, checkpoint=tmp_path / "other", resume=True)
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(damaged)
        with pytest.raises((ModelFileError, DataError)):
            discovered().fit(X, y, **again)
    with pytest.raises(ParameterError, match="needs checkpoint"):
        discovered().fit(X, y, resume=True)
    with pytest.raises(ParameterError, match="every must be"):
        discovered().fit(X, y, checkpoint=path, every=-1)


class _StopsTraining(Observer):
    def stops(self) -> bool:
        return True


def test_a_file_that_changed_is_noticed(tmp_path: Path) -> None:
    parts = [svmlight(tmp_path / f"{k}.svm", rows=150, seed=k) for k in range(4)]
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        discovered().fit(thresher.scan(parts), checkpoint=path, observer=StopsAt(6))
    parts[3].write_text(parts[3].read_text().replace("1:1", "1:0"))
    with pytest.raises(DataError, match="the input has changed since it was last read"):
        discovered().fit(thresher.scan(parts), checkpoint=path, resume=True)


def test_an_interrupted_fit_leaves_the_estimator_as_it_was(tmp_path: Path) -> None:
    X, y = signal()
    found = discovered().fit(X, y)
    before, attributes = found.z_.copy(), dict(found.__dict__)
    with pytest.raises(Interrupted):
        found.fit(X[:500], y[:500], checkpoint=tmp_path / "run", observer=StopsAt(1))
    with pytest.raises(KeyboardInterrupt):  # there is no checkpoint file
        found.fit(X[:500], y[:500], observer=StopsAt(1))
    np.testing.assert_array_equal(found.z_, before)
    assert found.__dict__ == attributes
