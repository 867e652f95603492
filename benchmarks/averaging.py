"""What averaging over parts costs in accuracy, against one machine at equal passes.

    python benchmarks/averaging.py [--seeds 3] [--passes 5] [--data FOLDER]

Rows are put in a random order, cut into parts, and learned by every streaming rule at its defaults
in 1, 2, 4 and 8 parts, with 1 and 4 rounds in a pass; one part with one round is the one machine.
Both have the same rows and passes. The bar: mean accuracy over the orders no more than 2 % below
that of one machine, relative.
"""

from __future__ import annotations

import argparse
import lzma
import tempfile
import time
from pathlib import Path

import numpy as np

import thresher
from thresher.distributed.average import RULES_AVERAGED, Average
from thresher.distributed.crew import InProcess
from thresher.distributed.driving import drive
from thresher.distributed.pieces import Job
from thresher.distributed.shards import find_shards
from thresher.rules import RULES
from thresher.training.labels import ManyClasses


def lines_of(file: Path) -> list[str]:
    """Return the rows of a packed file."""
    return lzma.open(file, "rt").read().splitlines(keepends=True)


def data(name: str, folder: Path, seed: int) -> tuple[list[str], list[str]]:
    """Return rows to learn from, in an order of their own, and rows to test on."""
    rng = np.random.default_rng(seed)
    train = lines_of(folder / f"{name}.svm.xz")
    order = rng.permutation(len(train))
    if name == "a9a":
        return [train[i] for i in order], lines_of(folder / "a9a.t.svm.xz")
    third = len(train) // 3
    return [train[i] for i in order[third:]], [train[i] for i in order[:third]]


def accuracy(
    rule: str, rows: list[str], test: Path, width: int, parts: int, rounds: int, passes: int
) -> float:
    """Learn in so many parts and rounds, and return the share of test rows that is right."""
    params = {n: p.default_for("classifier") for n, p in RULES[rule].parameters.items()}
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{part}.svm" for part in range(parts)]
        cuts = np.array_split(np.arange(len(rows)), parts)
        for file, cut in zip(files, cuts, strict=True):
            Path(file).write_text("".join(rows[i] for i in cut))
        job = Job(
            rule, "classifier", params | {"passes": passes}, find_shards(files),
            ManyClasses([-1, 1]), width, [0] * parts, seed=1,
        )  # fmt: skip
        mode = Average(job, rounds)
        output = drive(mode, InProcess(mode, None), None, 1).learned.outputs[0]
    w = np.zeros(width)
    w[output.keys.astype(np.int64)] = output.weights
    right = total = 0
    for block in thresher.scan(str(test)).blocks(dtype="float64"):
        starts = np.asarray(block.native.starts).astype(np.int64)
        terms = w[np.asarray(block.native.keys).astype(np.int64)] * np.asarray(block.native.values)
        sums = np.concatenate([[0.0], np.cumsum(terms)])[starts]
        p = np.diff(sums) + output.intercept
        right += int(np.sum((p > 0) == (np.asarray(block.labels) > 0)))
        total += block.rows
    return right / total


def main() -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=["a9a", "basehock"])
    chosen = parser.parse_args()
    settings = [(1, 1)] + [(parts, rounds) for parts in (2, 4, 8) for rounds in (1, 4)]
    for name in chosen.sets:
        print(f"\n{name}: accuracy (error), relative to one machine; parts x rounds in a pass")
        began = time.perf_counter()
        for rule in RULES_AVERAGED:
            found = np.zeros((chosen.seeds, len(settings)))
            for seed in range(chosen.seeds):
                rows, test = data(name, chosen.data, seed)
                width = (
                    124
                    if name == "a9a"
                    else 1
                    + max(
                        int(pair.split(":")[0]) for row in rows + test for pair in row.split()[1:]
                    )
                )
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder, "test.svm")
                    file.write_text("".join(test))
                    for i, (parts, rounds) in enumerate(settings):
                        found[seed, i] = accuracy(
                            rule, rows, file, width, parts, rounds, chosen.passes
                        )
            means = found.mean(axis=0)
            print(f"  {rule}: one machine {means[0]:.4f} ({1 - means[0]:.4f})", flush=True)
            for (parts, rounds), mean in zip(settings[1:], means[1:], strict=True):
                change = mean / means[0] - 1
                verdict = "" if change >= -0.02 else "  BELOW THE BAR"
                print(
                    f"    {parts} x {rounds}  {mean:.4f} ({1 - mean:.4f})  {change:+.2%}{verdict}"
                )
        print(f"  {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
