"""Thresher's core compared with scikit-learn's SGD and with the limit of the hardware.

One run, interleaved, best of several: `python benchmarks/core.py [--rows 500000] [--repeats 5]`.

Every row of the table is one epoch over the same CSR matrix in the same order, at the same constant
rate, and shows the mean training loss of the resulting model. scikit-learn runs
`SGDClassifier(loss="log_loss", penalty="l1", alpha=gravity, learning_rate="constant", max_iter=1,
tol=None, shuffle=False, fit_intercept=False)`, in both number types; the faster one counts. (With
an intercept the rules would differ: scikit-learn slows it down a hundredfold on sparse rows.) All
times are those of `fit`, including input checks and allocation. "core alone" is one epoch of the
core's loop on a learner with allocated memory. The perceptron minimises another loss, so only its
time is comparable. The gather limit reads every weight of every row once, prefetched, and does
nothing else (gather_limit.cpp).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from thresher import (
    AveragedSGDClassifier,
    DualAveragingClassifier,
    ForwardBackwardClassifier,
    FTRLClassifier,
    MarginPerceptronClassifier,
    TruncatedGradientClassifier,
    _core,
)
from thresher.data import as_batch
from thresher.rules.core_args import core_parameters

PER_ROW = 73
WIDTHS = {"47k": 47_000, "2^20": 1 << 20, "2^24": 1 << 24}
ETA, GRAVITY = 0.5, 1e-6


def stream(rows: int, width: int, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Make rows of 73 distinct features; the r-th feature has frequency 1/r; unit norm."""
    rng = np.random.default_rng(seed)
    keys = np.empty((rows, PER_ROW), np.int32)
    for start in range(0, rows, 50_000):
        n = min(50_000, rows - start)
        drawn = np.exp(rng.random((n, 3 * PER_ROW)) * np.log(width)).astype(np.int64) % width
        drawn = drawn * 0x9E3779B1 % width  # spread the frequent features
        drawn.sort(axis=1)
        fresh = np.ones(drawn.shape, bool)
        fresh[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
        # choose 73 of each row's distinct features at random; fill up rows that have fewer
        order = np.argsort(np.where(fresh, rng.random(drawn.shape), 2.0), axis=1)[:, :PER_ROW]
        keys[start : start + n] = np.sort(np.take_along_axis(drawn, order, axis=1), axis=1)
    repeated = (keys[:, 1:] == keys[:, :-1]).any(axis=1)
    for row in np.flatnonzero(repeated):
        keys[row] = np.sort(rng.choice(width, PER_ROW, replace=False))
    values = np.full(rows * PER_ROW, 1 / np.sqrt(PER_ROW), np.float32)
    starts = np.arange(0, rows * PER_ROW + 1, PER_ROW, dtype=np.int32)
    X = sp.csr_matrix((values, keys.ravel(), starts), shape=(rows, width))
    truth = np.where(rng.random(width) < 0.1, rng.normal(size=width) * 5, 0.0)
    p = 1 / (1 + np.exp(-(X @ truth)))
    return X, np.where(rng.random(rows) < p, 1, -1)


def gather_limit(X: sp.csr_matrix, folder: str) -> Callable[[], None]:
    """Compile the gather limit and bind it to X."""
    source = Path(__file__).with_name("gather_limit.cpp")
    library = os.path.join(folder, "gather_limit.so")
    if not os.path.exists(library):
        compiler = os.environ.get("CXX", "c++")
        flags = ["-std=c++20", "-O3", "-fno-math-errno", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(source), "-o", library], check=True)
    function = ctypes.CDLL(library).gather_limit
    function.restype = ctypes.c_double
    weights = np.zeros(X.shape[1], np.float32)
    arguments = [a.ctypes.data_as(ctypes.c_void_p) for a in (X.indptr, X.indices, X.data)]
    rows, target = ctypes.c_int64(X.shape[0]), weights.ctypes.data_as(ctypes.c_void_p)
    keep = weights  # the closure keeps the array alive

    def run() -> None:
        assert keep is not None
        function(*arguments, rows, target)

    return run


def loss(model: Any, X: sp.csr_matrix, y: np.ndarray) -> float:
    """Mean logistic loss on the training rows."""
    return float(np.logaddexp(0.0, -y * model.decision_function(X)).mean())


def core_alone(X: sp.csr_matrix, y: np.ndarray) -> Callable[[], Any]:
    """Return a function that runs one epoch of truncated gradient, without any overhead."""
    params = TruncatedGradientClassifier(
        gravity=GRAVITY, eta0=ETA, fit_intercept=False
    ).get_params()
    numbers, words = core_parameters("truncated-gradient", params, X.shape[0])
    learner = _core.make_learner(
        "truncated_gradient", "dense", "float32", X.shape[1], numbers, words
    )
    batch = as_batch(X, y.astype(np.float64))

    def run() -> None:
        learner.learn(batch)

    return run


