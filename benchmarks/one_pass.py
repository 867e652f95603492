"""The cost of the rule one-pass against one pass of FTRL, and against Vowpal Wabbit.

    python benchmarks/one_pass.py [--rows 10000] [--repeats 5] [--vw-rows 20000]

Three tables, each from interleaved runs; a time is the best of the repeats.

fit     the whole call `fit` with default options, except that rows are not shuffled: FTRL with one
        pass, and one-pass with 12 and with 4 lanes, for 47,000 and 2^20 features, in the dense and
        in the hashed store. Memory is that of the store.
core    the loop over rows alone, for every vector level that this machine has
VW      one pass over the same VW text with default options: seconds, and progressive loss. The
        column "until" is the time until Thresher's progressive loss is at most that of VW's whole
        pass. It is skipped if VW is not installed (`make bench-peers`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from speed import peers
from vw import DRIVER
from vw_data import files

from thresher import FTRLClassifier, OnePassClassifier, _core
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (47_000, 1 << 20)
PER_ROW = 90  # features drawn for a row; frequent ones are drawn several times
LEVELS = ("portable", "avx2", "avx512")
BARS = {12: (8.0, 5.0), 4: (4.0, 2.5)}  # times of one FTRL pass: must, aim


def table(rows: int, width: int) -> tuple[Any, Any]:
    """Return rows whose r-th most frequent feature has a frequency of about 1 / r, and labels."""
    rng = np.random.default_rng(0)
    drawn = np.minimum((width ** rng.random((rows, PER_ROW))).astype(np.int32) - 1, width - 1)
    drawn.sort(axis=1)
    X = sp.csr_matrix(
        (np.ones(drawn.size, np.float32), drawn.ravel(), np.arange(0, drawn.size + 1, PER_ROW)),
        shape=(rows, width),
    )
    X.sum_duplicates()
    X.data[:] = np.abs(rng.standard_normal(X.nnz))
    weights = rng.standard_normal(width) * (rng.random(width) < 0.1)
    return X, np.where(X @ weights + 0.3 * rng.standard_normal(rows) > 0, 1.0, -1.0)


def best_of(repeats: int, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the least seconds of each call, from interleaved runs."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def batch_of(X: Any, y: Any) -> _core.Batch:
    """Return the rows for the core."""
    return _core.sparse_batch(X.indptr, X.indices, X.data, X.shape[1], y, None)


def lanes_of(lanes: int, store: str, width: int, level: str) -> _core.Lanes:
    """Return one output of the rule one-pass."""
    params = {name: p.default for name, p in RULES["one-pass"].parameters.items()}
    numbers, words = core_parameters("one-pass", params | {"lanes": lanes}, None)
    return _core.make_lanes(
        "one_pass", store, "float32", width, [numbers], [words], [0], [-1], level
    )


def ftrl_of(store: str, width: int) -> _core.Learner:
    """Return a learner by FTRL with its defaults."""
    params = {name: p.default for name, p in RULES["ftrl"].parameters.items()}
    numbers, words = core_parameters("ftrl", params | {"alpha": 0.1}, None)
    return _core.make_learner("ftrl", store, "float32", width, numbers, words)


def line_of(name: str, seconds: float, ftrl: float, nonzeros: int, size: float | None) -> str:
    """Return a row of a table."""
    memory = "" if size is None else f"{size:.0f}"
    each = 1e9 * seconds / nonzeros
    return f"| {name} | {seconds:.3f} | {each:.1f} | {seconds / ftrl:.2f} | {memory} |"


def whole_calls(rows: int, repeats: int) -> None:
    """Print times of `fit`, and bytes of the store for each feature seen."""
    print("\n## fit, whole call\n\n| | seconds | ns a nonzero | times FTRL | bytes a feature |")
    print("|---|---|---|---|---|")
    worst = dict.fromkeys(BARS, 0.0)
    for width in WIDTHS:
        X, y = table(rows, width)
        seen = len(np.unique(X.indices))
        for store in ("dense", "hashed"):
            plain = {"shuffle": False, "store": store}
            made = {
                "FTRL": FTRLClassifier(passes=1, **plain),
                "12": OnePassClassifier(lanes=12, **plain),
                "4": OnePassClassifier(lanes=4, **plain),
            }
            found = best_of(
                repeats, {name: partial(clone(one).fit, X, y) for name, one in made.items()}
            )
            for lanes in BARS:
                worst[lanes] = max(worst[lanes], found[str(lanes)] / found["FTRL"])
            for name, seconds in found.items():
                learner: Any = ftrl_of(store, width)
                if name != "FTRL":
                    learner = lanes_of(int(name), store, width, "auto")
                learner.learn(batch_of(X, y))
                size = learner.store_bytes / (width if store == "dense" else seen)
                title = f"{width:,}, {store}: {name}{'' if name == 'FTRL' else ' lanes'}"
                print(line_of(title, seconds, found["FTRL"], X.nnz, size), flush=True)
    for lanes, (must, aim) in BARS.items():
        print(f"\n{lanes} lanes: at most {worst[lanes]:.2f} times FTRL (must {must}, aim {aim})")


def loops(rows: int, repeats: int) -> None:
    """Print times of the loop over rows, for each vector level."""
    print("\n## core, the loop over rows, dense\n\n| | seconds | ns a nonzero | times FTRL | |")
    print("|---|---|---|---|---|")
    for width in WIDTHS:
        X, y = table(rows, width)
        batch = batch_of(X, y)
        calls = {"FTRL": lambda b=batch, w=width: ftrl_of("dense", w).learn(b)}
        for level in LEVELS:
            try:
                lanes_of(4, "dense", 1, level)
            except ValueError:
                continue
            for lanes in BARS:
                calls[f"{lanes} lanes, {level}"] = lambda n=lanes, v=level, b=batch, w=width: (
                    lanes_of(n, "dense", w, v).learn(b)
                )
        found = best_of(repeats, calls)
        for name, seconds in found.items():
            print(line_of(f"{width:,}: {name}", seconds, found["FTRL"], X.nnz, None), flush=True)


# ---- Vowpal Wabbit -------------------------------------------------------------------------------


def timed(command: list[str]) -> tuple[float, list[tuple[float, str]]]:
    """Run a process; return its seconds, and its lines with the seconds at which they came."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    assert process.stdout is not None
    lines = [(time.perf_counter() - began, line) for line in process.stdout]
    if process.wait():
        raise SystemExit("".join(line for _, line in lines))
    return time.perf_counter() - began, lines


