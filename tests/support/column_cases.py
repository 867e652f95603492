"""Rows and runs for tests of the mode "columns"."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.utils import check_random_state

from support.distributed_rows import WholeFiles
from thresher import MarginPerceptronClassifier
from thresher.data.labels import Labels, TwoClasses
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.folder import CheckpointFolder
from thresher.distributed.engine.loop import ClusterRun, run_stages
from thresher.distributed.engine.pieces import ClusterJob, Learned
from thresher.distributed.modes.columns import ColumnsMode


@dataclass
class Data:
    """Rows, and what is learned from them."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    seed: int
    params: dict[str, Any]
    parts: int

    def job(self, place: str, labels: Labels | None = None, **changes: Any) -> ClusterJob:
        """Write the rows as VW text, a file for each part."""
        files, counts = [], []
        for part, rows in enumerate(np.array_split(np.arange(len(self.X)), self.parts)):
            file = Path(place, f"part-{part}.vw")
            file.write_text("".join(self.line(row) for row in rows))
            files.append([str(file)])
            counts.append(len(rows))
        estimator = MarginPerceptronClassifier(**self.params)
        job = ClusterJob(
            rule="margin-perceptron",
            task="classifier",
            params=estimator.get_params(),
            rows=WholeFiles(files, {"format": "vw"}),
            labels=labels or TwoClasses(),
            width=self.X.shape[1],
            counts=counts,
            seed=int(check_random_state(self.seed).randint(2**31)),
        )
        return replace(job, **changes)

    def line(self, row: int) -> str:
        weight = "" if self.weight is None else f" {self.weight[row]:g}"
        nonzero = np.flatnonzero(self.X[row])
        features = "".join(f" {j}:{self.X[row, j]!r}" for j in nonzero.tolist())
        return f"{self.y[row]:g}{weight} |{features}\n".replace("np.float64(", "").replace(")", "")

    def fit(self) -> MarginPerceptronClassifier:
        """Learn by the serial rule."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that all weights are zero
            estimator = MarginPerceptronClassifier(random_state=self.seed, **self.params)
            return estimator.fit(self.X, self.y, sample_weight=self.weight)


@st.composite
def datasets(draw: st.DrawFn, exact: bool = True, heaviest: float = 2.0, **fixed: Any) -> Data:
    """Draw rows of two classes, and parameters."""
    rows, width = draw(st.integers(4, 24)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    X = rng.integers(-12, 13, (rows, width)) / 8 if exact else rng.normal(size=(rows, width))
    X = X * (rng.random((rows, width)) < draw(st.sampled_from([0.2, 0.7])))
    y = np.where(np.arange(rows) < 2, [1.0, -1.0] * (rows // 2) + [1.0] * (rows % 2), 0.0)
    y[2:] = rng.choice([-1.0, 1.0], rows - 2)
    weight = draw(st.sampled_from([None, rng.choice([0.0, 0.5, 1.0, heaviest], rows)]))
    shrink = draw(st.sampled_from(["touched", "touched", "all"]))
    density = None if shrink == "all" else draw(st.sampled_from([None, None, 0.3, 0.8]))
    params = {
        "margin": draw(st.sampled_from([0.0, 0.125, 1.0])),
        "l1": draw(st.sampled_from([0.0, 1 / 64, 0.25])),
        "eta0": draw(st.sampled_from([0.5, 1.0])),
        "shrink": shrink,
        "max_density": density,
        "passes": draw(st.integers(1, 4)),
        "shuffle": draw(st.sampled_from(["each", "once", "replace", "blocks", False])),
        "fit_intercept": draw(st.booleans()),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
    }
    params |= fixed
    return Data(X, y, weight, draw(st.integers(0, 99)), params, draw(st.integers(1, 3)))


def run(
    job: ClusterJob, folder: CheckpointFolder | None = None, hosts: int = 1, **options: Any
) -> ClusterRun:
    """Learn in this process."""
    mode = pickle.loads(pickle.dumps(ColumnsMode(job, **options)))
    return run_stages(mode, InProcessExecutor(mode, folder, hosts), folder, mode.every)


def same(first: Learned, second: Learned) -> bool:
    """Return whether two results have the same bits."""
    one, other = first.outputs[0], second.outputs[0]
    return (
        one.keys.tobytes() == other.keys.tobytes()
        and one.weights.tobytes() == other.weights.tobytes()
        and one.intercept == other.intercept
        and first.facts == second.facts
    )


def dense(learned: Learned, width: int) -> np.ndarray:
    """Return all weights."""
    w = np.zeros(width)
    w[learned.outputs[0].keys.astype(int)] = learned.outputs[0].weights
    return w


def small(tmp_path: Path, labels: Labels | None = None, **changes: Any) -> ClusterJob:
    """Return a job of a few rows, in two parts."""
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 9, (20, 6)) / 8
    y = changes.pop("y", np.where(X[:, 0] > 0, 1.0, -1.0))
    params = {"passes": 3, **changes.pop("params", {})}
    return Data(X, y, None, 0, params, 2).job(str(tmp_path), labels, **changes)