def contestants(X: sp.csr_matrix, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return the timed calls: each is one epoch from scratch, on a matrix of its dtype."""
    X64 = X.astype(np.float64)
    ours = {"eta0": ETA, "passes": 1, "shuffle": False, "fit_intercept": False}
    theirs = {
        "loss": "log_loss", "learning_rate": "constant", "eta0": ETA, "max_iter": 1, "tol": None,
        "shuffle": False, "alpha": GRAVITY, "fit_intercept": False,
    }  # fmt: skip
    mild = {"alpha": 1e-5, "passes": 1, "shuffle": False}

    def fit(estimator: Any, data: Any = X) -> Callable[[], Any]:
        return lambda: estimator.fit(data, y)

    return {
        "scikit-learn l1, float32": fit(SGDClassifier(penalty="l1", **theirs)),
        "scikit-learn l1, float64": fit(SGDClassifier(penalty="l1", **theirs), X64),
        "truncated gradient, core alone": core_alone(X, y),
        "truncated gradient, K = 10": fit(TruncatedGradientClassifier(gravity=GRAVITY, **ours)),
        "forward-backward (K = 1)": fit(ForwardBackwardClassifier(l1=GRAVITY, **ours)),
        "SGD (gravity 0)": fit(TruncatedGradientClassifier(gravity=0.0, **ours)),
        "averaged SGD": fit(AveragedSGDClassifier(**mild)),
        "FTRL": fit(FTRLClassifier(l1=1.0, passes=1, shuffle=False)),
        "dual averaging": fit(
            DualAveragingClassifier(l1=GRAVITY, passes=1, shuffle=False, fit_intercept=False)
        ),
        "margin perceptron": fit(
            MarginPerceptronClassifier(passes=1, shuffle=False, fit_intercept=False)
        ),
        "truncated gradient, hashed": fit(
            TruncatedGradientClassifier(gravity=GRAVITY, store="hashed", **ours)
        ),
    }


def best_of(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Time all calls in turn, several times; return the best time of each."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def compare(rows: int, repeats: int) -> None:
    """Print the table of speeds."""
    print(f"{rows:,} rows of {PER_ROW} nonzeros, one thread, one epoch, best of {repeats}")
    with tempfile.TemporaryDirectory() as folder:
        for label, width in WIDTHS.items():
            X, y = stream(rows, width)
            calls = {"gather limit": gather_limit(X, folder), **contestants(X, y)}
            best = best_of(calls, repeats)
            peer = min(best["scikit-learn l1, float32"], best["scikit-learn l1, float64"])
            print(f"\n{label} features{'':18}  seconds  Mnnz/s  of limit  x scikit-learn  loss")
            for name, call in calls.items():
                model = call()
                shown = "-" if model is None else f"{loss(model, X, y):.4f}"
                print(
                    f"  {name:32}{best[name]:8.3f}{X.nnz / best[name] / 1e6:8.0f}"
                    f"{100 * best['gather limit'] / best[name]:8.0f} %{peer / best[name]:12.1f}"
                    f"{shown:>12}"
                )


def empty_columns(rows: int, repeats: int) -> None:
    """Show that a step costs the same if empty columns double the width (P-19)."""
    X, y = stream(rows, WIDTHS["2^20"])
    wide = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(rows, 2 * X.shape[1]))
    calls = {"narrow": core_alone(X, y), "wide": core_alone(wide, y)}
    best_of(calls, 1)  # excludes allocation and first touch
    best = best_of(calls, repeats)
    ratio = best["wide"] / best["narrow"]
    print(f"\nwidth 2^20 -> 2^21 by empty columns: a step takes {ratio:.2f}x the time")


def memory(rows: int) -> None:
    """Show the peak memory of fit in a separate process, and the sizes of X and the store."""
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from core import *
X, y = stream({rows}, {WIDTHS["2^20"]})
def now():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
TruncatedGradientClassifier(passes=1, shuffle=False).fit(X[:10], y[:10])
open("/proc/self/clear_refs", "w").write("5")
before = now()
TruncatedGradientClassifier(passes=1, shuffle=False).fit(X, y)
peak = next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]
size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
print(f"fit on CSR of {{size / 2**20:.0f}} MiB: peak memory increase "
      f"{{(int(peak) * 1024 - before) / 2**20:.0f}} MiB, of which the store is "
      f"{{8 * X.shape[1] / 2**20:.0f}} MiB")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    """Parse arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    compare(arguments.rows, arguments.repeats)
    empty_columns(arguments.rows // 5, arguments.repeats)
    memory(arguments.rows // 5)


if __name__ == "__main__":
    main()
