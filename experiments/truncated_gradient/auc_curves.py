"""AUC against the number of features: truncated gradient, rounding, subgradient, lasso."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import lasso_path
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from experiments.record import About, Record, main, verdict_of
from experiments.truncated_gradient.tables import Table, load, present, whole
from thresher import OnePassSearchCV, TruncatedGradientClassifier
from thresher.plots import style

ABOUT = About(
    name="auc_curves",
    paper="Langford, Li, Zhang 2008",
    shows="Figure 2",
    title="AUC against the number of features allowed",
    parameters={
        "sets": ["ad", "spambase"],
        "K": 10,
        "longer K": 100,
        "loss": "clipped_square",
        "splits": 5,
        "folds": 5,
        "eta, 20 passes": [0.03, 0.1, 0.3, 1.0],
        "decay, 20 passes": [0.8, 1.0],
        "eta, 100 passes": [0.001, 0.003, 0.01, 0.03],
        "decay, 100 passes": [0.97, 1.0],
        "g": [0.0, *np.geomspace(3e-4, 1.0, 30).round(6)],
        "theta": [0.0, *np.geomspace(3e-3, 3.0, 30).round(6)],
        "g of the subgradient": [0.0, 0.001, 0.003, 0.01],
        "allowed": [1, 2, 3, 5, 8, 12, 18, 25, 35, 45, 57],
        "tie": 0.005,
        "alike": 0.01,
        "few": 12,
        "many": 35,
        "rows": None,
    },
    quick={
        "splits": 2,
        "folds": 3,
        "eta, 20 passes": [0.3],
        "decay, 20 passes": [0.8],
        "eta, 100 passes": [0.03],
        "decay, 100 passes": [1.0],
        "g": [0.0, 0.003, 0.01, 0.03],
        "theta": [0.0, 0.1, 0.3, 1.0],
        "g of the subgradient": [0.0, 0.003],
        "allowed": [3, 12, 35, 57],
        "rows": 400,
    },
)
TRUNCATED, CEILED, ROUNDED, SUBGRADIENT, LASSO, LONGER = METHODS = (
    "truncated, theta = inf", "truncated, theta = g", "rounding", "l1 subgradient", "lasso",
    "truncated, theta = inf, K = 100",
)  # fmt: skip


@dataclass
class Curve:
    """Features, AUC in cross-validation and on test rows, and rate of every candidate."""

    nonzeros: NDArray[np.float64]  # of the model trained on all training rows
    score: NDArray[np.float64]
    test: NDArray[np.float64]
    eta: NDArray[np.float64]

    def at(self, allowed: int) -> tuple[float, float]:
        """Return test AUC and rate of the candidate with the best cross-validation score."""
        fine = np.flatnonzero(self.nonzeros <= allowed)
        if not fine.size:
            return 0.5, np.nan
        best = fine[self.score[fine].argmax()]
        return float(self.test[best]), float(self.eta[best])


def run(record: Record) -> None:
    """Draw the curves of each data set over several splits into training and test rows."""
    chosen = record.parameters
    there, absent = present(record)
    record.say(
        "The x-axis is the largest number of features allowed. Everything else, also the gravity, "
        "is chosen by AUC in cross-validation, among the parameters that leave at most this "
        "number of features on all training rows. If none do, AUC is 0.5. Subgradient steps make "
        "no zeros, so at the end only the largest weights are kept. Lasso is the batch lasso on "
        "targets -1 and +1 (scikit-learn's coordinate descent), on the same rows without the "
        "constant. Truncated gradient with a longer K is also shown: between truncations, noise "
        "moves a zero weight by about the root of K, and a truncation subtracts K g. If eta K >= "
        "1, theta = g equals rounding, by algebra; most rates here are below. Values are means "
        f"over random splits into training and test rows of the paper's sizes.{absent}"
    )
    for name in there:
        table = load(record, name, rows=chosen["rows"])
        found = np.array([_split(record, table, split) for split in range(chosen["splits"])])
        _report(record, name, found[..., 0])
        rates = sorted({*chosen["eta, 20 passes"], *chosen["eta, 100 passes"]})
        counts = [Counter(etas) for etas in found[..., 1].swapaxes(0, 1).reshape(len(METHODS), -1)]
        record.table(
            f"{name}: how often each rate was chosen, over splits and numbers of features",
            ["method", *(f"eta = {eta:g}" for eta in rates)],
            [
                [method, *(count[eta] for eta in rates)]
                for method, count in zip(METHODS, counts, strict=True)
                if method != LASSO
            ],
        )


def _split(record: Record, table: Table, split: int) -> list[list[tuple[float, float]]]:
    """Return AUC on test rows, and the rate, for every method and number of features."""
    chosen = record.parameters
    X = sp.vstack([table.X_train, table.X_test], format="csr")
    y = np.concatenate([table.y_train, table.y_test])
    rows = [table.X_train, table.X_test, table.y_train, table.y_test]
    if split:
        rows = train_test_split(
            X, y, train_size=table.y_train.size, random_state=record.seed + split
        )
    train, test, y_train, y_test = rows
    count = whole(y_train.size)
    drawn = Table(table.name, train[:count], y_train[:count], test, y_test, True)
    curves = [
        _online(record, drawn, [{"gravity": chosen["g"]}]),
        _online(record, drawn, [{"gravity": [g], "ceiling": [g]} for g in chosen["theta"]]),
        _online(record, drawn, [{"ceiling": chosen["theta"], "shrink": ["round"]}]),
        _subgradient(record, drawn),
        _lasso(record, drawn),
        _online(record, drawn, [{"gravity": chosen["g"], "period": [chosen["longer K"]]}]),
    ]
    return [[curve.at(allowed) for allowed in chosen["allowed"]] for curve in curves]


def _search(record: Record, table: Table, own: list[dict[str, Any]], scoring: Any) -> Any:
    """Search with every rate; the last split trains on all training rows and is the test."""
    chosen = record.parameters
    rates = [
        {"eta0": chosen[f"eta, {n} passes"], "decay": chosen[f"decay, {n} passes"], "passes": [n]}
        for n in (20, 100)
    ]
    X = sp.vstack([table.X_train, table.X_test], format="csr")
    y = np.concatenate([table.y_train, table.y_test])
    last = np.split(np.arange(y.size), [table.y_train.size])
    learner = TruncatedGradientClassifier(
        loss=chosen["loss"], period=chosen["K"], random_state=record.seed
    )
    return OnePassSearchCV(
        learner,
        [{**rate, **grid} for rate, grid in product(rates, own)],
        cv=[*table.folds(chosen["folds"], record.seed), last],
        scoring=scoring,
        refit=False,
    ).fit(X, y)


def _curve(record: Record, search: Any, nonzeros: Any, metric: str = "score") -> Curve:
    found, folds = search.cv_results_, record.parameters["folds"]
    scores = [found[f"split{split}_test_{metric}"] for split in range(folds + 1)]
    eta = np.array([point["eta0"] for point in found["params"]])
    return Curve(nonzeros, np.mean(scores[:-1], axis=0), scores[-1], eta)


def _online(record: Record, table: Table, own: list[dict[str, Any]]) -> Curve:
    search = _search(record, table, own, "roc_auc")
    return _curve(record, search, search.nonzeros_[:, -1])


def _subgradient(record: Record, table: Table) -> Curve:
    """Cross-validate rate and gravity for every number of weights kept at the end."""
    chosen = record.parameters
    own = [{"gravity": chosen["g of the subgradient"], "shrink": ["subgradient"]}]
    scorers = {str(count): _auc_of_largest(count) for count in chosen["allowed"]}
    search = _search(record, table, own, scorers)
    points = len(search.cv_results_["params"])
    curves = [
        _curve(record, search, np.full(points, float(count)), str(count))
        for count in chosen["allowed"]
    ]
    return Curve(
        *(
            np.concatenate([getattr(curve, name) for curve in curves])
            for name in ("nonzeros", "score", "test", "eta")
        )
    )


def _auc_of_largest(count: int) -> Callable[[Any, Any, Any], float]:
    """Return a scorer of the `count` largest weights."""

    def score(fitted: Any, X: Any, y: Any) -> float:
        w = np.ravel(fitted.coef_).astype(float)
        w[np.argsort(-np.abs(w), kind="stable")[count:]] = 0.0
        entries = np.sqrt(np.maximum(np.diff(X.indptr), 1))  # the paper's loss divides by it
        return float(roc_auc_score(y, (X @ w) / entries + np.ravel(fitted.intercept_)[0]))

    return score


def _lasso(record: Record, table: Table) -> Curve:
    """Cross-validate the penalty of the batch lasso."""

    def path(X: Any, y: Any) -> Any:
        dense = X.toarray().astype(float)
        dense -= dense.mean(axis=0)
        return lasso_path(dense, y - y.mean(), alphas=alphas, max_iter=20_000)[1]

    def auc(X: Any, y: Any, w: Any) -> Any:
        return np.array([roc_auc_score(y, margin) for margin in (X @ w).T])

    y = table.y_train - table.y_train.mean()
    strongest = np.abs(table.X_train.T @ y).max() / y.size
    alphas = strongest * np.geomspace(1, 1e-4, 20 if record.quick else 200)
    folds = list(table.folds(record.parameters["folds"], record.seed))
    scores = [
        auc(
            table.X_train[held], table.y_train[held], path(table.X_train[part], table.y_train[part])
        )
        for part, held in folds
    ]
    w = path(table.X_train, table.y_train)
    return Curve(
        np.count_nonzero(w, axis=0),
        np.mean(scores, axis=0),
        auc(table.X_test, table.y_test, w),
        np.full(alphas.size, np.nan),
    )


def _report(record: Record, name: str, found: NDArray[np.float64]) -> None:
    chosen = record.parameters
    allowed = np.array(chosen["allowed"])
    mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
    record.table(
        f"{name}: test AUC, mean over {len(found)} splits (and standard deviation)",
        ["features allowed", *METHODS],
        [
            [
                int(count),
                *(f"{m:.4f} ({s:.4f})" for m, s in zip(mean.T[at], spread.T[at], strict=True)),
            ]
            for at, count in enumerate(allowed)
        ],
    )
    ax = style.axes(wide=7.0, high=4.2)
    for number, method in enumerate(METHODS):
        ax.errorbar(
            allowed * 1.02 ** (number - 2), mean[number], spread[number] / np.sqrt(len(found)),
            label=method, capsize=2, markersize=4.5, **style.series(number),
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(allowed, [str(count) for count in allowed])
    ax.minorticks_off()
    ax.set_xlabel("features allowed")
    ax.set_ylabel("AUC on test rows")
    ax.legend(frameon=False)
    record.figure(f"AUC on {name}, with standard errors over splits", ax.figure)
    _claims(record, name, allowed, dict(zip(METHODS, mean, strict=True)))


def _claims(record: Record, name: str, allowed: Any, auc: dict[str, Any]) -> None:
    chosen = record.parameters
    few, many = allowed <= chosen["few"], allowed >= chosen["many"]
    others = (CEILED, ROUNDED, SUBGRADIENT)
    for method in (TRUNCATED, LONGER):
        own = method == LONGER
        paper = "not in the paper" if own else "shown in a figure"
        it = f"truncated gradient (theta = inf{', K = 100' if own else ''})"
        behind = np.max([auc[other] for other in others], axis=0) - auc[method]
        of_each = ", ".join(
            f"{other} {np.sum(auc[other] - auc[method] <= chosen['tie'])}" for other in others
        )
        record.claim(
            f"{name}: {it} is best or tied among the online methods",
            paper=paper,
            ours=f"at {np.sum(behind <= chosen['tie'])} of {allowed.size} numbers of features "
            f"within {chosen['tie']} of the best; at most {max(behind.max(), 0):.3f} behind, "
            f"{max(-behind.min(), 0):.3f} ahead (within this of each single method: {of_each})",
            verdict=verdict_of(float(np.mean(behind <= chosen["tie"]))),
            own=own,
        )
        ahead = auc[method] - auc[LASSO]
        alike = np.abs(ahead[few]) <= chosen["alike"]
        record.claim(
            f"{name}: with few features {it} is often similar to lasso",
            paper=paper,
            ours=f"within {chosen['alike']} at {alike.sum()} of {few.sum()} numbers up to "
            f"{chosen['few']}; differences {ahead[few].min():+.3f} to {ahead[few].max():+.3f}",
            verdict=verdict_of(float(alike.mean() > 0.5)),
            own=own,
        )
    apart = auc[CEILED] - auc[ROUNDED]
    alike = np.abs(apart) <= chosen["alike"]
    record.claim(
        f"{name}: theta = g behaves similarly to rounding",
        paper='shown in a figure; "and sometimes better"',
        ours=f"within {chosen['alike']} at {alike.sum()} of {allowed.size}; better by more "
        f"than that at {np.sum(apart > chosen['alike'])}, worse at "
        f"{np.sum(apart < -chosen['alike'])}; differences {apart.min():+.3f} to {apart.max():+.3f}",
        verdict=verdict_of(float(alike.mean())),
    )
    ahead = (auc[TRUNCATED] - auc[LASSO])[many]
    better = ahead > 0.001
    record.claim(
        f"{name}: with many features lasso is usually worse, because it overfits",
        paper="shown in a figure",
        ours=f"worse by more than 0.001 at {better.sum()} of {many.sum()} numbers from "
        f"{chosen['many']} on; differences {ahead.min():+.4f} to {ahead.max():+.4f}",
        verdict=verdict_of(float(better.mean() > 0.5)),
    )


if __name__ == "__main__":
    main(ABOUT, run)
