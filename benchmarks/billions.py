"""Memory and results in a space of 3 x 10^9 features, nearly all of which occur only once.

`python benchmarks/billions.py [--examples 10000000] [--chart build/bench/billions.png]`, one core.

A row has 100 features. On average 1.2 of them come from a pool of 120 features, each of which is in
1 % of the rows. Half of the pool matters (weights of +-1.5 to +-3; the label is drawn from the
logistic model); the other half are decoys, equally frequent and without effect. All other features
are drawn uniformly from the whole space: 10 million rows have about 840 million distinct features.

Truncated gradient with the hashed store trains on them in one pass. Between two truncations, which
are K = `period` rows apart, every row adds about 100 new weights, none larger than `eta0`. A
truncation subtracts eta0 * K * gravity. With K * gravity >= 1, it removes every feature that
occurred once. So at most 100 K weights are nonzero, for any number of features seen. The hash table
drops zero weights whenever it is full, so it stays small.

- A feature that matters must gain more than the truncation in K rows. So K should be many times
  larger than the number of rows between two occurrences, and `gravity` below the mean gradient of
  the feature: at 0.003, 33 of the 60 features that matter were lost.
- `eta0` sets how much weights fluctuate: at 0.05 one or two are zero from time to time.
- A short period (K = 10) needs less memory, because weights become zero one by one, but about
  26,000 features of the last rows are always in the model.
- FTRL never forgets a feature that it has seen: its store grows with the stream.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from thresher import TruncatedGradientClassifier

WIDTH = 3_000_000_000
PER_ROW = 100
POOL = 120
SLOTS, SHARE = 4, 0.3  # places of a row for features of the pool, and their probability
BATCH = 12_800  # not a multiple of the period of 4000: samples memory in five phases
PHASES = 5


class Stream:
    """Random rows, with the true weights."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.pool = self.rng.choice(WIDTH, POOL, replace=False)
        self.truth = np.zeros(POOL + 1)  # the last entry: any other feature
        half = POOL // 2
        signs = np.where(np.arange(half) % 2, 1.0, -1.0)
        self.truth[:half] = signs * self.rng.uniform(1.5, 3.0, half)
        self.relevant, self.decoys = self.pool[:half], self.pool[half:]

    def batches(self, examples: int) -> Iterator[tuple[sp.csr_matrix, NDArray[np.bool_]]]:
        """Draw the given number of rows, in batches."""
        for start in range(0, examples, BATCH):
            n = min(BATCH, examples - start)
            keys = self.rng.integers(WIDTH, size=(n, PER_ROW), dtype=np.uint32).astype(np.int64)
            member = self.rng.integers(POOL, size=(n, SLOTS))
            member[self.rng.random((n, SLOTS)) >= SHARE] = POOL
            keys[:, :SLOTS] = np.where(
                member < POOL, self.pool[np.minimum(member, POOL - 1)], keys[:, :SLOTS]
            )
            p = 1 / (1 + np.exp(-self.truth[member].sum(axis=1)))
            X = sp.csr_matrix((n, WIDTH), dtype=np.float32)  # SciPy's check would copy
            X.data = np.ones(n * PER_ROW, np.float32)
            X.indices = keys.ravel()
            X.indptr = np.arange(0, n * PER_ROW + 1, PER_ROW, dtype=np.int64)
            yield X, self.rng.random(n) < p


@dataclass
class Sample:
    """Memory after some number of rows."""

    examples: int
    seen: float  # expected number of distinct features
    live: int
    store: int  # bytes
    resident: int  # bytes more than before the first row
    loss: float  # of the rows since the previous sample


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def train(
    clf: TruncatedGradientClassifier, stream: Stream, examples: int
) -> tuple[list[Sample], float]:
    """Train on the stream; return samples of memory, and the seconds of training alone."""
    samples: list[Sample] = []
    seconds, before, tally = 0.0, resident(), (0.0, 0.0)
    done = 0
    for X, y in stream.batches(examples):
        began = time.perf_counter()
        clf.partial_fit(X, y, classes=[False, True])
        seconds += time.perf_counter() - began
        done += X.shape[0]
        learner = clf._learners[0]
        last, tally = tally, (learner.loss_sum, learner.weight_sum)
        samples.append(
            Sample(
                examples=done,
                seen=-WIDTH * np.expm1(-done * (PER_ROW - SLOTS * SHARE) / WIDTH) + POOL,
                live=learner.nonzeros(),
                store=learner.store_bytes,
                resident=resident() - before,
                loss=(tally[0] - last[0]) / (tally[1] - last[1]),
            )
        )
    return samples, seconds


