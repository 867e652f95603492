"""Methods to fit with and without a cluster, for cluster.py: rows, turns, counts of features."""

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
from thresher.distributed.cluster_fit import ClusterFit
from thresher.distributed.engine.encoding import unpack_keys
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.loop import ClusterRun, run_stages
from thresher.distributed.options import ClusterOptions

WORKERS = 2
Run = Callable[[], list[float]]


def made_rows(rows: int, width: int, per_row: int = 100) -> tuple[sp.csr_matrix, np.ndarray]:
    """Make rows of at most `per_row` distinct features, and labels that depend on them."""
    rng = np.random.default_rng(0)
    drawn = np.exp(rng.random((rows, per_row)) * np.log(width)).astype(np.int64) % width
    drawn = drawn * 0x9E3779B1 % width  # spread the frequent features over the space
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


class Counting(InProcessExecutor):
    """Pieces on one thread of this process; counts the features for which parts sent data.

    Each part is on a separate host, as on a worker; else counts of parts could be combined.

    Attributes
    ----------
    touched : list of (int, int)
        Of each stage: distinct features, and the sum over parts. Where parts send twice in a stage,
        of the larger.
    """

    def __init__(self, mode: Any, folder: Any) -> None:
        super().__init__(mode, folder, mode.parts)
        self.touched: list[tuple[int, int]] = []
        self._most = (0, 0)

    def _step(self, kind: Any, message: Any) -> list[Any]:
        replies = super()._step(kind, message)
        if kind == "part":
            packets = [packet for sent in self._unreceived["part"] for packet in sent]
            sent = [arrays for packet in packets for _, arrays in packet]
            keys = [_keys(arrays) for arrays in sent]  # there is one range
            distinct = len(np.unique(np.concatenate(keys))) if keys else 0
            self._most = max(self._most, (distinct, sum(map(len, keys))))
        return replies

    def end_stage(self, report: StageReport) -> None:
        """Record a stage."""
        self.touched.append(self._most)
        self._most = (0, 0)


def _keys(arrays: dict[str, Any]) -> np.ndarray:
    """Return the features for which a part has sent data."""
    if "first" in arrays:
        return unpack_keys(arrays)
    names = [name for name in ("at", "seen", "0:keys") if name in arrays]
    return np.unique(np.concatenate([arrays[name] for name in names])) if names else np.zeros(0)


class Alone(ClusterFit):
    """A fit in this process on one thread, which counts touched features."""

    counts: list[tuple[int, int]] | None = None

    def _run_mode(self, mode: Any, cluster: Any, folder: Any, watch: Any, note: Any) -> ClusterRun:
        if self.counts is None:
            return run_stages(mode, InProcessExecutor(mode, folder), folder, 1, None, watch)
        executor = Counting(mode, folder)
        driven = run_stages(mode, executor, folder, 1, None, executor.end_stage)
        self.counts += executor.touched
        return driven


def touched_by(estimator: Any, files: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the features touched in each stage: distinct ones, and the sum over parts."""
    alone = Alone(estimator, files, ClusterOptions(workers=0))
    alone.counts = []
    alone.run()
    distinct, entries = np.array(alone.counts).T
    return distinct, entries


def turns(ways: dict[str, Run], repeats: int) -> dict[str, np.ndarray]:
    """Run all in turn; return the fastest time of each stage, in seconds."""
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, run in ways.items():
            found[way].append(run())
    return {way: np.min(seconds, axis=0) for way, seconds in found.items()}


class Ways:
    """Methods to fit an estimator to files; keeps reports and compares models."""

    def __init__(self, make: Callable[[], Any], files: list[str], **options: Any) -> None:
        self.make, self.files, self.options = make, files, options
        self.reports: list[StageReport] = []  # of the last run on workers
        self.written = 0  # bytes of the last checkpoint
        self.weights: np.ndarray | None = None

    def workers(self, checkpoint: bool = False, **more: Any) -> list[float]:
        """Fit on two workers."""
        with tempfile.TemporaryDirectory() as folder:
            more |= {"checkpoint": folder, "keep_checkpoint": True} if checkpoint else {}
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
        Alone(estimator, self.files, ClusterOptions(workers=0)).run(reports.append)
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
