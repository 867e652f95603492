"""Time of one row at a time beside river: predict_one, predict_proba_one and learn_one.

    python benchmarks/one_row.py --river /path/to/python-with-river [--rows 8000] [--json FILE]

Rows are dicts of real text: rcv1 (features with namespaces and weights) and 20 newsgroups (counts
of words; computers against recreation), in the order of the files or shuffled with a fixed seed.
Every learner sees the rows one by one: it predicts a row, then learns it. So the log loss and the
accuracy are progressive ones, of rows that were not learned yet.

The learners take turns: each learns a block of rows, then the next one does, in a process of its
own. Times are of whole calls from Python. For each learner the table shows the median over blocks
of the mean time of a call, in microseconds; the first block is left out.
"""

from __future__ import annotations

import argparse
import collections
import json
import lzma
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

BLOCK = 500  # rows between two turns
WORD = re.compile(r"[a-z]{2,}")


# ---- rows ----------------------------------------------------------------------------------------


def rcv1(folder: Path, count: int) -> list[tuple[dict[str, float], bool]]:
    """Return rows of rcv1: "1 |f 13:0.04 24:0.03 ..." becomes {"f^13": 0.04, ...}."""
    found = []
    with lzma.open(folder / "rcv1_small.vw.xz", "rt") as lines:
        for line in lines:
            head, _, tail = line.partition("|")
            space, *features = tail.split()
            pairs = (feature.partition(":") for feature in features)
            row = {f"{space}^{name}": float(value or 1.0) for name, _, value in pairs}
            found.append((row, float(head.split()[0]) > 0))
            if len(found) == count:
                break
    return found


def news(folder: Path, count: int) -> list[tuple[dict[str, float], bool]]:
    """Return messages of 20 newsgroups as counts of words, shuffled."""
    found = []
    with tarfile.open(folder / "20news-bydate.tar.xz") as tar:
        for member in tar:
            parts = Path(member.name).parts
            if not member.isfile() or len(parts) < 2 or parts[-2].split(".")[0] not in GROUPS:
                continue
            file = tar.extractfile(member)
            assert file is not None
            _, _, body = file.read().decode("latin-1").partition("\n\n")
            words = collections.Counter(WORD.findall(body.lower()))
            row = {word: float(n) for word, n in words.items()}
            found.append((row, parts[-2].split(".")[0] == "comp"))
    random.Random(0).shuffle(found)
    return found[:count]


GROUPS = ("comp", "rec")
SETS = {"rcv1": rcv1, "20news": news}


# ---- learners ------------------------------------------------------------------------------------


def thresher_learner(name: str) -> Any:
    """Return an estimator with its defaults."""
    import thresher

    return getattr(thresher, name)()


def river_learner(name: str) -> Any:
    """Return a logistic regression of river with this optimizer, with its defaults."""
    from river import linear_model, optim

    return linear_model.LogisticRegression(optimizer=getattr(optim, name)())


LEARNERS = {
    "thresher": (
        thresher_learner,
        ["OnePassClassifier", "FTRLClassifier", "AdaGradClassifier", "TruncatedGradientClassifier"],
    ),
    "river": (river_learner, ["SGD", "AdaGrad", "FTRLProximal"]),
}


def work(package: str, name: str, rows: Path) -> None:
    """Learn a block of rows for each line on standard input; print times and losses."""
    make = LEARNERS[package][0]
    model = make(name)
    items = [(row, label) for row, label in map(json.loads, rows.read_text().splitlines())]
    clock = time.perf_counter
    print("ready", flush=True)
    for line in sys.stdin:
        first = int(line)
        predicting = proba = learning = loss = 0.0
        right = 0
        block = items[first : first + BLOCK]
        for row, label in block:
            a = clock()
            predicted = model.predict_one(row)
            b = clock()
            p = model.predict_proba_one(row)
            c = clock()
            model.learn_one(row, label)
            d = clock()
            predicting, proba, learning = predicting + b - a, proba + c - b, learning + d - c
            right += predicted == label
            loss -= math.log(max(p.get(label, 0.5), 1e-15))
        times = [1e6 * t / len(block) for t in (predicting, proba, learning)]
        print(json.dumps({"times": times, "right": right, "loss": loss}), flush=True)


# ---- the comparison ------------------------------------------------------------------------------


class Worker:
    """A learner in a process of its own."""

    def __init__(self, python: str, package: str, name: str, rows: Path) -> None:
        self.name, self.blocks = f"{package} {name}", []
        command = [python, __file__, "--work", package, name, str(rows)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def _read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: the process ended")
        return line

    def learn(self, first: int) -> None:
        """Let it learn a block."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{first}\n")
        self.process.stdin.flush()
        self.blocks.append(json.loads(self._read()))

    def result(self, rows: int) -> dict[str, Any]:
        """End the process; return times, loss and accuracy."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        later = self.blocks[1:] or self.blocks
        medians = [statistics.median(block["times"][i] for block in later) for i in range(3)]
        return {
            "learner": self.name,
            "predict_one": medians[0],
            "predict_proba_one": medians[1],
            "learn_one": medians[2],
            "log_loss": sum(block["loss"] for block in self.blocks) / rows,
            "accuracy": sum(block["right"] for block in self.blocks) / rows,
        }


def compare(name: str, folder: Path, count: int, river: str | None) -> dict[str, Any]:
    """Return the results of all learners on a set."""
    items = SETS[name](folder, count)
    pythons = {"thresher": sys.executable, **({"river": river} if river else {})}
    with tempfile.TemporaryDirectory() as place:
        rows = Path(place) / "rows"
        rows.write_text("\n".join(json.dumps(item) for item in items))
        workers = [
            Worker(python, package, learner, rows)
            for package, python in pythons.items()
            for learner in LEARNERS[package][1]
        ]
        for first in range(0, len(items), BLOCK):
            for worker in workers:
                worker.learn(first)
        results = [worker.result(len(items)) for worker in workers]
    features = sum(len(row) for row, _ in items) / len(items)
    return {"set": name, "rows": len(items), "features": features, "results": results}


def main() -> None:
    """Compare on all sets, and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--river", help="a Python interpreter that has river")
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--data", type=Path, default=os.environ.get("THRESHER_DATA", "data"))
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work[0], given.work[1], Path(given.work[2]))
        return
    found = []
    for name in given.sets:
        one = compare(name, Path(given.data), given.rows, given.river)
        found.append(one)
        print(f"\n{name}: {one['rows']:,} rows, {one['features']:.0f} features each; microseconds")
        print(f"{'':40} predict  proba  learn  log loss  accuracy")
        for r in one["results"]:
            times = f"{r['predict_one']:7.1f} {r['predict_proba_one']:6.1f} {r['learn_one']:6.1f}"
            print(f"{r['learner']:40} {times} {r['log_loss']:9.3f} {r['accuracy']:9.3f}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
