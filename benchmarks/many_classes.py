"""Many classes in little memory: 18 million features x 1,000 classes, and eurlex4k.

`python benchmarks/many_classes.py [--rows 1000000] [--losses hinge squared_hinge] [--data DIR]`

The first stream has rows of 13 features out of 18 million, each of one of 1,000 classes. The
frequencies of classes follow Zipf's law (exponent 0.7). With probability 0.3, a feature of a row is
one of 200 features that its class prefers; else it is drawn from all features, also by Zipf's law
(exponent 1.05): a few features are in most rows, most features in none or one. Rows are generated
in blocks and discarded. Intercepts start at the log-odds of the classes, estimated from the first
block. The last block is the test set.

A weight for each feature and class, in one array of float32, would take 72 GB. Only the nonzero
weights are stored. Each loss runs in a separate process: peak memory is that of the whole process,
with Python and NumPy.

Logistic loss is not included: it has a gradient for each class at each row, so it makes rows x
nonzeros x classes updates, here 13 billion, and every (feature, class) pair that occurs gets a
weight.
"""

from __future__ import annotations

import argparse
import lzma
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np
from folder import DATA
from numpy.typing import NDArray

from thresher import _core
from thresher.rules import RULES
from thresher.rules.core_args import core_parameters

WIDTH, CLASSES, PER_ROW = 18_000_000, 1_000, 13
FAVOURED, SHARE = 200, 0.3
BLOCK = 20_000

Classes = tuple[NDArray[np.int64], NDArray[np.int32]]


class Stream:
    """Rows of one class each."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        shares = np.arange(1, CLASSES + 1) ** -0.7
        self.cumulative = np.cumsum(shares / shares.sum())
        self.favoured = np.sort(self.by_zipf((CLASSES, FAVOURED)), axis=1)

    def by_zipf(self, shape: tuple[int, ...], exponent: float = 1.05) -> NDArray[np.int64]:
        """Draw feature numbers by the inverse distribution function of the power law."""
        power = 1 - exponent
        u = self.rng.random(shape)
        rank = (1 + u * (float(WIDTH) ** power - 1)) ** (1 / power)
        # Spread over the space, so that frequent features are not neighbours.
        return rank.astype(np.int64) * 7_368_787 % WIDTH

    def block(self, rows: int = BLOCK) -> tuple[_core.Batch, NDArray[np.int32]]:
        """Return rows, and the class of each."""
        y = np.searchsorted(self.cumulative, self.rng.random(rows)).clip(0, CLASSES - 1)
        keys = self.by_zipf((rows, PER_ROW))
        own = self.rng.random((rows, PER_ROW)) < SHARE
        favourites = self.favoured[y[:, None], self.rng.integers(0, FAVOURED, (rows, PER_ROW))]
        keys = np.sort(np.where(own, favourites, keys), axis=1).astype(np.int32)
        values = np.full(keys.size, PER_ROW**-0.5, dtype=np.float32)
        starts = np.arange(rows + 1, dtype=np.int64) * PER_ROW
        return _core.sparse_batch(starts, keys.ravel(), values, 0, None, None), y.astype(np.int32)


def peak() -> float:
    """Return the largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def make(width: int, classes: int, loss: str, gravity: float, eta0: float) -> _core.LabelLists:
    """Make lanes with the defaults of the rule, except for a few parameters."""
    rule = RULES["truncated-gradient"]
    params = {name: spec.default for name, spec in rule.own.items()}
    params |= {"loss": loss, "gravity": gravity, "eta0": eta0, "fit_intercept": True}
    return _core.make_labels(
        rule.core, "float32", width, *core_parameters("truncated-gradient", params, None), classes
    )


def log_odds(counts: NDArray[np.int64], rows: int) -> NDArray[np.float64]:
    """Return the log-odds of classes from their counts; no class is impossible."""
    share = (counts + 0.5) / (rows + 1.0)
    return np.log(share / (1 - share))


