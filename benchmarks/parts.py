"""Test error of the stabilized rule by number of parts: mode "stages" against `fit` of all rows.

    python benchmarks/parts.py [--sets relathe pcmac] [--seeds 5] [--parts 1 2 4 8] [--json FILE]

``StabilizedClassifier`` with its defaults (variant "robust", 16 paths, 20 passes) is trained on the
same rows on one machine, and in stages whose paths each see one part of the rows (``workers=0``,
which gives the same as any cluster). A seed draws the order of the rows, and so the content of each
part, and the random choices of the rule. It also splits data sets of one file, with 70 % for
training; the others keep their published split. Rows have norm 1, except for dexter_scaled, whose
columns are scaled. Errors are in percent: the mean over seeds, and its standard error. A difference
is that of the two errors of one seed. The table also shows how many of the chosen features one
machine chose from the same rows. "One machine, again" has the same rows in the same order and other
random choices: it shows how much two runs differ by these alone.

The method of the refit in parts was chosen on basehock and comp_vs_rec. So these are not among the
data sets here.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from folder import DATA
from sklearn.datasets import dump_svmlight_file

from thresher import StabilizedClassifier, datasets
from thresher.distributed import fit

SETS = [
    "relathe", "pcmac", "comp_vs_sci", "comp_vs_talk", "rec_vs_talk", "sci_vs_rec", "sci_vs_talk",
    "dexter", "dexter_scaled",
]  # fmt: skip
ALONE, AGAIN = 0, -1  # methods that are not a number of parts
ONE_FILE = ("relathe", "pcmac", "dexter")


def splits(name: str, seeds: int) -> Iterator[tuple[Any, np.ndarray, Any, np.ndarray]]:
    """Yield training rows in a random order, and test rows, for each seed."""
    data = datasets.load(name, DATA, unit_norm=name != "dexter_scaled")
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        if name in ONE_FILE:
            every, labels = sp.vstack([X, X_test]).tocsr(), np.concatenate([y, y_test])
            order = rng.permutation(len(labels))
            learn, test = order[: len(y)], order[len(y) :]
            yield every[learn], labels[learn], every[test], labels[test]
        else:
            order = rng.permutation(len(y))
            yield X[order], y[order], X_test, y_test


def compare(name: str, parts: list[int], seeds: int) -> dict[str, Any]:
    """Train by all methods; return errors, numbers of features and shared features, by seed."""
    ways = [ALONE, AGAIN, *parts]
    errors, nonzeros, shared = (np.zeros((seeds, len(ways))) for _ in range(3))
    rows = features = 0
    for seed, (X, y, X_test, y_test) in enumerate(splits(name, seeds)):
        rows, features = X.shape
        alone: set[int] = set()
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "rows.svm"))
            dump_svmlight_file(X, y, file, zero_based=False)
            for i, count in enumerate(ways):
                clf = StabilizedClassifier(random_state=seed + (1000 if count == AGAIN else 0))
                if count in (ALONE, AGAIN):
                    clf.fit(X, y)
                    alone = set(clf.model_.indices.tolist()) if count == ALONE else alone
                else:
                    reading = {"format": "svmlight", "zero_based": False}
                    fit(clf, file, workers=0, parts=count, **reading)
                chosen = clf.model_.indices
                w = np.zeros(features)
                w[chosen.astype(int)] = clf.model_.weights
                found = X_test @ w + clf.model_.intercept > 0
                errors[seed, i] = 100 * np.mean(found != (y_test > 0))
                nonzeros[seed, i] = len(chosen)
                shared[seed, i] = len(alone.intersection(chosen.tolist())) / max(1, len(chosen))
    return {
        "rows": rows, "features": features, "ways": ways, "errors": errors.tolist(),
        "nonzeros": nonzeros.tolist(), "shared": shared.tolist(),
    }  # fmt: skip


def spread(values: np.ndarray) -> str:
    """Return a mean and its standard error, as text."""
    return f"{values.mean():6.2f} ({values.std(ddof=1) / np.sqrt(len(values)):.2f})"


def label(way: int) -> str:
    """Return the name of a method."""
    named = {ALONE: "one machine", AGAIN: "one machine, again", 1: "1 part"}
    return named.get(way, f"{way} parts")


def show(name: str, found: dict[str, Any], seconds: float) -> None:
    """Print the results on a data set."""
    errors, ways = np.array(found["errors"]), found["ways"]
    print(f"{name}: {found['rows']} rows, {found['features']} features, {seconds:.0f} s")
    for i, count in enumerate(ways):
        gap = errors[:, i] - errors[:, 0]
        relative = (errors[:, i].mean() / errors[:, 0].mean() - 1) if errors[:, 0].any() else 0.0
        print(
            f"  {label(count):18} error {spread(errors[:, i])}  difference {spread(gap)} = "
            f"{relative:+6.1%}  features {np.mean(found['nonzeros'], axis=0)[i]:5.0f}, "
            f"{np.mean(found['shared'], axis=0)[i]:4.0%} of them as on one machine",
            flush=True,
        )


def main() -> None:
    """Run the comparison."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--parts", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--seeds", type=int, default=5, help="2 or more")
    parser.add_argument("--json", type=Path, help="file for all numbers")
    options = parser.parse_args()
    results = {}
    print("test error in percent (standard error)")
    for name in options.sets:
        began = time.perf_counter()
        results[name] = compare(name, options.parts, options.seeds)
        show(name, results[name], time.perf_counter() - began)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    print("mean over sets, error in percent and relative to one machine")
    means = np.array([np.mean(found["errors"], axis=0) for found in results.values()])
    for i, count in enumerate([ALONE, AGAIN, *options.parts]):
        relative = np.mean(means[:, i] / means[:, 0]) - 1
        print(f"  {label(count):18} {means[:, i].mean():6.2f} {relative:+7.1%}")


if __name__ == "__main__":
    main()
