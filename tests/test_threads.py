"""The number of threads: `n_jobs`, processors and environment variables."""

from __future__ import annotations

import os

import pytest

from thresher import ParameterError, threads
from thresher.threads import VARIABLES, available_threads, jobs_of, threads_for, threads_of


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the process four processors, and no limit."""
    monkeypatch.setattr(threads, "_processors", lambda: 4)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_n_jobs_means_the_same_as_in_scikit_learn() -> None:
    assert [threads_of(n) for n in (None, 3, 9, -1, -2, -9)] == [1, 3, 9, 4, 3, 1]
    for bad in (0, True, 1.5, "2"):
        with pytest.raises(ParameterError, match="n_jobs must be"):
            threads_of(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ours", "omp", "expected"),
    [("", "", 4), ("2", "", 2), ("", "3", 3), ("", "2,1", 2), ("3", "1", 3), ("9", "", 4),
     ("0", "", 4), ("many", "2", 2)],
)  # fmt: skip
def test_the_environment_limits_threads(
    monkeypatch: pytest.MonkeyPatch, ours: str, omp: str, expected: int
) -> None:
    monkeypatch.setenv("THRESHER_NUM_THREADS", ours)
    monkeypatch.setenv("OMP_NUM_THREADS", omp)
    assert available_threads() == expected
    assert threads_of(-1) == expected
    assert threads_of(8) == 8  # what a user asks for


def test_joblib_decides_what_none_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert [jobs_of(n) for n in (None, -1, 5)] == [None, 2, 5]


def test_little_work_has_one_thread() -> None:
    assert [threads_for(work, 100) for work in (0, 199, 200, 399, 10**9)] == [1, 1, 2, 3, 4]


def test_processors_of_the_process_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if hasattr(os, "sched_getaffinity"):
        assert available_threads() == len(os.sched_getaffinity(0))