def wide(loss: str, rows: int, gravity: float, eta0: float) -> None:
    """Train on 18 million features and 1,000 classes."""
    stream = Stream(0)
    lanes = make(WIDTH, CLASSES, loss, gravity, eta0)
    seconds = busy = 0.0
    before = peak()
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        batch, y = stream.block(n)
        if start == 0:
            lanes.plant_intercepts(log_odds(np.bincount(y, minlength=CLASSES), n))
        classes = (np.arange(n + 1, dtype=np.int64), y)
        began, worked = time.perf_counter(), time.thread_time()
        lanes.learn(batch, classes=classes)
        seconds += time.perf_counter() - began
        busy += time.thread_time() - worked
    batch, y = stream.block(5_000)
    right = np.mean(lanes.predict(batch).argmax(axis=1) == y)
    most = np.mean(y == np.bincount(y).argmax())
    print(
        f"{WIDTH:,} x {CLASSES:,} {loss}: {rows:,} rows in {seconds:.2f} s "
        f"({busy:.2f} s of the processor), {peak():.0f} MB in all "
        f"({before:.0f} before), store {lanes.store_bytes / 1e6:.0f} MB, "
        f"{lanes.nonzeros().sum():,} weights, accuracy {right:.3f} (most frequent: {most:.3f}); "
        f"a full array: {4e-9 * WIDTH * CLASSES:.0f} GB"
    )


def labelled(path: Path) -> tuple[_core.Batch, Classes, int, int, int]:
    """Read rows of `l1,l2,... i:v ...` after a line of rows, features and labels."""
    starts, keys, values, label_starts, labels = [0], [], [], [0], []
    with lzma.open(path, "rt") as lines:
        rows, width, count = map(int, next(lines).split())
        for line in lines:
            first, _, rest = line.partition(" ")
            labels += [int(label) for label in first.split(",") if label]
            pairs = [pair.split(":") for pair in rest.split()]
            row = np.array([float(v) for _, v in pairs])
            keys += [int(i) for i, _ in pairs]
            values += list(row / max(np.sqrt(row @ row), 1e-12))
            starts.append(len(keys))
            label_starts.append(len(labels))
    batch = _core.sparse_batch(
        np.array(starts), np.array(keys, dtype=np.int32), np.array(values, dtype=np.float32), 0,
        None, None,
    )  # fmt: skip
    return batch, (np.array(label_starts), np.array(labels, dtype=np.int32)), rows, width, count


def eurlex(folder: Path, loss: str, gravity: float, eta0: float, passes: int) -> None:
    """Train on 15,539 rows x 5,000 features x 3,993 labels; print the precision."""
    batch, classes, rows, width, count = labelled(folder / "eurlex4k_train.txt.xz")
    lanes = make(width, count, loss, gravity, eta0)
    lanes.plant_intercepts(log_odds(np.bincount(classes[1], minlength=count), rows))
    began, worked = time.perf_counter(), time.thread_time()
    for _ in range(passes):
        lanes.learn(batch, classes=classes)
    seconds, busy = time.perf_counter() - began, time.thread_time() - worked
    test, (starts, labels), held_out, _, _ = labelled(folder / "eurlex4k_test.txt.xz")
    best = np.argsort(-lanes.predict(test), axis=1)[:, :5]
    hits = np.array([np.isin(best[r], labels[starts[r] : starts[r + 1]]) for r in range(held_out)])
    print(
        f"eurlex4k {loss}: {passes} passes in {seconds:.2f} s "
        f"({busy:.2f} s of the processor), store "
        f"{lanes.store_bytes / 1e6:.0f} MB, {lanes.nonzeros().sum():,} weights of "
        f"{width * count:,}, precision at 1, 3, 5: "
        + ", ".join(f"{hits[:, :k].mean():.3f}" for k in (1, 3, 5))
    )


def main() -> None:
    """Run both benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--losses", nargs="+", default=["hinge", "squared_hinge"])
    parser.add_argument("--gravity", type=float, default=1e-6)
    parser.add_argument("--eta0", type=float, default=0.2)
    parser.add_argument("--passes", type=int, default=2, help="passes over eurlex4k")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    fresh = multiprocessing.get_context("spawn")
    for loss in options.losses:
        run = fresh.Process(target=wide, args=(loss, options.rows, options.gravity, options.eta0))
        run.start()
        run.join()
    if (options.data / "eurlex4k_train.txt.xz").exists():
        for loss in options.losses:
            eurlex(options.data, loss, 10 * options.gravity, options.eta0, options.passes)


if __name__ == "__main__":
    main()
