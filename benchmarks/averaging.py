"""Accuracy of averaging over parts, against one machine with the same number of passes.

    python benchmarks/averaging.py [--sets a9a basehock] [--seeds 5] [--passes 5] [--json FILE]

One machine is the ordinary ``estimator.fit(scan(file))``, with the defaults of the estimator except
for the number of passes. Parts are ``thresher.distributed.fit(estimator, file, parts=...)`` with
the same file and passes, without a cluster (the result is the same with one). A seed draws the
order of the rows, and so the content of each part. For basehock it also draws the test rows: a
third.

The last weights of SGD are noisy. A mean over parts has less noise, but one machine can also reduce
the noise by averaging. So truncated gradient is also trained with ``average=True`` (averaged SGD
always averages, other rules cannot), and parts are compared with the better of both.

The table shows accuracy and error in percent: means over seeds with standard errors, and the
relative differences from one machine (for accuracy with the standard error of differences on the
same rows). The requirement is that the accuracy is at most 2 % lower. This is easy to meet if
errors are small: see also how the error itself changes.
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
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

import thresher
from thresher.distributed import fit

BAR = -0.02
ESTIMATORS: dict[str, Any] = {
    "truncated-gradient": thresher.TruncatedGradientClassifier(),
    "truncated-gradient, average": thresher.TruncatedGradientClassifier(average=True),
    "forward-backward": thresher.ForwardBackwardClassifier(),
    "averaged-sgd": thresher.AveragedSGDClassifier(),
    "ftrl": thresher.FTRLClassifier(),
    "dual-averaging": thresher.DualAveragingClassifier(),
    "mirror-descent": thresher.MirrorDescentClassifier(),
    "margin-perceptron": thresher.MarginPerceptronClassifier(),
}
SPLIT = ("basehock", "relathe", "pcmac", "dexter")  # data sets of one file


def splits(name: str, seeds: int) -> Iterator[tuple[Any, np.ndarray, Any, np.ndarray]]:
    """Yield training rows in a random order, and test rows, for each seed."""
    data = thresher.datasets.load(name, DATA, unit_norm="_vs_" in name)
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        if name in SPLIT:
            every, labels = sp.vstack([X, X_test]).tocsr(), np.concatenate([y, y_test])
            order, third = rng.permutation(len(labels)), len(labels) // 3
            learn, test = order[third:], order[:third]
            yield every[learn], labels[learn], every[test], labels[test]
        else:
            order = rng.permutation(len(y))
            yield X[order], y[order], X_test, y_test


def accuracy(estimator: Any, X: Any, y: np.ndarray) -> float:
    """Return the accuracy of a fitted estimator in percent."""
    model = estimator.model_
    w = np.zeros(X.shape[1])
    w[model.indices.astype(int)] = model.weights
    return float(100 * np.mean((X @ w + model.intercept > 0) == (y > 0)))


def compare(
    name: str, settings: list[tuple[int, int]], seeds: int, passes: int, wanted: list[str]
) -> dict[str, np.ndarray]:
    """Return accuracies by estimator, of seeds x (one machine, then settings)."""
    found = {rule: np.zeros((seeds, 1 + len(settings))) for rule in wanted}
    for seed, (X, y, X_test, y_test) in enumerate(splits(name, seeds)):
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder, "rows.svm"))
            dump_svmlight_file(X, np.where(y > 0, 1, -1), file, zero_based=False)
            for rule in wanted:
                template = ESTIMATORS[rule].set_params(passes=passes, random_state=seed)
                alone = clone(template).fit(thresher.scan(file))
                found[rule][seed, 0] = accuracy(alone, X_test, y_test)
                for i, (parts, rounds) in enumerate(settings, 1):
                    spread = fit(clone(template), file, workers=0, parts=parts, rounds=rounds)
                    found[rule][seed, i] = accuracy(spread, X_test, y_test)
    return found


def shown(values: np.ndarray) -> str:
    """Return a mean and its standard error."""
    return f"{values.mean():6.2f} ({values.std(ddof=1) / np.sqrt(len(values)):.2f})"


def show(found: dict[str, np.ndarray], settings: list[tuple[int, int]]) -> list[str]:
    """Print the table of a data set; return the settings that miss the requirement."""
    below = []
    for rule, right in found.items():
        stem = rule.removesuffix(", average")
        rivals = [found[r][:, 0] for r in found if r.removesuffix(", average") == stem]
        best = max(rivals, key=lambda one: float(one.mean()))
        print(f"  {rule}: one machine {shown(right[:, 0])}, error {shown(100 - right[:, 0])}")
        for i, (parts, rounds) in enumerate(settings, 1):
            mean, own = right[:, i].mean(), right[:, 0].mean()
            noise = (right[:, i] - right[:, 0]).std(ddof=1) / np.sqrt(len(right)) / own
            change, against_best = mean / own - 1, mean / best.mean() - 1
            errors = (100 - mean) / (100 - own) - 1, (100 - mean) / (100 - best.mean()) - 1
            worst = min(change, against_best)
            verdict, other = "  BELOW THE BAR" if worst < BAR else "", ""
            if len(rivals) > 1:
                other = f"; against the better {against_best:+7.2%}, error {errors[1]:+7.2%}"
            print(
                f"    {parts} parts, {rounds} rounds per pass {shown(right[:, i])}  accuracy "
                f"{change:+7.2%} ({noise:.2%}), error {errors[0]:+7.2%}{other}{verdict}"
            )
            if worst < BAR:
                below.append(f"{rule}, {parts} parts, {rounds} rounds per pass: {worst:+.2%}")
    return below


def main() -> None:
    """Print a table for each data set."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["a9a", "basehock", "sci_vs_rec"])
    parser.add_argument("--rules", nargs="+", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument("--seeds", type=int, default=5, help="2 or more")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--parts", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--rounds", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--json", type=Path, help="file for all accuracies")
    options = parser.parse_args()
    settings = [(parts, rounds) for parts in options.parts for rounds in options.rounds]
    results: dict[str, Any] = {"settings": settings, "passes": options.passes}
    below = []
    for name in options.sets:
        began = time.perf_counter()
        found = compare(name, settings, options.seeds, options.passes, options.rules)
        seconds = time.perf_counter() - began
        print(f"\n{name}: {options.seeds} orders, {options.passes} passes; {seconds:.0f} s")
        below += [f"{name}: {line}" for line in show(found, settings)]
        results[name] = {rule: right.tolist() for rule, right in found.items()}
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    print("\nmore than 2 % worse:", *(below or ["nothing"]), sep="\n  ")


if __name__ == "__main__":
    main()