def table(samples: list[Sample]) -> None:
    """Print memory during the run: the maximum of each of 20 intervals."""
    print(
        f"\n{'rows':>12}{'features seen':>16}{'nonzero weights':>22}{'store':>12}{'resident':>12}"
        f"{'loss':>9}\n{'':28}{'least':>11}{'most':>11}{'MiB':>12}{'MiB above':>12}"
    )
    for part in np.array_split(np.arange(len(samples)), min(20, len(samples))):
        group = [samples[i] for i in part]
        live = [s.live for s in group]
        print(
            f"{group[-1].examples:>12,}{group[-1].seen:>16,.0f}{min(live):>11,}{max(live):>11,}"
            f"{max(s.store for s in group) / 2**20:>12.1f}"
            f"{max(s.resident for s in group) / 2**20:>12.1f}"
            f"{np.mean([s.loss for s in group]):>9.4f}"
        )


def chart(samples: list[Sample], path: Path) -> None:
    """Plot memory during the run."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = np.array([s.examples for s in samples]) / 1e6
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    slot = 16  # bytes of a key and its weight
    axes.plot(rows, [s.seen * slot / 2**20 for s in samples], label="all seen, 16 bytes each")
    axes.plot(rows, [s.resident / 2**20 for s in samples], label="resident, batches included")
    axes.plot(rows, [s.store / 2**20 for s in samples], label="store")
    living = np.array([s.live * slot / 2**20 for s in samples])
    whole = living.size // PHASES * PHASES
    cycles = living[:whole].reshape(-1, PHASES)
    least, most = cycles.min(axis=1), cycles.max(axis=1)
    ends = rows[PHASES - 1 : whole : PHASES]
    label = "nonzero weights, 16 bytes each: after a truncation to before the next"
    axes.fill_between(ends, least, most, alpha=0.3, color="tab:red", label=label)
    axes.set(yscale="log", xlabel="million rows", ylabel="MiB")
    axes.set_title(f"One pass through a space of {WIDTH:,} features")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"\nchart: {path}")


def main() -> None:
    """Parse arguments, train, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=10_000_000)
    parser.add_argument("--gravity", type=float, default=1.5e-3)
    parser.add_argument("--period", type=int, default=4000)
    parser.add_argument("--eta0", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chart", type=Path, default=Path("build/bench/billions.png"))
    arguments = parser.parse_args()
    clf = TruncatedGradientClassifier(
        gravity=arguments.gravity, period=arguments.period, eta0=arguments.eta0, store="hashed"
    )
    stream = Stream(arguments.seed)
    print(f"{arguments.examples:,} rows of {PER_ROW} out of {WIDTH:,} features\n{clf!r}")
    began = time.perf_counter()
    samples, learning = train(clf, stream, arguments.examples)
    whole = time.perf_counter() - began
    table(samples)
    found = set(clf.model_.indices.tolist())
    relevant, decoys = set(stream.relevant.tolist()), set(stream.decoys.tolist())
    print(
        f"\nfeatures that matter: {len(found & relevant)} of {len(relevant)} found\n"
        f"decoys of the same frequency: {len(found & decoys)} of {len(decoys)} in the model\n"
        f"others in the model: {len(found - relevant - decoys):,}\n"
        f"{whole:.0f} s in all, {learning:.0f} s of them for training: "
        f"{arguments.examples / learning:,.0f} rows per second"
    )
    chart(samples, arguments.chart)


if __name__ == "__main__":
    main()
