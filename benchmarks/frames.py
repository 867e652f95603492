"""Measure `fit` on frames with words against a matrix made with scikit-learn.

`python benchmarks/frames.py` makes a table of ten columns of numbers and five of strings, and fits
`OnePassClassifier` (or `--rule ftrl`) to it as a pandas frame, a polars frame and an Arrow table,
and as the CSR matrix of ``ColumnTransformer(OneHotEncoder)``. It prints the seconds of encoding
and fitting (best of three, each in its own process), how much the peak memory grew, and the
accuracy on other rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

WAYS = ("pandas", "pandas categories", "polars", "arrow", "one-hot matrix")


def table(rows: int, seed: int) -> dict[str, Any]:
    """Return the columns of the table, with the labels in "label"."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"n{k}": rng.normal(size=rows) for k in range(10)}
    levels = (3, 10, 50, 300, 2000)
    effects = np.random.default_rng(0)
    score = columns["n0"] - 0.5 * columns["n1"]
    for k, count in enumerate(levels):
        cells = rng.integers(0, count, rows)
        columns[f"c{k}"] = np.array([f"level {i}" for i in range(count)], object)[cells]
        score = score + effects.normal(size=count)[cells]
    columns["label"] = (score + rng.logistic(size=rows) > 0).astype(np.int64)
    return columns


def frame_of(way: str, columns: dict[str, Any]) -> Any:
    """Return the columns as a frame."""
    if way == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    if way == "arrow":
        import pyarrow as pa

        return pa.table(columns)
    import pandas as pd

    frame = pd.DataFrame(columns)
    if way == "pandas categories":
        frame = frame.astype({name: "category" for name in columns if name.startswith("c")})
    return frame


def memory() -> float:
    """Return the peak memory of the process in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def measure(way: str, rule: str, rows: int) -> dict[str, float]:
    """Return seconds, growth of the peak memory in MB, and accuracy of one way."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from thresher import FTRLClassifier, OnePassClassifier

    train, test = table(rows, 1), table(rows // 5, 2)
    y, wanted = train.pop("label"), test.pop("label")
    X, other = frame_of(way, train), frame_of(way, test)
    del train
    clf: Any = {"one-pass": OnePassClassifier, "ftrl": FTRLClassifier}[rule](random_state=0)
    if way == "one-hot matrix":
        words = [name for name in test if name.startswith("c")]
        encoder = OneHotEncoder(handle_unknown="ignore")
        rest = ColumnTransformer(
            [("words", encoder, words)], remainder="passthrough", sparse_threshold=1.0
        )
        clf = make_pipeline(rest, clf)
    warm = frame_of(way, {k: v[:200] for k, v in test.items()})
    if way != "one-hot matrix":
        type(clf)(random_state=0).fit(warm, wanted[:200])  # imports are not counted
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = memory()
    began = time.perf_counter()
    clf.fit(X, y)
    seconds = time.perf_counter() - began
    grown = memory() - before
    return {"seconds": seconds, "MB": grown, "accuracy": float(clf.score(other, wanted))}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rule", choices=("one-pass", "ftrl"), default="one-pass")
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, options.rule, options.rows)))
        return
    print("| way | seconds | peak memory grew by | accuracy |\n|---|---|---|---|")
    for way in WAYS:
        command = [sys.executable, __file__, "--way", way, "--rule", options.rule,
                   "--rows", str(options.rows)]  # fmt: skip
        found = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(3)
        ]
        best = min(found, key=lambda one: one["seconds"])
        print(f"| {way} | {best['seconds']:.2f} | {best['MB']:.0f} MB | {best['accuracy']:.4f} |")


if __name__ == "__main__":
    main()
