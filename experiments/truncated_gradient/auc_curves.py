"""AUC against the number of features: truncated gradient, rounding, subgradient, lasso."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import lasso_path
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from experiments.record import About, Record, main, verdict_of
from experiments.truncated_gradient.tables import Table, load, whole
from thresher import OnePassSearchCV, TruncatedGradientClassifier, datasets
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
        "eta": [0.1, 1.0],
        "g": [0.0, *np.geomspace(3e-4, 0.3, 30).round(6)],
        "theta": [0.0, *np.geomspace(3e-3, 3.0, 30).round(6)],
        "g of the subgradient": [0.0, 0.001, 0.003, 0.01],
        "decay": [0.8, 1.0],
        "passes": [20],
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
        "eta": [0.3],
        "g": [0.0, 0.003, 0.01, 0.03],
        "theta": [0.0, 0.1, 0.3, 1.0],
        "g of the subgradient": [0.0, 0.003],
        "decay": [0.8],
        "allowed": [3, 12, 35, 57],
        "rows": 400,
    },
)
TRUNCATED, CEILED, ROUNDED, SUBGRADIENT, LASSO, LONGER = (
    "truncated, theta = inf", "truncated, theta = g", "rounding", "l1 subgradient", "lasso",
    "truncated, theta = inf, K = 100",
)  # fmt: skip


@dataclass
class Curve:
    """Of every candidate: features, AUC in cross-validation, and how to get AUC on test rows."""

    nonzeros: NDArray[np.float64]
    score: NDArray[np.float64]
    test: Callable[[int], float]

    def at(self, allowed: int) -> float:
        """Return the test AUC of the candidate that cross-validation prefers."""
        fine = np.flatnonzero(self.nonzeros <= allowed)
        return self.test(int(fine[self.score[fine].argmax()])) if fine.size else 0.5


def run(record: Record) -> None:
    """Draw the curves of each set over several splits into training and test rows."""
    chosen = record.parameters
    there = [name for name in chosen["sets"] if name in datasets.names()]
    absent = [name for name in chosen["sets"] if name not in there]
    record.say(
        "The number of features allowed is on the x-axis; all else, also how strong the pull "
        "is, is chosen by AUC in cross-validation among models with so many features or fewer; "
        "where no model has so few, AUC is 0.5. Subgradient steps make no zeros, so that the "
        "largest weights are kept at the end. Lasso is the batch lasso on targets -1 and +1 "
        "(scikit-learn's coordinate descent), on the same rows with the constant left out. "
        "Truncated gradient with a longer K is beside it: between truncations noise moves a weight "
        "at zero by about the root of K, and a truncation takes K g. Means over random splits into "
        "training and test rows of the paper's sizes."
        + (f" Not here: {', '.join(absent)}." if absent else "")
    )
    for name in there:
        table = load(record, name, rows=chosen["rows"])
        found = np.array([_split(record, table, split) for split in range(chosen["splits"])])
        _report(record, name, found)


def _split(record: Record, table: Table, split: int) -> list[list[float]]:
    """Return AUC on test rows for every method and number of features."""
    import scipy.sparse as sp

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
        _online(record, drawn, {"gravity": chosen["g"]}),
        _online(record, drawn, [{"gravity": [g], "ceiling": [g]} for g in chosen["theta"]]),
        _online(record, drawn, {"ceiling": chosen["theta"], "shrink": ["round"]}),
        _subgradient(record, drawn),
        _lasso(record, drawn),
        _online(record, drawn, {"gravity": chosen["g"], "period": [chosen["longer K"]]}),
    ]
    return [[curve.at(allowed) for allowed in chosen["allowed"]] for curve in curves]


def _auc(table: Table, w: Any) -> float:
    """Return AUC on the test rows; the paper's loss divides by the root of a row's nonzeros."""
    entries = np.sqrt(np.maximum(np.diff(table.X_test.indptr), 1))
    return float(roc_auc_score(table.y_test, (table.X_test @ w[:-1]) / entries + w[-1]))


def _learner(record: Record) -> TruncatedGradientClassifier:
    chosen = record.parameters
    return TruncatedGradientClassifier(
        loss=chosen["loss"], period=chosen["K"], random_state=record.seed
    )


def _grids(record: Record, own: Any) -> list[dict[str, Any]]:
    chosen = record.parameters
    rates = {"eta0": chosen["eta"], "decay": chosen["decay"], "passes": chosen["passes"]}
    return [{**rates, **grid} for grid in (own if isinstance(own, list) else [own])]


def _online(record: Record, table: Table, own: Any) -> Curve:
    search = OnePassSearchCV(
        _learner(record),
        _grids(record, own),
        cv=table.folds(record.parameters["folds"], record.seed),
        scoring="roc_auc",
        refit=False,
    ).fit(table.X_train, table.y_train)
    points = search.cv_results_["params"]

    def test(point: int) -> float:
        learner = _learner(record).set_params(**points[point])
        return _auc(table, _weights(learner.fit(table.X_train, table.y_train)))

    nonzeros = search.nonzeros_.mean(axis=1)
    return Curve(nonzeros, search.cv_results_["mean_test_score"], test)


def _weights(fitted: Any) -> NDArray[np.float64]:
    return np.append(np.ravel(fitted.coef_), np.ravel(fitted.intercept_)).astype(float)


def _largest(w: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    kept = np.zeros_like(w)
    order = np.argsort(-np.abs(w[:-1]), kind="stable")[:count]
    kept[order], kept[-1] = w[order], w[-1]
    return kept


def _subgradient(record: Record, table: Table) -> Curve:
    """Cross-validate rate and pull at every number of weights that are kept at the end."""
    chosen = record.parameters
    points = [
        {"eta0": eta, "decay": decay, "gravity": g, "passes": passes, "shrink": "subgradient"}
        for eta in chosen["eta"]
        for decay in chosen["decay"]
        for g in chosen["g of the subgradient"]
        for passes in chosen["passes"]
    ]
    allowed = chosen["allowed"]
    score = np.zeros((len(points), len(allowed)))
    folds = list(table.folds(chosen["folds"], record.seed))
    for train, held in folds:
        part = Table(
            table.name, table.X_train[train], table.y_train[train], table.X_train[held],
            table.y_train[held], True,
        )  # fmt: skip
        for at, point in enumerate(points):
            learner = _learner(record).set_params(**point)
            w = _weights(learner.fit(part.X_train, part.y_train))
            score[at] += [_auc(part, _largest(w, count)) / len(folds) for count in allowed]

    def test(number: int) -> float:
        learner = _learner(record).set_params(**points[number // len(allowed)])
        w = _weights(learner.fit(table.X_train, table.y_train))
        return _auc(table, _largest(w, allowed[number % len(allowed)]))

    return Curve(np.tile(allowed, len(points)).astype(float), score.ravel(), test)


def _lasso(record: Record, table: Table) -> Curve:
    """Cross-validate the penalty of the batch lasso."""

    def path(X: Any, y: Any) -> Any:
        dense = X.toarray().astype(float)
        dense -= dense.mean(axis=0)
        return lasso_path(dense, y - y.mean(), alphas=alphas, max_iter=20_000)[1]

    y = table.y_train - table.y_train.mean()
    strongest = np.abs(table.X_train.T @ y).max() / y.size
    alphas = strongest * np.geomspace(1, 1e-4, 20 if record.quick else 200)
    w = path(table.X_train, table.y_train)
    score, nonzeros = np.zeros(alphas.size), np.zeros(alphas.size)
    folds = list(table.folds(record.parameters["folds"], record.seed))
    for train, held in folds:
        part = path(table.X_train[train], table.y_train[train])
        margins = table.X_train[held] @ part
        score += [roc_auc_score(table.y_train[held], margin) / len(folds) for margin in margins.T]
        nonzeros += np.count_nonzero(part, axis=0) / len(folds)
    test = table.X_test @ w
    return Curve(nonzeros, score, lambda at: float(roc_auc_score(table.y_test, test[:, at])))


def _report(record: Record, name: str, found: NDArray[np.float64]) -> None:
    chosen = record.parameters
    allowed = np.array(chosen["allowed"])
    methods = (TRUNCATED, CEILED, ROUNDED, SUBGRADIENT, LASSO, LONGER)
    mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
    record.table(
        f"{name}: test AUC, mean over {len(found)} splits (and standard deviation)",
        ["features allowed", *methods],
        [
            [
                int(count),
                *(f"{m:.4f} ({s:.4f})" for m, s in zip(mean.T[at], spread.T[at], strict=True)),
            ]
            for at, count in enumerate(allowed)
        ],
    )
    ax = style.axes(wide=7.0, high=4.2)
    for number, method in enumerate(methods):
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
    _claims(record, name, allowed, dict(zip(methods, mean, strict=True)))


def _claims(record: Record, name: str, allowed: Any, auc: dict[str, Any]) -> None:
    chosen = record.parameters
    others = (CEILED, ROUNDED, SUBGRADIENT)
    behind = np.max([auc[method] for method in others], axis=0) - auc[TRUNCATED]
    of_each = ", ".join(
        f"{method} {np.sum(auc[method] - auc[TRUNCATED] <= chosen['tie'])}" for method in others
    )
    record.claim(
        f"{name}: truncated gradient (theta = inf) is best or tied among the online methods",
        paper="in a picture",
        ours=f"at {np.sum(behind <= chosen['tie'])} of {allowed.size} numbers of features within "
        f"{chosen['tie']} of the best; at most {max(behind.max(), 0):.3f} behind, "
        f"{max(-behind.min(), 0):.3f} ahead (against each alone: {of_each})",
        verdict=verdict_of(float(np.mean(behind <= chosen["tie"]))),
    )
    apart = auc[CEILED] - auc[ROUNDED]
    alike = apart >= -chosen["alike"]
    record.claim(
        f"{name}: theta = g behaves as rounding does, and sometimes better",
        paper="in a picture",
        ours=f"not worse by more than {chosen['alike']} at {alike.sum()} of {allowed.size}; "
        f"differences {apart.min():+.3f} to {apart.max():+.3f}",
        verdict=verdict_of(float(alike.mean())),
    )
    few, many = allowed <= chosen["few"], allowed >= chosen["many"]
    ahead = auc[TRUNCATED] - auc[LASSO]
    alike = np.abs(ahead[few]) <= chosen["alike"]
    record.claim(
        f"{name}: with few features it is similar to lasso",
        paper="in a picture",
        ours=f"within {chosen['alike']} at {alike.sum()} of {few.sum()} numbers up to "
        f"{chosen['few']}; differences {ahead[few].min():+.3f} to {ahead[few].max():+.3f}",
        verdict=verdict_of(float(alike.mean())),
    )
    ahead_longer = np.abs(auc[LONGER] - auc[LASSO])[few]
    alike = ahead_longer <= chosen["alike"]
    record.claim(
        f"{name}: with few features it is similar to lasso, at K = {chosen['longer K']}",
        paper="not in the paper",
        ours=f"within {chosen['alike']} at {alike.sum()} of {few.sum()}; at most "
        f"{ahead_longer.max():.3f} apart",
        verdict=verdict_of(float(alike.mean())),
    )
    better = ahead[many] > 0.001
    record.claim(
        f"{name}: with many features lasso is worse, for it overfits",
        paper="in a picture",
        ours=f"worse by more than 0.001 at {better.sum()} of {many.sum()} numbers from "
        f"{chosen['many']} on; differences {ahead[many].min():+.4f} to {ahead[many].max():+.4f}",
        verdict=verdict_of(float(better.mean())),
    )


if __name__ == "__main__":
    main(ABOUT, run)