def course(lines: list[tuple[float, str]]) -> list[tuple[float, float]]:
    """Return the seconds of each event, with the mean progressive loss up to it."""
    events = [(seconds, json.loads(line)) for seconds, line in lines if line.startswith("{")]
    return [(seconds, event["mean_loss"]) for seconds, event in events if event.get("mean_loss")]


def reached(lines: list[tuple[float, str]], target: float) -> float:
    """Return the seconds at which the mean loss was at most the target, and stayed there."""
    found = float("inf")
    for seconds, loss in reversed(course(lines)):
        if loss > target:
            break
        found = seconds
    return found


def against_vw(rows: int, repeats: int, folder: Path) -> None:
    """Print times and losses of VW and Thresher on the same text."""
    print("\n## VW text, one pass\n")
    peers.find()
    if importlib.util.find_spec("pylibvw") is None:
        print(peers.missing("VW"))
        return
    text, model = str(files(folder, rows)["named.vw"]), str(folder / "one_pass.model")
    options = ["--loss_function", "logistic", "-b", "22"]
    peer = [sys.executable, "-c", DRIVER, "-d", text, "-f", model, *options]
    ours = [sys.executable, "-m", "thresher", "train", text, "-m", model, "--bits", "22"]
    ours += ["--no-names", "--json", "--rule"]
    runs: dict[str, list[tuple[float, list[tuple[float, str]]]]] = {}
    for _ in range(repeats):
        runs.setdefault("VW", []).append(timed(peer))
        for lanes in ("12", "4"):
            found = timed([*ours, "one-pass", "--lanes", lanes])
            runs.setdefault(f"one-pass, {lanes} lanes", []).append(found)
        runs.setdefault("FTRL", []).append(timed([*ours, "ftrl"]))
    said = "".join(line for _, line in runs["VW"][0][1])
    vw_loss = float(said.split("average loss = ")[1].split()[0])
    print("| | seconds | progressive loss | until VW's loss |\n|---|---|---|---|")
    for name, found in runs.items():
        seconds = min(wall for wall, _ in found)
        loss, until = vw_loss, seconds
        if name != "VW":
            loss = course(found[0][1])[-1][1]
            until = min(reached(lines, vw_loss) for _, lines in found)
        print(f"| {name} | {seconds:.2f} | {loss:.4f} | {until:.2f} |", flush=True)


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--vw-rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # columns of different size
    whole_calls(options.rows, options.repeats)
    loops(options.rows, options.repeats)
    against_vw(options.vw_rows, min(options.repeats, 3), options.folder)


if __name__ == "__main__":
    main()
