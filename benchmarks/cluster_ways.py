"""Ways to fit on a cluster and without one, for cluster.py: rows, turns, counts of features."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from cache import blocks, write

from thresher.distributed import StageReport, fit
from thresher.distributed.crew import InProcess
from thresher.distributed.driving import Driven, drive
from thresher.distributed.fitting import Fitting, Wishes
from thresher.distributed.packing import unpacked_keys

WORKERS = 2
Run = Callable[[], list[float]]


def made_rows(rows: int, width: int, per_row: int = 100) -> tuple[sp.csr_matrix, np.ndarray]:
    """Make rows of at most so many distinct features, and labels that depend on them."""
    rng = np.random.default_rng(0)
    drawn = np.exp(rng.random((rows, per_row)) * np.log(width)).astype(np.int64) % width
    drawn = drawn * 0x9E3779B1 % width  # frequent features lie anywhere
    starts = np.arange(0, rows * per_row + 1, per_row)
    X = sp.csr_matrix((np.ones(rows * per_row, np.float32), drawn.ravel(), starts), (rows, width))
    X.sum_duplicates()
    X.data[:] = 1 / np.sqrt(per_row)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    truth = np.where(rng.random(width) < 0.1, rng.normal(size=width) * 5, 0.0)
    return X, np.where(rng.random(rows) < 1 / (1 + np.exp(-(X @ truth))), 1.0, -1.0)


def files_of(folder: Path, X: sp.csr_matrix, y: np.ndarray) -> list[str]:
    """Write rows to as many files as there are workers."""
    files = []
    for number, cut in enumerate(np.array_split(np.arange(len(y)), WORKERS)):
        files.append(str(folder / f"{X.shape[1]}-{number}.cache"))
        write(files[-1], blocks(X[cut[0] : cut[-1] + 1], y[cut]))
    return files


class Counting(InProcess):
    """Pieces on one thread of this process; counts the features of which parts have sent."""

    touched = 0  # in the last step of the parts

    def _step(self, kind: Any, message: dict[str, Any]) -> list[dict[str, Any]]:
        told = super()._step(kind, message)
        if kind == "part":
            places = zip(*self._mail["part"], strict=True)
            self.touched = sum(_distinct([a for p in place for _, a in p]) for place in places)
        return told


def _distinct(sent: list[dict[str, Any]]) -> int:
    """Count the features of which any part has sent something to a range."""
    read = {"at": lambda a: a["at"], "first": unpacked_keys, "0:keys": lambda a: a["0:keys"]}
    keys = [take(arrays) for arrays in sent for name, take in read.items() if name in arrays]
    return len(np.unique(np.concatenate(keys))) if keys else 0


class Alone(Fitting):
    """A fit in this process on one thread, of which features can be counted."""

    counts: list[int] | None = None

    def _drive(self, mode: Any, cluster: Any, folder: Any, watch: Any, note: Any) -> Driven:
        if self.counts is None:
            return drive(mode, InProcess(mode, folder), folder, 1, None, watch)
        crew, counts = Counting(mode, folder), self.counts
        return drive(mode, crew, folder, 1, None, lambda report: counts.append(crew.touched))


def touched_by(estimator: Any, files: list[str]) -> np.ndarray:
    """Return how many features are touched in each stage."""
    alone = Alone(estimator, files, Wishes(workers=0))
    alone.counts = []
    alone.run()
    return np.array(alone.counts)


def turns(ways: dict[str, Run], repeats: int) -> dict[str, np.ndarray]:
    """Run all in turn; return seconds of stages, of each the fastest."""
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, run in ways.items():
            found[way].append(run())
    return {way: np.min(seconds, axis=0) for way, seconds in found.items()}


class Ways:
    """Ways to fit a kind of estimator to files; keeps reports, and compares models."""

    def __init__(self, make: Callable[[], Any], files: list[str], **options: Any) -> None:
        self.make, self.files, self.options = make, files, options
        self.reports: list[StageReport] = []  # of the last run on workers
        self.written = 0  # bytes of the last checkpoint
        self.weights: np.ndarray | None = None

    def workers(self, checkpoint: bool = False, **more: Any) -> list[float]:
        """Fit on two workers."""
        with tempfile.TemporaryDirectory() as folder:
            more |= {"checkpoint": folder} if checkpoint else {}
            self.reports = self._fit(workers=WORKERS, **more)
            self.written = sum(
                os.path.getsize(Path(at, file))
                for at, _, found in os.walk(folder)
                for file in found
            )
        return [report.seconds for report in self.reports]

    def in_process(self) -> list[float]:
        """Fit without a cluster."""
        return [report.seconds for report in self._fit(workers=0)]

    def work(self) -> list[float]:
        """Fit on one thread."""
        reports: list[StageReport] = []
        estimator = self.make()
        Alone(estimator, self.files, Wishes(workers=0)).run(reports.append)
        self._compare(estimator)
        return [report.seconds for report in reports]

    def _fit(self, **options: Any) -> list[StageReport]:
        reports: list[StageReport] = []
        estimator = self.make()
        fit(estimator, self.files, watch=reports.append, **self.options, **options)
        self._compare(estimator)
        return reports

    def _compare(self, estimator: Any) -> None:
        weights = estimator.model_.weights
        assert self.weights is None or np.array_equal(weights, self.weights), "results differ"
        self.weights = weights
