"""The cost of FeatureDiscovery against one pass of FTRL, and its memory.

    python benchmarks/discovery.py [--rows 60000] [--repeats 5] [--memory]

Times are of the whole call `fit` with default options; FTRL makes one pass over the rows, in stored
order. Runs are interleaved, and a time is the best of the repeats. A stream has 12 lanes and 20
redraws; a crossfit has 5 folds and two threads. About 70 values a row; 47,000 and 2^20 features.

--memory prints the largest memory of a process that reads rows in which 10^6 features occur, beyond
that of the same process with the rows loaded.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from one_pass import best_of, table

from thresher import FeatureDiscovery, FTRLClassifier, _core
from thresher.data.arrays import as_batch
from thresher.discovery.folds import FoldDealer

WIDTHS = (47_000, 1 << 20)
BARS = {"stream": (10.0, 10.0), "crossfit": (40.0, 30.0)}  # times of one FTRL pass: must, aim
MILLION = 1_000_000


def discovery(form: str) -> FeatureDiscovery:
    """Return a discovery with default options."""
    return FeatureDiscovery(form=form, n_jobs=2 if form == "crossfit" else None, random_state=0)


def whole_calls(rows: int, repeats: int) -> None:
    """Print times of `fit`."""
    print("## fit, whole call\n\n| | seconds | ns a value | times FTRL | must | aim |")
    print("|---|---|---|---|---|---|", flush=True)
    for width in WIDTHS:
        X, y = table(rows, width)
        calls = {"FTRL": partial(FTRLClassifier(passes=1, shuffle=False).fit, X, y)}
        calls |= {form: partial(discovery(form).fit, X, y) for form in BARS}
        found = best_of(repeats, calls)
        for name, seconds in found.items():
            must, aim = BARS.get(name, ("", ""))
            print(
                f"| {width:,}: {name} | {seconds:.2f} | {1e9 * seconds / X.nnz:.0f} | "
                f"{seconds / found['FTRL']:.1f} | {must} | {aim} |",
                flush=True,
            )


def parts(rows: int, repeats: int) -> None:
    """Print where the time goes: the loops of the core on one thread; the rest is Python."""
    print("\n## the core, one thread\n\n| | seconds | ns a value |\n|---|---|---|", flush=True)
    for width in WIDTHS:
        X, y = table(rows, width)
        found = [_loops(X, y) for _ in range(repeats)]
        for name in found[0]:
            seconds = min(one[name] for one in found)
            each = 1e9 * seconds / X.nnz
            print(f"| {width:,}: {name} | {seconds:.2f} | {each:.0f} |", flush=True)


def _loops(X: Any, y: Any) -> dict[str, float]:
    """Return the seconds of each loop."""
    rows, width = X.shape
    batch = as_batch(X)
    batch.set_targets((y > 0).astype(float), None)
    folds = FoldDealer(5, 0).deal((y > 0).astype(np.int64))
    order = np.random.default_rng(0).permutation(rows)
    marks = [time.perf_counter()]
    seconds = {}

    def mark(name: str) -> None:
        marks.append(time.perf_counter())
        seconds[name] = marks[-1] - marks[-2]

    core = _made(width, 1)
    mark("make a stream")
    core.stream(batch, 0)
    mark("stream: predict, add evidence, learn")
    core.sums()
    mark("copy the sums")
    core = _made(width, 5)
    mark("make a crossfit")
    for fold in range(5):
        core.learn(batch, folds, fold, order, 0, rows)
    mark("learn 5 folds, in a random order")
    for fold in range(5):
        core.finish(fold)
    mark("finish 5 folds")
    core.score(batch, folds, 0, order, 0, rows)
    mark("score all rows, in a random order")
    return seconds


def _made(width: int, folds: int) -> _core.Discovery:
    return _core.make_discovery("classification", "dense", "float32", width, 20, 0, folds)


# ---- memory -------------------------------------------------------------------------------------


def rows_of_million() -> tuple[Any, Any]:
    """Return 60,000 rows with 70 values, in which every one of 10^6 features occurs."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, MILLION, (60_000, 70)).astype(np.int32)
    drawn.ravel()[:MILLION] = rng.permutation(MILLION)
    drawn.sort(axis=1)
    starts = np.arange(0, drawn.size + 1, 70)
    X = sp.csr_matrix((np.ones(drawn.size, np.float32), drawn.ravel(), starts), (60_000, MILLION))
    X.sum_duplicates()
    return X, rng.integers(0, 2, 60_000)


def memory() -> None:
    """Print the largest memory of each form, each measured in a process of its own."""
    print("\n## memory, 10^6 features\n\n| | MB |\n|---|---|")
    loaded = _megabytes("none")
    for form in BARS:
        print(f"| {form} | {_megabytes(form) - loaded:,.0f} |", flush=True)


def largest() -> float:
    """Return the largest memory of this process so far, in MB (Linux)."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def _megabytes(form: str) -> float:
    done = subprocess.run([sys.executable, __file__, "--of", form], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="only the memory")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.of:
        X, y = rows_of_million()
        if options.of != "none":
            discovery(options.of).fit(X, y)
        print(largest())
        return
    if not options.memory:
        whole_calls(options.rows, options.repeats)
        parts(options.rows, min(2, options.repeats))
    memory()


if __name__ == "__main__":
    main()
