"""Rows and runs for tests of the robust variant on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from support.streams import Stream
from thresher import StabilizedClassifier, scan
from thresher.data.labels import ManyClasses
from thresher.data.source import Source
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.loop import run_stages
from thresher.distributed.engine.pieces import ClusterJob, Learned
from thresher.distributed.modes.robust_stages import RobustStagesMode

SEED = 77


STEPS = {"stage_steps": 60.0, "refit_steps": 80.0, "size_pairs": 1.0}  # few: the oracle is slow


@dataclass(frozen=True)
class InMemory:
    """Rows of a stream in parts that start at `cuts`, read in blocks of a few rows."""

    stream: Stream
    cuts: Sequence[int] = ()
    block: int = 7
    keys: np.ndarray | None = None  # instead of columns

    @property
    def parts(self) -> int:
        return len(self.cuts) + 1

    @property
    def bounds(self) -> list[int]:
        return [0, *self.cuts, len(self.stream.y)]

    @property
    def counts(self) -> list[int]:
        return np.diff(self.bounds).tolist()

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        begin, end = self.bounds[part], self.bounds[part + 1]
        return scan(lambda: self._batches(begin, end))

    def _batches(self, begin: int, end: int) -> Iterator[Any]:
        stream = self.stream
        for first in range(begin, end, self.block) or [begin]:
            rows = slice(first, min(end, first + self.block))
            X = stream.csr[rows]
            if self.keys is not None:
                shape = (X.shape[0], int(self.keys.max()) + 1)
                X = sp.csr_array((X.data, self.keys[X.indices], X.indptr), shape=shape)
            yield X, stream.y[rows], None if stream.weight is None else stream.weight[rows]


def mode_of(
    rows: InMemory, ranges: int = 1, width: int | None = None, **params: Any
) -> RobustStagesMode:
    """Return a mode with few steps."""
    defaults = {"min_updates": 1, "eta0": 2.0, "target_nnz": 3, "passes": 3, "paths": 6}
    values = StabilizedClassifier(**defaults | {"dtype": "float64"} | params).get_params()
    width = rows.stream.width if width is None else width
    labels = ManyClasses([-1, 1])
    mode = RobustStagesMode(
        ClusterJob(
            "stabilized", "classifier", values, rows, labels, width, rows.counts, SEED, ranges
        )
    )
    mode.numbers |= STEPS
    return mode


def run(mode: RobustStagesMode, hosts: int = 1, threads: int = 1) -> Learned:
    return run_stages(mode, InProcessExecutor(mode, None, hosts, threads), None, 1).learned


def facts_of(learned: Learned) -> list[Any]:
    """Return weights, intercept and evidence, for a comparison of bits."""
    (output,) = learned.outputs
    assert learned.evidence is not None
    tensors = learned.evidence.tensors()
    return [output.keys.tolist(), output.weights.tolist(), output.intercept,
            {name: array.tolist() for name, array in tensors.items()}]  # fmt: skip


def problem(rows: int = 60, width: int = 40) -> Stream:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, width)) * (rng.random((rows, width)) < 0.3)
    y = np.where(X[:, :5].sum(axis=1) + 0.05 * rng.normal(size=rows) > 0, 1.0, -1.0)
    return Stream(X, y, rng.integers(0, 3, rows).astype(float), [])
