"""Measure how good the defaults of FTRL and truncated gradient are.

`python benchmarks/defaults.py` trains the default and a grid of 50 points around it on ten data
sets with rows of unit norm, each in several random orders. It prints the mean test error of the
default, the best mean test error of the grid (chosen on the test rows, which a user could not do),
their ratio, and the share of nonzero weights of both. The aim is a ratio of at most 1.1 on at least
8 of the 10 sets. `--write docs/defaults.md` writes the table.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from folder import DATA

from thresher import FTRLClassifier, TruncatedGradientClassifier, datasets

SETS = (
    "a9a", "agaricus", "arcene", "basehock", "comp_vs_rec", "dexter_scaled", "dorothea", "pcmac",
    "rcv1_small", "relathe",
)  # fmt: skip

GRIDS: dict[Any, dict[str, tuple[float, ...]]] = {
    FTRLClassifier: {
        "alpha": (0.1, 0.3, 1.0, 3.0, 10.0),
        "l1": (0.0, 0.03, 0.1, 0.3, 1.0),
        "l2": (0.0, 0.1),
    },
    TruncatedGradientClassifier: {
        "eta0": (0.3, 1.0, 3.0, 10.0, 30.0),
        "gravity": (0.0, 1e-6, 1e-5, 1e-4, 1e-3),
        "decay": (0.8, 1.0),
    },
}


def measure(estimator: Any, data: datasets.Dataset, seeds: int) -> tuple[float, float]:
    """Return mean test error and mean density over random orders."""
    results = []
    for seed in range(seeds):
        model = estimator.set_params(random_state=seed).fit(data.X_train, data.y_train)
        results.append((1 - model.score(data.X_test, data.y_test), model.model_.density))
    error, density = np.mean(results, axis=0)
    return float(error), float(density)


def table(cls: Any, seeds: int, names: list[str]) -> list[str]:
    """Return the table of one rule, as lines of Markdown."""
    grid = GRIDS[cls]
    lines = [
        f"## {cls.__name__}",
        "",
        f"The default: `{cls()!r}` with " + ", ".join(
            f"{name}={value!r}" for name, value in cls().get_params().items()
            if name in grid or name in ("passes", "schedule", "shuffle", "beta", "period")
        ) + ".",
        "The grid: " + ", ".join(f"{name} in {values}" for name, values in grid.items()) + ".",
        "",
        "| data | default: error % | nonzeros % | best of 50: error % | nonzeros % | at | ratio |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    within = 0
    for name in names:
        data = datasets.load(name, DATA)
        error, density = measure(cls(), data, seeds)
        points = [
            dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
        ]
        found = [(measure(cls(**point), data, seeds), point) for point in points]
        (best, best_density), at = min(found, key=lambda entry: entry[0][0])
        ratio = error / best if best > 0 else (1.0 if error == 0 else np.inf)
        within += ratio <= 1.1
        where = ", ".join(f"{key} {value:g}" for key, value in at.items())
        lines.append(
            f"| {name} | {100 * error:.2f} | {100 * density:.1f} | {100 * best:.2f} | "
            f"{100 * best_density:.1f} | {where} | {ratio:.2f} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return [*lines, "", f"Within 1.1x of the best on {within} of {len(names)} sets.", ""]


def main() -> None:
    """Parse arguments; print or write the tables."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    text = "\n".join(
        [
            "# How good the defaults are",
            "",
            "`python benchmarks/defaults.py --write docs/defaults.md` writes this page. Errors are",
            f"mean test errors over {arguments.seeds} random orders, with rows of unit norm. The",
            "best point of the grid has the smallest test error.",
            "",
            *table(FTRLClassifier, arguments.seeds, arguments.sets),
            *table(TruncatedGradientClassifier, arguments.seeds, arguments.sets),
        ]
    )
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
