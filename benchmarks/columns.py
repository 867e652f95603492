"""Mode "columns" against the serial margin perceptron: test error and time by batch size.

`python benchmarks/columns.py [--sets a9a comp_vs_rec] [--batches 1 64 1024] [--blocks 8]`

All blocks are in this process and run one after the other, so the time is the work of all blocks
without any messages. It is the time of training, without reading and splitting rows. Both methods
use the defaults of the estimator except for the number of passes, and the same orders of rows.
Errors are means over seeds, with the standard deviation; that of the serial rule shows which
differences are noise.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from folder import DATA
from sklearn.datasets import dump_svmlight_file
from sklearn.utils import check_random_state

from thresher import MarginPerceptronClassifier, datasets
from thresher.data.labels import TwoClasses
from thresher.distributed.engine.executor import InProcessExecutor
from thresher.distributed.engine.loop import StageReport, run_stages
from thresher.distributed.engine.pieces import ClusterJob
from thresher.distributed.modes.columns import ColumnsMode
from thresher.distributed.shards import find_shards


def columns(
    file: str, rows: int, width: int, params: dict[str, object], batch: int, blocks: int, seed: int
) -> tuple[np.ndarray, float, float, int]:
    """Train; return the weights, the intercept, microseconds per row, and the number of updates."""
    estimator = MarginPerceptronClassifier(**params)
    job = ClusterJob(
        rule="margin-perceptron",
        task="classifier",
        params=estimator.get_params(),
        rows=find_shards(file, {"format": "svmlight"}),
        labels=TwoClasses(),
        width=width,
        counts=[rows],
        seed=int(check_random_state(seed).randint(2**31)),
    )
    mode, reports = ColumnsMode(job, batch, blocks), list[StageReport]()
    learned = run_stages(mode, InProcessExecutor(mode, None), None, 1, None, reports.append).learned
    taken = sum(report.rows for report in reports[1:])
    seconds = sum(report.seconds for report in reports[1:])
    w = np.zeros(width)
    w[learned.outputs[0].keys.astype(int)] = learned.outputs[0].weights
    return w, learned.outputs[0].intercept, 1e6 * seconds / taken, int(learned.facts["updates"])


def compare(name: str, batches: list[int], blocks: list[int], passes: int, seeds: int) -> None:
    """Print a line for the serial rule, and one for each batch and number of blocks."""
    data = datasets.load(name, DATA)
    X, X_test, y_test = data.X_train, data.X_test, data.y_test
    y = np.where(data.y_train > 0, 1.0, -1.0)
    rows, width = X.shape
    print(f"{name}: {rows} rows, {width} features, {X.nnz / rows:.0f} in a row, {passes} passes")
    print(f"  {'':24}{'test error':>18}{'nonzeros':>10}{'updates':>9}{'us / row':>10}")

    def line(label: str, found: list[tuple[float, int, int, float]]) -> None:
        errors, nonzeros, updates, times = (np.array(values) for values in zip(*found, strict=True))
        print(
            f"  {label:24}{errors.mean():>10.4f} +-{errors.std():.4f}{nonzeros.mean():>10.0f}"
            f"{updates.mean():>9.0f}{np.median(times):>10.2f}",
            flush=True,
        )

    found = []
    for seed in range(seeds):
        began = time.perf_counter()
        serial = MarginPerceptronClassifier(passes=passes, random_state=seed).fit(X, y)
        each = 1e6 * (time.perf_counter() - began) / serial.n_iter_ / rows
        updates = int(serial._learners[0].facts()["updates"])
        error = float(np.mean((serial.decision_function(X_test) > 0) != (y_test > 0)))
        found.append((error, np.count_nonzero(serial.coef_), updates, each))
    line("serial", found)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "rows.svm"))
        dump_svmlight_file(X, y, file, zero_based=False)
        for count in blocks:
            for batch in batches:
                found = []
                for seed in range(seeds if batch > 1 else 1):
                    w, b, each, updates = columns(
                        file, rows, width, {"passes": passes}, batch, count, seed
                    )
                    error = float(np.mean((X_test @ w + b > 0) != (y_test > 0)))
                    found.append((error, np.count_nonzero(w), updates, each))
                line(f"batch {batch}, blocks {count}", found)


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["a9a", "comp_vs_rec", "rcv1_small"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 64, 1024, 4096, 16384])
    parser.add_argument("--blocks", nargs="+", type=int, default=[8])
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    for name in options.sets:
        compare(name, options.batches, options.blocks, options.passes, options.seeds)


if __name__ == "__main__":
    main()
