"""The stabilized rule compared with the same number of plain SGD runs: the cost of stages.

`python benchmarks/stabilized.py [--rows 20000] [--repeats 5]`, interleaved, best of several.

Each line is 16 paths, one pass each, in different orders, on two threads. Plain SGD is the core's
truncated gradient without gravity: 16 learners on two threads, each with its own permutation of the
rows. The stabilized rule (variant "paper") makes the same steps and also counts, truncates, selects
and purges. With keep = 0 it purges nothing, so it has as many weights to update as SGD. Its stages
have 25 rows (the paper's K = n_K = 5), or 1,000 rows and more.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from core import stream
from thresher import _core
from thresher.data import as_batch

PATHS, JOBS, ETA = 16, 2, 0.1
STAGES = {"K=5, n_K=5": (5, 5), "K=200, n_K=5": (200, 5), "K=1000, n_K=1": (1000, 1)}


def plain(batch: _core.Batch, width: int, orders: list[np.ndarray]) -> Callable[[], None]:
    """Return a function that makes 16 runs of SGD on two threads."""
    numbers = {
        "eta0": ETA, "power": 0.5, "decay": 1.0, "gravity": 0.0, "period": 1.0, "relative": 0.0,
        "ceiling": float("inf"), "l2": 0.0, "average": 0.0, "fading": 0.0, "fit_intercept": 0.0,
        "epsilon": 0.1, "quantile": 0.5,
    }  # fmt: skip
    words = {"loss": "logistic", "schedule": "constant", "shrink": "truncate"}

    def work(job: int) -> None:
        for path in range(job, PATHS, JOBS):
            learner = _core.make_learner(
                "truncated_gradient", "dense", "float32", width, numbers, words
            )
            learner.learn(batch, orders[path])

    def run() -> None:
        threads = [threading.Thread(target=work, args=(job,)) for job in range(JOBS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


def stabilized(batch: _core.Batch, width: int, burst: int, bursts: int, keep: float) -> Any:
    """Return a function that runs 16 paths of the published rule on two threads."""
    numbers = {
        "eta0": ETA, "rejection": 0.7, "annealing": -1.0, "keep": keep, "burst": float(burst),
        "bursts": float(bursts), "min_updates": 0.0, "burst_growth": 0.0, "paths": float(PATHS),
        "seed": 0.0, "epsilon": 0.1, "quantile": 0.5,
    }  # fmt: skip
    words = {
        "loss": "logistic", "count": "x", "gravity_rule": "update-quantile", "shuffle": "once",
    }  # fmt: skip

    def run() -> None:
        learner = _core.make_stabilized("paper", "float32", width, numbers, words)
        learner.learn(batch, 1, 0.0, JOBS, lambda stage: True)

    return run


def main() -> None:
    """Print the table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=47_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    X, y = stream(arguments.rows, arguments.width)
    batch = as_batch(X)
    batch.set_targets(y.astype(np.float64))
    orders = [_core.path_order(0, path, 0, arguments.rows) for path in range(PATHS)]
    runs: dict[str, Any] = {"plain SGD x 16": plain(batch, arguments.width, orders)}
    for keep in (0.0, 0.5):
        for name, (burst, bursts) in STAGES.items():
            runs[f"{name}, keep={keep}"] = stabilized(batch, arguments.width, burst, bursts, keep)
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(arguments.repeats):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    base = best["plain SGD x 16"]
    print(f"{arguments.rows:,} rows of {X.nnz // X.shape[0]} of {arguments.width:,} features")
    for name, seconds in best.items():
        print(f"{name:28} {seconds:7.3f} s  {seconds / base:5.2f} x plain SGD")


if __name__ == "__main__":
    main()
