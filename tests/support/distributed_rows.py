"""Rows in files, for tests of training on a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import thresher
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.distributed.engine.loop import ClusterRun


@dataclass(frozen=True)
class WholeFiles:
    """`PartitionedRows` of whole files, given by their names."""

    files: Sequence[Sequence[str]]
    reading: dict[str, Any]

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.files)

    def source(self, part: int, piece: int = 0, pieces: int = 1) -> Source:
        """Return the rows of a part."""
        files = list(self.files[part])
        return scan(
            files[len(files) * piece // pieces : len(files) * (piece + 1) // pieces], **self.reading
        )


def untimed(driven: ClusterRun) -> list[dict[str, Any]]:
    """Return the records of a run without times."""
    return [{k: v for k, v in record.items() if k != "seconds"} for record in driven.history]


def rows_of(seed=0, rows=400, width=60, classes=2):
    """Return sparse rows, and labels that depend on a few features."""
    rng = np.random.default_rng(seed)
    X = sp.random(rows, width, density=0.3, random_state=rng, format="csr")
    X.data = np.round(X.data, 3)
    score = X[:, : 3 * classes].toarray().reshape(rows, classes, 3).sum(axis=2)
    return X, (score + 0.05 * rng.normal(size=score.shape)).argmax(axis=1)


def line_of(row, label):
    """Return a line of svmlight."""
    numbers = zip(row.indices, row.data, strict=True)
    return f"{label} " + " ".join(f"{j + 1}:{value:g}" for j, value in numbers)


def write_shards(folder, X, y, files=4):
    """Write rows to files in svmlight format; return a glob that matches them."""
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(X.shape[0]), files)):
        lines = [line_of(X[i], y[i]) for i in part]
        (folder / f"rows-{number}.svm").write_text("\n".join(lines) + "\n")
    return str(folder / "rows-*.svm")


def bits_of(estimator):
    """Return a hash of an estimator's model."""
    model = estimator.model_
    parts = [model.indices, model.weights, model.intercept, model.indptr]
    if model.evidence is not None:
        parts += model.evidence.tensors().values()
    return hashlib.sha256(b"|".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest()


# A small estimator for each mode, and options of `fit`.
FITS = {
    "average": (lambda: thresher.FTRLClassifier(passes=3, random_state=1), {"rounds": 2}),
    "robust": (
        lambda: thresher.StabilizedClassifier(target_nnz=8, paths=8, passes=2, random_state=1),
        {},
    ),
    "paper": (
        lambda: thresher.StabilizedClassifier(
            variant="paper", burst=4, paths=8, passes=2, random_state=1
        ),
        {},
    ),
    "columns": (
        lambda: thresher.MarginPerceptronClassifier(passes=4, random_state=1),
        {"mode": "columns", "batch": 16, "blocks": 3},
    ),
}
