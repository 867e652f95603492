"""Measure what the refit of `target_nnz` changes.

`python benchmarks/refit.py` trains FTRL and truncated gradient with several `target_nnz`, with and
without the refit, on folds of the training rows of eight data sets (test rows are not used). It
prints the error and the loss on the rows that are held out, in how many folds the refit replaced
the weights, and the ratio of the times of `fit`. `--write docs/target_nnz.md` replaces the table in
that page.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from folder import DATA
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from thresher import FTRLClassifier, TruncatedGradientClassifier, datasets

SETS = (
    "pcmac", "basehock", "relathe", "comp_vs_rec", "dexter", "dorothea", "a9a", "spambase",
)  # fmt: skip
TARGETS = (10, 30, 100, 300, 1000)
RULES = {"FTRL": FTRLClassifier, "truncated gradient": TruncatedGradientClassifier}
BEGIN, END = "<!-- table of benchmarks/refit.py -->", "<!-- end of the table -->"


def measured(estimator: Any, X: Any, y: Any, train: Any, test: Any) -> tuple[float, ...]:
    """Return the error in percent, the loss, the seconds, and whether the refit was taken."""
    began = time.perf_counter()
    estimator.fit(X[train], y[train])
    seconds = time.perf_counter() - began
    probabilities = estimator.predict_proba(X[test])[:, 1]
    error = 100 * float(np.mean((probabilities > 0.5) != y[test]))
    taken = getattr(estimator, "refit_", None)
    loss = float(log_loss(y[test], np.clip(probabilities, 1e-15, 1 - 1e-15)))
    return error, loss, seconds, float(taken is not None and taken.share is not None)


def lines_of(names: list[str], passes: int | None, folds: int) -> list[str]:
    """Return the table as lines of Markdown."""
    lines = [
        "| rule | data | weights | error % before | after | loss before | after | taken | time |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for rule, made in RULES.items():
        errors, losses = [], []
        for name in names:
            data = datasets.load(name, DATA)
            X, y = data.X_train, np.asarray(data.y_train)
            y = (y == np.unique(y)[1]).astype(int)
            splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))
            for target in TARGETS:
                if target >= X.shape[1]:
                    continue
                params = {"target_nnz": target, "random_state": 0}
                params |= {} if passes is None else {"passes": passes}
                found = np.array([
                    [measured(made(**params, refit=again), X, y, *split) for split in splits]
                    for again in (False, True)
                ]).mean(axis=1)  # fmt: skip
                (error, loss, seconds, _), (error_now, loss_now, seconds_now, taken) = found
                errors.append((error_now + 0.01) / (error + 0.01))
                losses.append(loss_now / loss)
                lines.append(
                    f"| {rule} | {name} | {target} | {error:.2f} | {error_now:.2f} | {loss:.3f} | "
                    f"{loss_now:.3f} | {taken * folds:.0f} of {folds} | "
                    f"{seconds_now / seconds:.1f} |"
                )
                print(lines[-1], flush=True)
        better = sum(ratio < 1 for ratio in errors)
        worse = sum(ratio > 1 for ratio in errors)
        mean, mean_loss = (np.exp(np.mean(np.log(ratios))) for ratios in (errors, losses))
        lines.append(
            f"| {rule} | geometric mean | | 1 | {mean:.3f} | 1 | {mean_loss:.3f} | less error in "
            f"{better} of {len(errors)}, more in {worse} | |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--passes", type=int, help="by default that of the estimators")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    options = parser.parse_args()
    lines = lines_of(options.sets, options.passes, options.folds)
    if options.write is not None:
        text = options.write.read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        table = "\n".join([BEGIN, "", *lines, "", END])
        options.write.write_text(before + table + after)


if __name__ == "__main__":
    main()
