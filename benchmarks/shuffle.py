"""The cost of --shuffle, and what it mends: whole calls of `thresher train` on a sorted file.

    python benchmarks/shuffle.py [--rows 100000] [--words 60] [--passes 1] [--times 5]

Writes texts as VW lines: one file sorted by label, one with the same rows mixed beforehand, and
10,000 other rows to test on. Then it trains on the sorted file in its order, with --shuffle-blocks,
with --shuffle in memory, and with --shuffle on disk (the limit of memory is set to 1 MB, as for
a file of any size), and on the mixed file in its order. The ways take turns; the table shows the
best time of each, its relation to the sorted file in its order, the mean progressive loss, and the
accuracy on the other rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import thresher

WAYS = {  # name: (file, options, whether the rows are dealt on disk)
    "sorted, in order": ("sorted.vw", [], False),
    "sorted, --shuffle-blocks": ("sorted.vw", ["--shuffle-blocks"], False),
    "sorted, --shuffle": ("sorted.vw", ["--shuffle"], False),
    "sorted, --shuffle on disk": ("sorted.vw", ["--shuffle"], True),
    "mixed, in order": ("mixed.vw", [], False),
}
MEMORY = "from thresher.cli import main; main()"
DISK = f"from thresher.data import shuffled; shuffled.LIMIT = 1 << 20; {MEMORY}"
TEST = 10_000


def write(folder: Path, rows: int, words: int, features: int = 100_000) -> None:
    """Write the three files."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=features) * (rng.random(features) < 0.1)
    found = (rng.pareto(0.7, size=(rows + TEST, words)) * 20).astype(np.int64) % features
    scores = weights[found].sum(axis=1)
    scores += rng.normal(size=len(scores)) * scores.std() / 2
    labels = np.where(scores > np.median(scores), 1, -1)
    lines = [
        f"{label} |w {' '.join(map(str, own))}\n"
        for label, own in zip(labels.tolist(), found.tolist(), strict=True)
    ]
    by_label = np.argsort(-labels[:rows], kind="stable").tolist()
    (folder / "mixed.vw").write_text("".join(lines[:rows]))
    (folder / "sorted.vw").write_text("".join(lines[at] for at in by_label))
    (folder / "test.vw").write_text("".join(lines[rows:]))


def seconds(folder: Path, way: str, passes: int) -> float:
    """Train in a new process; return its time."""
    file, options, disk = WAYS[way]
    arguments = ["train", str(folder / file), *options, "--bits", "20", "--rule", "ftrl",
                 "--passes", str(passes), "--no-names", "-m", str(folder / f"{way}.thresher"),
                 "--quiet"]  # fmt: skip
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", DISK if disk else MEMORY, *arguments], check=True,
        capture_output=True,
    )  # fmt: skip
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, given.rows, given.words)
        size = (folder / "sorted.vw").stat().st_size / 1e6
        print(
            f"{given.rows:,} rows, {given.words} words each, {size:.0f} MB, {given.passes} passes"
        )
        best = dict.fromkeys(WAYS, float("inf"))
        for _ in range(given.times):
            for way in WAYS:
                best[way] = min(best[way], seconds(folder, way, given.passes))
        test = thresher.scan(folder / "test.vw", bits=20)
        truth = np.concatenate([block.labels for block in test.blocks()])
        print(f"{'':26}{'seconds':>8}{'ratio':>7}{'loss':>8}{'accuracy':>10}")
        for way, time_of in best.items():
            model = thresher.load(folder / f"{way}.thresher")
            examples = np.diff([0, *(record.examples for record in model.history)])
            loss = np.average([record.loss for record in model.history], weights=examples)
            right = (model.predict(thresher.scan(folder / "test.vw", bits=20)) == truth).mean()
            ratio = time_of / best["sorted, in order"]
            print(f"{way:26}{time_of:8.2f}{ratio:7.2f}{loss:8.3f}{right:10.3f}")


if __name__ == "__main__":
    main()
