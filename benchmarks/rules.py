"""Every rule on real data: error, nonzeros, stability and time of the final model.

`python benchmarks/rules.py [--sets dexter_scaled ...] [--orders 10] [--json out.json]` trains every
rule on each data set, in several random orders of the training rows. Rows have unit norm.
Parameters are the defaults. Where the table says CV, they are chosen by 5-fold cross-validation on
the training rows: stratified, shuffled once with a fixed seed, smallest mean error; ties go to the
sparser model. The test rows are used once, for the final model of each order.

- kappa is Cohen's kappa, averaged over pairs of orders.
- Rows without seconds were measured while the machine had other work (`--untimed`).
- The "sub" columns are for 10 random subsamples of 80 % of the training rows: their mean test
  error, and kappa between their selected features.
- The stabilized default has target_nnz = sqrt(rows x features / 10), at least min(400, features /
  3): the default of `StabilizedClassifier` before the labels chose the number ([size.md](size.md)
  compares both).
- FTRL cut is FTRL's model, reduced to its largest weights |w|: as many as the stabilized default
  keeps.
- Averaged SGD x 16 is the mean of 16 plain SGD runs: the mean of paths (R-13.8) without selection,
  as a control (A-37).
- The published stabilized rule gets columns of unit variance, as in its paper (UnitVarianceScaler,
  fitted on the training rows). Its parameters are chosen from the 32 points of `compare`: eta0 .001
  and .1, keep .2 and .5, rejection .05, .1, .3 and .7, and both gravity rules. "sparse" is the best
  of the points whose models use fewer than 10 % of the features.
- Penalties of the other rules of the papers are chosen from 0.0001 to 1 divided by the number of
  rows. A penalty that is much smaller has no effect.
- l1 logistic regression is scikit-learn's, by liblinear (up to 5,000 iterations), with C by CV from
  1 to 10^6.

`--write docs/rules.md --json a.json b.json` writes the tables of earlier runs. `--only "FTRL cut"
...` measures some rules. Rows of the JSON files replace those of the page; other rows stay.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from folder import DATA
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from thresher import (
    AveragedSGDClassifier,
    CoordinateDescentClassifier,
    DualAveragingClassifier,
    ForwardBackwardClassifier,
    FTRLClassifier,
    HardThresholdRegressor,
    MarginPerceptronClassifier,
    MirrorDescentClassifier,
    StabilizedClassifier,
    TruncatedGradientClassifier,
    UnitVarianceScaler,
    datasets,
    stability_score,
)

SETS = (
    "dexter_scaled", "dorothea", "arcene", "basehock", "relathe", "pcmac", "comp_vs_rec",
)  # fmt: skip
PUBLISHED = "stabilized paper (hinge), CV"
FEW = 0.1  # share of the features that a sparse model may use
PATHS = 16
SUBSAMPLES, SHARE = 10, 0.8

Fit = Callable[[Any, Any, int], tuple[np.ndarray, float]]  # X, y, seed -> weights, intercept


def of(estimator: Any) -> Fit:
    """Fit an estimator; return its weights and intercept."""

    def fit(X: Any, y: Any, seed: int) -> tuple[np.ndarray, float]:
        model = clone(estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        model.fit(X, y)
        return np.asarray(model.coef_).ravel(), float(np.ravel(model.intercept_)[0])

    return fit


def averaged_sgd(X: Any, y: Any, seed: int) -> tuple[np.ndarray, float]:
    """Average as many plain SGD runs as the stabilized rule has paths."""
    plain = of(TruncatedGradientClassifier(gravity=0.0))
    runs = [plain(X, y, PATHS * seed + path) for path in range(PATHS)]
    return np.mean([w for w, _ in runs], axis=0), float(np.mean([b for _, b in runs]))


def scaled(fit: Fit) -> Fit:
    """Scale the columns to unit variance for the fit, then scale the weights back."""

    def scaled_fit(X: Any, y: Any, seed: int) -> tuple[np.ndarray, float]:
        scaler = UnitVarianceScaler().fit(X)
        w, b = fit(scaler.transform(X), y, seed)
        return w / scaler.scale_, b

    return scaled_fit


def cut(fit: Fit, size: Callable[[Any], int]) -> Fit:
    """Keep only the largest weights."""

    def cut_fit(X: Any, y: Any, seed: int) -> tuple[np.ndarray, float]:
        w, b = fit(X, y, seed)
        w = w.copy()
        w[np.argsort(-np.abs(w), kind="stable")[size(X) :]] = 0.0
        return w, b

    return cut_fit


def error_of(w: np.ndarray, b: float, X: Any, y: Any) -> float:
    """Return the share of wrong labels; 0 counts as positive."""
    return float(np.mean(np.where(X @ w + b >= 0, 1, -1) != y))


def fitting(estimator: Any) -> Fit:
    """Fit an estimator with its own parameters."""
    published = getattr(estimator, "variant", None) == "paper"
    return scaled(of(estimator)) if published else of(estimator)


def chosen(estimator: Any, grid: list[dict[str, Any]], X: Any, y: Any) -> list[dict[str, Any]]:
    """Choose parameters by cross-validation on the training rows.

    Returns the point with the smallest error, and the best of those with sparse models.
    """
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    results = []
    for point in grid:
        candidate = clone(estimator).set_params(**point)
        errors, sizes = [], []
        for number, (train, test) in enumerate(folds):
            w, b = fitting(candidate)(X[train], y[train], number)
            errors.append(error_of(w, b, X[test], y[test]))
            sizes.append(np.count_nonzero(w))
        results.append((round(float(np.mean(errors)), 6), float(np.mean(sizes))))
    order = sorted(range(len(grid)), key=lambda i: results[i])
    sparse = [i for i in order if results[i][1] < FEW * X.shape[1]]
    sparsest = min(order, key=lambda i: results[i][::-1])
    return [grid[order[0]], grid[sparse[0] if sparse else sparsest]]


def stable_size(X: Any) -> int:
    """Return the number of weights that the stabilized default kept before the labels chose it."""
    judged = np.count_nonzero(np.bincount(X.indices) >= min(5, 1 + X.shape[0] // 50))
    return int(max(10.0, min(400.0, judged / 3.0), np.sqrt(X.shape[0] * judged / 10.0)))


def product_of(**values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return all combinations of the values."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def methods(X: Any, y: Any, only: list[str]) -> list[tuple[str, Fit, dict[str, Any], int]]:
    """Return name, fit function, chosen parameters and largest number of orders of each rule."""
    n = X.shape[0]
    stable: dict[str, Any] = {"target_nnz": stable_size(X), "n_jobs": -1}
    per_row = [{"l1": a / n} for a in (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)]
    tuned: list[tuple[str, Any, list[dict[str, Any]]]] = [
        ("truncated gradient, CV", TruncatedGradientClassifier(),
         [{"gravity": p["l1"]} for p in per_row]),
        ("forward-backward, CV", ForwardBackwardClassifier(), per_row),
        ("dual averaging, CV", DualAveragingClassifier(), per_row),
        ("coordinate descent, CV", CoordinateDescentClassifier(passes=200), per_row),
        (PUBLISHED, StabilizedClassifier(variant="paper", loss="hinge", passes=10, n_jobs=-1),
         product_of(eta0=(0.001, 0.1), keep=(0.2, 0.5), rejection=(0.05, 0.1, 0.3, 0.7),
                    gravity_rule=("update-quantile", "weight-quantile"))),
        ("l1 logistic regression, CV",
         LogisticRegression(solver="liblinear", l1_ratio=1.0, max_iter=5000),
         [{"C": 10.0**e} for e in range(7)]),
    ]  # fmt: skip
    found: list[tuple[str, Fit, dict[str, Any], int]] = [
        ("stabilized (default)", of(StabilizedClassifier(**stable)), {}, 99),
        ("stabilized, hinge", of(StabilizedClassifier(loss="hinge", **stable)), {}, 99),
        ("stabilized paper (default)",
         fitting(StabilizedClassifier(variant="paper", passes=10, n_jobs=-1)), {}, 99),
    ]  # fmt: skip
    for name, estimator, grid in tuned:
        lines = [name, f"{name}, sparse"] if name == PUBLISHED else [name]
        if only and not set(lines) & set(only):
            continue
        for line_name, point in zip(lines, chosen(estimator, grid, X, y), strict=False):
            found.append((line_name, fitting(clone(estimator).set_params(**point)), point, 99))
    ftrl = of(FTRLClassifier())
    found += [
        ("FTRL (default)", ftrl, {}, 99),
        ("FTRL cut", cut(ftrl, stable_size), {"nonzeros": stable_size(X)}, 99),
        ("margin perceptron", of(MarginPerceptronClassifier()), {}, 99),
        ("averaged SGD (Dekel)", of(AveragedSGDClassifier()), {}, 99),
        ("mirror descent", of(MirrorDescentClassifier()), {}, 3),
        ("hard threshold", of(HardThresholdRegressor(n_nonzero=stable_size(X))), {}, 1),
        ("averaged SGD x 16", averaged_sgd, {}, 5),
    ]
    return [method for method in found if not only or method[0] in only]


SUBSAMPLED = ("stabilized (default)", "FTRL cut", "l1 logistic regression, CV")


def measure(name: str, orders: int, only: list[str]) -> list[dict[str, Any]]:
    """Measure rules on one data set: those of `only`, or all."""
    data = datasets.load(name, DATA)
    X, y = data.X_train, np.where(data.y_train > 0, 1, -1)
    X_test, y_test = data.X_test, np.where(data.y_test > 0, 1, -1)
    rows = []
    for method, fit, point, most in methods(X, y, only):
        errors, supports, seconds = [], [], []
        for seed in range(min(orders, most)):
            order = np.random.default_rng(seed).permutation(X.shape[0])
            began = time.perf_counter()
            w, b = fit(X[order], y[order], seed)
            seconds.append(time.perf_counter() - began)
            errors.append(error_of(w, b, X_test, y_test))
            supports.append(np.flatnonzero(w))
        row: dict[str, Any] = {
            "set": name, "method": method, "parameters": point, "orders": len(errors),
            "error": float(np.mean(errors)), "sd": float(np.std(errors)),
            "nonzeros": float(np.mean([len(s) for s in supports])), "width": X.shape[1],
            "kappa": stability_score(supports, X.shape[1]) if len(supports) > 1 else None,
            "seconds": float(np.min(seconds)),
        }  # fmt: skip
        if method in SUBSAMPLED:
            sub_errors, subs = [], []
            for seed in range(SUBSAMPLES):
                rng = np.random.default_rng(1000 + seed)
                kept = rng.permutation(X.shape[0])[: int(SHARE * X.shape[0])]
                w, b = fit(X[kept], y[kept], seed)
                sub_errors.append(error_of(w, b, X_test, y_test))
                subs.append(np.flatnonzero(w))
            row["sub_error"] = float(np.mean(sub_errors))
            row["sub_kappa"] = stability_score(subs, X.shape[1])
        rows.append(row)
        print(line(row), file=sys.stderr, flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """Return a row as Markdown."""
    if "text" in row:  # of an earlier page
        return str(row["text"])

    def shown(value: float | None, pattern: str) -> str:
        return "" if value is None else format(value, pattern)

    point = ", ".join(
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in row["parameters"].items()
    )
    share = 100 * row["nonzeros"] / row["width"]
    return (
        f"| {row['method']} | {point} | {100 * row['error']:.2f} ({100 * row['sd']:.2f}) | "
        f"{row['nonzeros']:.0f} ({share:.2f} %) | {shown(row['kappa'], '.2f')} | "
        f"{shown(row['seconds'], '.2f')} | "
        f"{shown(row.get('sub_error') and 100 * row['sub_error'], '.2f')} | "
        f"{shown(row.get('sub_kappa'), '.2f')} |"
    )


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Compare the stabilized default with other rules, from the measured rows."""
    lines = [
        "## The stabilized default compared with the others",
        "",
        "The columns compare the stabilized default with other rules: errors in % of the default,",
        "of l1 logistic regression and of FTRL cut; how many times more weights truncated gradient",
        "keeps; kappa between orders (default, truncated gradient); kappa and error of the 80 %",
        "subsamples (default, FTRL cut).",
        "",
        "| data | error | l1 LR | FTRL cut | TG's nonzeros | kappa, TG's | sub kappa, FTRL cut's | "
        "sub error, FTRL cut's |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["set"] for row in rows):
        by = {row["method"]: row for row in rows if row["set"] == name}
        ours, cut_down = by["stabilized (default)"], by["FTRL cut"]
        lasso, truncated = by["l1 logistic regression, CV"], by["truncated gradient, CV"]
        lines.append(
            f"| {name} | {100 * ours['error']:.2f} | {100 * lasso['error']:.2f} | "
            f"{100 * cut_down['error']:.2f} | {truncated['nonzeros'] / ours['nonzeros']:.1f}x | "
            f"{ours['kappa']:.2f}, {truncated['kappa']:.2f} | "
            f"{ours['sub_kappa']:.2f}, {cut_down['sub_kappa']:.2f} | "
            f"{100 * ours['sub_error']:.2f}, {100 * cut_down['sub_error']:.2f} |"
        )
    return [*lines, ""]


def tables(rows: list[dict[str, Any]]) -> str:
    """Return all tables as Markdown."""
    assert __doc__ is not None
    lines = ["# Every rule on real data", "", *__doc__.splitlines()[2:], "", *summary(rows)]
    for name in dict.fromkeys(row["set"] for row in rows):
        of_set = [row for row in rows if row["set"] == name]
        lines += [
            f"## {name} ({of_set[0]['width']:,} features)",
            "",
            "| rule | chosen | error % (sd) | nonzeros | kappa | seconds | sub error | sub kappa |",
            "|---|---|---|---|---|---|---|---|",
            *map(line, of_set),
            "",
        ]
    return "\n".join(lines)


def rows_of(page: str) -> list[dict[str, Any]]:
    """Return the rows of a page, as far as it shows them."""
    rows: list[dict[str, Any]] = []
    for text in page.split("\n## ")[2:]:
        name, width = re.match(r"(\S+) \(([\d,]+) features\)", text).groups()  # type: ignore[union-attr]
        for row in text.splitlines()[4:]:
            if not row.startswith("| "):
                break
            method, point, error, nonzeros, kappa, seconds, *sub = map(
                str.strip, row.split("|")[1:9]
            )
            found: dict[str, Any] = {
                "set": name, "method": method, "width": int(width.replace(",", "")),
                "parameters": dict(part.rsplit(" ", 1) for part in point.split(", ") if part),
                "error": float(error.split()[0]) / 100, "sd": float(error.split()[1][1:-1]) / 100,
                "nonzeros": float(nonzeros.split()[0]), "kappa": float(kappa) if kappa else None,
                "seconds": float(seconds) if seconds else None, "text": row,
            }  # fmt: skip
            if sub[0]:
                found |= {"sub_error": float(sub[0]) / 100, "sub_kappa": float(sub[1])}
            rows.append(found)
    return rows


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in which new ones replace old ones; a "sparse" row comes after its rule."""
    rows = {(row["set"], row["method"]): row for row in old}
    rows |= {(row["set"], row["method"]): row for row in new}
    sets = list(dict.fromkeys(name for name, _ in rows))
    methods = list(dict.fromkeys(method for _, method in rows))
    places = {method: number for number, method in enumerate(methods)}
    methods.sort(key=lambda method: places[method.removesuffix(", sparse")])
    return [rows[name, method] for name in sets for method in methods if (name, method) in rows]


def main() -> None:
    """Parse arguments; measure, print and write."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--only", nargs="*", default=[], metavar="RULE")
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--untimed", action="store_true", help="leave out the seconds")
    parser.add_argument("--json", type=Path, nargs="*", default=[])
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.write:
        rows = [row for path in arguments.json for row in json.loads(path.read_text())]
        if arguments.write.exists():
            rows = merged(rows_of(arguments.write.read_text()), rows)
        arguments.write.write_text(tables(rows))
        return
    sets, orders, only = arguments.sets, arguments.orders, arguments.only
    rows = [row for name in sets for row in measure(name, orders, only)]
    if arguments.untimed:
        rows = [{**row, "seconds": None} for row in rows]
    if arguments.json:
        arguments.json[0].write_text(json.dumps(rows, indent=1))
    if not only:
        print(tables(rows))


if __name__ == "__main__":
    main()
