"""Two installations of Thresher compared: complete calls, interleaved, best of several.

`python benchmarks/versions.py BEFORE AFTER [--rows 100000] [--repeats 5]`. BEFORE and AFTER are
Python interpreters that have Thresher. Each installation runs in a server process that has its data
ready; the calls of both alternate. `fit` is one pass over a CSR matrix, `partial_fit` is 200
batches of 100 rows, file is `thresher train` on VW text, `search` is `OnePassSearchCV` over 8
points and 3 folds. A digest of the weights shows whether both gave the same bits.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SERVER = """
import hashlib, json, subprocess, sys, time
import numpy as np, scipy.sparse as sp
from thresher import FTRLClassifier, OnePassSearchCV, TruncatedGradientClassifier

rows, width, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
keys = np.exp(rng.random((rows, 60)) * np.log(width)).astype(np.int32) % width
keys.sort(axis=1)
values = np.full(keys.size, 60**-0.5, np.float32)
X = sp.csr_matrix((values, keys.ravel(), np.arange(rows + 1) * 60), shape=(rows, width))
X.has_sorted_indices = True
told = np.asarray(X[:, :50].sum(axis=1)).ravel() + 0.1 * rng.normal(size=rows)
y = (told > np.median(told)).astype(int)
few = rows // 10


def fit(kind):
    return kind(passes=1, shuffle=False).fit(X, y).coef_


def partial():
    clf = FTRLClassifier()
    for start in range(0, 20_000, 100):
        clf.partial_fit(X[start : start + 100], y[start : start + 100], classes=[0, 1])
    return clf.coef_


def search():
    clf = TruncatedGradientClassifier(passes=1, shuffle=False)
    grid = {"gravity": [0, 1e-6, 1e-5, 1e-4], "eta0": [0.1, 0.5]}
    return OnePassSearchCV(clf, grid, cv=3).fit(X[:few], y[:few]).best_estimator_.coef_


def train(path):
    run = [sys.executable, "-m", "thresher.cli", "train", path, "-m", file, "--quiet"]
    subprocess.run(run, check=True)
    import thresher

    return thresher.load(file).weights


calls = {
    "fit, truncated gradient": lambda: fit(TruncatedGradientClassifier),
    "fit, FTRL": lambda: fit(FTRLClassifier),
    "partial_fit, 200 batches": partial,
    "search": search,
    "file": lambda: train(sys.argv[4]),
    "file of 100 rows": lambda: train(sys.argv[5]),
}
for line in sys.stdin:
    began = time.perf_counter()
    found = calls[line.strip()]()
    seconds = time.perf_counter() - began
    print(json.dumps([seconds, hashlib.sha256(np.ascontiguousarray(found)).hexdigest()[:12]]))
    sys.stdout.flush()
"""
CALLS = (
    "fit, truncated gradient",
    "fit, FTRL",
    "partial_fit, 200 batches",
    "search",
    "file",
    "file of 100 rows",
)


def text(path: Path, rows: int) -> str:
    """Write rows of VW text whose labels depend on a few of the words."""
    import random

    made = random.Random(0)
    with path.open("w") as file:
        for _ in range(rows):
            words = sorted({int(1e5 ** made.random()) for _ in range(40)})
            label = 1 if sum(word < 8 for word in words) + made.random() > 6 else -1
            file.write(f"{label} |w {' '.join(f'w{word}' for word in words)}\n")
    return str(path)


def main() -> None:
    """Run both; print times and whether digests are equal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=1 << 20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [text(Path(folder, "rows.vw"), 20_000), text(Path(folder, "few.vw"), 100)]
        servers: list[Any] = [
            subprocess.Popen(
                [python, "-c", SERVER, str(options.rows), str(options.width),
                 str(Path(folder, f"{k}.thresher")), *files],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for k, python in enumerate((options.before, options.after))
        ]  # fmt: skip
        print(f"{'call':28}{'before':>10}{'after':>10}{'ratio':>8}  same bits")
        for call in CALLS:
            best, digests = [float("inf")] * 2, ["", ""]
            for _ in range(options.repeats):
                for k, server in enumerate(servers):
                    print(call, file=server.stdin, flush=True)
                    seconds, digests[k] = json.loads(server.stdout.readline())
                    best[k] = min(best[k], seconds)
            same = "yes" if digests[0] == digests[1] else "no"
            print(f"{call:28}{best[0]:>9.3f}s{best[1]:>9.3f}s{best[1] / best[0]:>8.2f}  {same}")
            sys.stdout.flush()
        for server in servers:
            server.stdin.close()
            server.wait()


if __name__ == "__main__":
    main()
