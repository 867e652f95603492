"""Rows and runs for tests of the published variant on a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from oracles.stabilized import StabilizedResult, stabilized
from support.distributed_rows import untimed
from thresher import StabilizedClassifier, _core
from thresher.data import as_batch
from thresher.data.labels import ManyClasses
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.loop import ClusterRun, run_stages
from thresher.distributed.engine.pieces import ClusterJob
from thresher.distributed.modes.paper_stages import PaperStagesMode
from thresher.rules import core_args

SEED = 12345


DEFAULTS = StabilizedClassifier(variant="paper", eta0=0.3, paths=4, passes=3).get_params()


@dataclass(frozen=True)
class Matrices:
    """Rows in memory: a matrix, labels and weights for each part, read in blocks of a few rows."""

    content: Sequence[tuple[sp.csr_matrix, np.ndarray, np.ndarray | None]]

    @property
    def parts(self) -> int:
        return len(self.content)

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        X, y, weights = self.content[part]
        cuts = [slice(at, at + 7) for at in range(0, max(len(y), 1), 7)]
        return scan(
            lambda: ((X[c], y[c]) if weights is None else (X[c], y[c], weights[c]) for c in cuts)
        )


def drawn(seed: int, rows: Sequence[int], width: int, weighted: bool, density: float) -> Matrices:
    """Draw parts with rare features, empty rows and stored zeros."""
    rng = np.random.default_rng(seed)
    share, content = density * rng.random(width) * 1.5, []
    for n in rows:
        X = sp.csr_matrix(rng.normal(size=(n, width)).astype(np.float32).astype(np.float64))
        X.data[rng.random((n, width)).ravel() >= np.tile(share, n)] = 0.0
        dropped = X.copy()
        dropped.data[::11] = 1.0  # so that a few zeros stay
        X = X.multiply(dropped.toarray() != 0).tocsr()
        weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else None
        content.append((X, rng.choice([-1.0, 1.0], n), weights))
    return Matrices(content)


def job_of(rows: Matrices, ranges: int = 1, **params: Any) -> ClusterJob:
    return ClusterJob(
        rule="stabilized",
        task="classifier",
        params=DEFAULTS | params,
        rows=rows,
        labels=ManyClasses([-1, 1]),
        width=rows.content[0][0].shape[1],
        counts=[len(y) for _, y, _ in rows.content],
        seed=SEED,
        ranges=ranges,
    )


def driven(
    job: ClusterJob, hosts: int = 1, folder: str | None = None, every: int = 1, **options: Any
) -> ClusterRun:
    mode = PaperStagesMode(job)
    keep = None if folder is None else CheckpointFolder(folder)
    executor = InProcessExecutor(mode, keep, hosts, options.pop("threads", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_stages(mode, executor, keep, every, **options)


def alone(job: ClusterJob) -> tuple[_core.StabilizedLearner, list[_core.Stage]]:
    """Train on all rows with the rule on one machine."""
    X = sp.vstack([X for X, _, _ in job.rows.content], format="csr")  # type: ignore[attr-defined]
    y = np.concatenate([y for _, y, _ in job.rows.content])  # type: ignore[attr-defined]
    weights = [w for *_, w in job.rows.content]  # type: ignore[attr-defined]
    numbers, words = core_args.stabilized_parameters(job.params, SEED, len(y))
    learner = _core.make_stabilized("paper", job.params["dtype"], job.width, numbers, words)
    batch = as_batch(X)
    batch.set_targets(y, None if weights[0] is None else np.concatenate(weights))
    stages: list[_core.Stage] = []
    learner.learn(
        batch, job.params["passes"], job.params["tol"] or 0.0, 1, lambda s: not stages.append(s)
    )
    return learner, stages


def oracle(job: ClusterJob) -> StabilizedResult:
    """Return the oracle's result, where each path uses the rows of its part."""
    content = job.rows.content  # type: ignore[attr-defined]
    p, M = job.params, job.params["paths"]
    starts = np.cumsum([0, *job.counts])
    orders = []
    for m in range(M):
        part = m * len(content) // M
        orders.append(starts[part] + _core.path_order(SEED, m, 0, job.counts[part]))
    weights = [w for *_, w in content]
    return stabilized(
        np.vstack([X.toarray() for X, _, _ in content]),
        np.concatenate([y for _, y, _ in content]),
        orders,
        loss=p["loss"], eta=p["eta0"], beta0=0.7 if p["rejection"] == "auto" else p["rejection"],
        gamma=p["annealing"], pi0=p["keep"], K=p["burst"], n_K=p["bursts"], passes=p["passes"],
        delta_K=0 if p["min_updates"] == "auto" else p["min_updates"], alpha=p["burst_growth"],
        count=p["count"], gravity_rule=p["gravity_rule"],
        sample_weight=None if weights[0] is None else np.concatenate(weights),
        dtype=np.dtype(p["dtype"]), rows=max(job.counts),
    )  # fmt: skip


def assert_same(one: ClusterRun, two: ClusterRun) -> None:
    """Check that two results are bit-identical."""
    assert one.stages == two.stages
    assert one.learned.facts == two.learned.facts
    assert untimed(one) == untimed(two)
    for a, b in zip(one.learned.outputs, two.learned.outputs, strict=True):
        assert a.keys.tobytes() == b.keys.tobytes()
        assert a.weights.tobytes() == b.weights.tobytes()
    assert one.learned.evidence is not None
    assert two.learned.evidence is not None
    ours, theirs = one.learned.evidence.tensors(), two.learned.evidence.tensors()
    assert {k: v.tobytes() for k, v in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "loss": draw(st.sampled_from(["logistic", "hinge", "squared_hinge"])),
        "eta0": draw(st.sampled_from([0.0503, 0.31])),
        "rejection": draw(st.sampled_from([0.0, 0.3, 0.7, 0.95])),
        "annealing": draw(st.sampled_from([-5.0, -1.0, 0.0, 3.0])),
        "keep": draw(st.sampled_from([0.0, 0.5, 0.6, 0.9])),
        "burst": draw(st.sampled_from([1, 2, 5])),
        "bursts": draw(st.sampled_from([1, 3, 5])),
        "min_updates": draw(st.sampled_from([0, 0, 4])),
        "burst_growth": draw(st.sampled_from([None, None, float(np.exp(-1)), 0.5])),
        "count": draw(st.sampled_from(["x", "gradient"])),
        "gravity_rule": draw(st.sampled_from(["update-quantile"] * 3 + ["weight-quantile"])),
        "paths": draw(st.integers(3, 6)),
        "passes": draw(st.integers(1, 4)),
    }


def some_rows(draw: Any, parts: int) -> Matrices:
    return drawn(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.lists(st.integers(1, 30), min_size=parts, max_size=parts)),
        draw(st.integers(1, 14)),
        draw(st.booleans()),
        draw(st.sampled_from([0.1, 0.3, 0.8])),
    )
