"""Test error against the density of models, for five rules (Figure 5)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import MaxAbsScaler

from experiments.numerically_stable import tasks
from experiments.numerically_stable.curves import (
    Curve,
    Learn,
    by_columns,
    by_rows,
    chosen,
    perceptron,
)  # fmt: skip
from experiments.record import About, Record, main, verdict_of
from thresher import (
    MarginPerceptronClassifier,
    MirrorDescentClassifier,
    TruncatedGradientClassifier,
)
from thresher.plots import style

PROPOSED, TG = "proposed", "TG"
GLOBAL, OWN = "SCD, one step for all", "SCD, a step for each"
WIDE, NARROW = "SMIDAS, p = 2 ln d", "SMIDAS, p = 0.5 ln d"
RULES = (PROPOSED, TG, GLOBAL, OWN, WIDE, NARROW)

ABOUT = About(
    "error_against_density",
    paper=tasks.PAPER,
    shows="Figure 5",
    title="test error against the density of the model",
    parameters={
        "tasks": [*tasks.NEWSGROUPS, "rcv1"],
        "levels": [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4],
        "orders": 5,
        "orders of SMIDAS": 1,
        "scans": 10,
        "lambda": [1e-4, 1e-3, 1e-2],
        "eta": [0.1, 0.5, 2.0, 8.0],
        "eta of SMIDAS": [0.5, 2.0, 8.0],
        "tau": [0.001, 0.01, 0.1],
    },
    quick={
        "tasks": ["sci_vs_talk"], "levels": [0.02, 0.05, 0.1], "orders": 2,
        "orders of SMIDAS": 1, "scans": 2, "lambda": [1e-4], "eta of SMIDAS": [0.5],
        "eta": [0.5], "tau": [0.01],
    },
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """The results of a rule on a task.

    Attributes
    ----------
    errors : array
        At the levels, mean over orders, in percent.
    error, density : float
        Of the last models, mean over orders, in percent.
    stopped : float
        Share of orders that ended below the highest level.
    parameters : dict
    """

    errors: np.ndarray
    error: float
    density: float
    stopped: float
    parameters: dict[str, Any]


Results = dict[str, dict[str, Found]]


def run(record: Record) -> None:
    """Train all rules; write tables, the plot and the claims."""
    found: Results = {}
    there, absent = tasks.split(record.parameters["tasks"])
    for task in there:
        data = tasks.load(task)
        parts = data.X_train, data.y_train, data.X_valid, data.y_valid, data.X_test, data.y_test
        record.uses(task, *parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about models whose weights are all zero
            found[task] = _measured(data, record.parameters)
    levels = record.parameters["levels"]
    record.say(_PROTOCOL.format(limit=levels[-1], **record.parameters) + _at_the_end(record, found))
    few = [k for k, level in enumerate(levels) if level in _SHOWN]
    for task, rules in found.items():
        head = ["rule", *(f"{100 * levels[k]:g}% density" for k in few)]
        record.table(
            f"Test error, % ({task})",
            [*head, "last model", "its density, %", "parameters"],
            [
                [rule, *of.errors[few], of.error, of.density, _said(of.parameters)]
                for rule, of in rules.items()
            ],
        )
    record.figure("Test error against density", _picture(found, levels))
    _claims(record, found, levels)
    for task in absent:
        record.claim(
            f"On {task} SMIDAS with p = 2 ln d has the highest error of all",
            paper="tasks 1 to 7 (Figure 5)",
            ours="the file is not available",
            verdict="not tested",
        )


_SHOWN = (0.05, 0.1, 0.2, 0.3, 0.4)  # levels in the tables; the plot has all
_PROTOCOL = (
    "The proposed rule is the margin perceptron with soft thresholds; TG is the truncated "
    "gradient with K = 1, SCD is stochastic coordinate descent, SMIDAS is mirror descent. Rows "
    "are drawn at random, with the paper's counts of training, validation and test rows, and have "
    "norm 1. Without that, a few messages that contain encoded files, with values up to 43,150 in "
    "comp_vs_rec, decide what all rules learn. Errors are those of the model when its density "
    "first reaches a level, or of the last model if it is sparse enough; lines end at the last "
    "model. As in the paper, lines mix time and density: a point at a low density belongs to a "
    "rule that has seen few rows, unless it is the last point. It says little about what the rule "
    "would reach with so few weights. Every rule stops at {limit:.0%} density or after {scans} "
    "scans. Parameters are those with the smallest validation error of the last model, for one "
    "order. All rules choose from the same lambdas and etas, if they have them; only SMIDAS, "
    "whose steps use all weights, has one eta less. The paper's grids are larger: five lambdas, "
    "five etas. Errors are means over {orders} orders, {orders of SMIDAS} for SMIDAS. There are "
    "no intercepts. SCD's columns are scaled to [-1, 1], because 'one step for all' needs it: the "
    "step is 4, from the curvature of the logistic loss. 'A step for each' is 4 over the mean "
    "square of the feature's column. The paper does not say which one it uses."
)


def _measured(data: Any, parameters: dict[str, Any]) -> dict[str, Found]:
    levels, scans = parameters["levels"], parameters["scans"]
    etas, lambdas, taus = parameters["eta"], parameters["lambda"], parameters["tau"]
    X, y = data.X_train, data.y_train
    scaler = MaxAbsScaler().fit(X)
    scaled = [scaler.transform(rows) for rows in (X, data.X_valid, data.X_test)]
    own = [X, data.X_valid, data.X_test]

    def proposed(point: dict[str, Any], seed: int) -> Curve:
        estimator = MarginPerceptronClassifier(fit_intercept=False, random_state=seed, **point)
        return perceptron(estimator, X, y, levels, scans)

    def truncated(point: dict[str, Any], seed: int) -> Curve:
        estimator = TruncatedGradientClassifier(period=1, decay=1.0, fit_intercept=False, **point)
        return by_rows(estimator, X, y, levels, scans, seed)

    def mirror(p: str, point: dict[str, Any], seed: int) -> Curve:
        estimator = MirrorDescentClassifier(p=p, decay=1.0, fit_intercept=False, **point)
        return by_rows(estimator, X, y, levels, scans, seed)

    def descent(step: str, point: dict[str, Any], seed: int) -> Curve:
        return by_columns(point["l1"], step, scaled[0], y, levels, scans, seed)

    pairs, orders = list(product(etas, lambdas)), parameters["orders"]
    margins = [{"eta0": e, "l1": a, "margin": t} for (e, a), t in product(pairs, taus)]
    rules: dict[str, tuple[Learn, list[dict[str, Any]], int, list[Any]]] = {
        PROPOSED: (proposed, margins, orders, own),
        TG: (truncated, [{"eta0": e, "gravity": a} for e, a in pairs], orders, own),
    }
    for rule, step in ((GLOBAL, "global"), (OWN, "coordinate")):
        rules[rule] = partial(descent, step), [{"l1": a} for a in lambdas], orders, scaled
    points = [{"eta0": e, "l1": a} for e, a in product(parameters["eta of SMIDAS"], lambdas)]
    for rule, p in ((WIDE, "2ln"), (NARROW, "0.5ln")):
        rules[rule] = partial(mirror, p), points, parameters["orders of SMIDAS"], own
    found = {}
    for rule, (learn, points, count, rows) in rules.items():
        point = chosen(learn, points, rows[1], data.y_valid)
        curves = [learn(point, seed) for seed in range(count)]
        errors = [curve.errors(rows[2], data.y_test, levels) for curve in curves]
        found[rule] = Found(
            errors=np.mean(errors, axis=0),
            error=float(np.mean([curve.last_error(rows[2], data.y_test) for curve in curves])),
            density=100 * float(np.mean([curve.density for curve in curves])),
            stopped=float(np.mean([curve.density < levels[-1] for curve in curves])),
            parameters=point,
        )
    return found


def _said(point: dict[str, Any]) -> str:
    names = {"eta0": "eta", "l1": "lambda", "gravity": "lambda", "margin": "tau"}
    return ", ".join(f"{names[name]} {value:g}" for name, value in point.items())


def _at_the_end(record: Record, found: Results) -> str:
    """Return how often the largest rate of the grid was chosen."""
    rates = [
        of.parameters["eta0"]
        for rules in found.values()
        for of in rules.values()
        if "eta0" in of.parameters
    ]
    largest = max(record.parameters["eta"])
    return (
        f" The largest eta, {largest:g}, is chosen in {rates.count(largest)} of {len(rates)} cases."
    )


def _picture(found: Results, levels: list[float]) -> Any:
    rows = -(-len(found) // 3)
    figure, all_axes = plt.subplots(
        rows, min(3, len(found)), figsize=(10, 3.2 * rows + 0.8), layout="constrained",
        squeeze=False, sharex=True, sharey=True,
    )  # fmt: skip
    for (task, rules), ax in zip(found.items(), all_axes.ravel(), strict=False):
        style.axes(ax)
        for number, (rule, of) in enumerate(rules.items()):
            look = style.series(number)
            reached = [100 * level for level in levels if 100 * level < of.density]
            at = [*reached, of.density]
            errors = [*of.errors[: len(reached)], of.error]
            ax.plot(at, errors, label=rule, markersize=4, **look)
        ax.set(title=task, ylim=(0, 54), xlim=(0, 44))
    for ax in all_axes[-1]:
        ax.set_xlabel("nonzero weights, %")
    for ax in all_axes[:, 0]:
        ax.set_ylabel("test error, %")
    figure.legend(*all_axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _claims(record: Record, found: Results, levels: list[float]) -> None:
    for name, others in (
        ("TG, SCD with one step for all, and SMIDAS", (TG, GLOBAL, WIDE, NARROW)),
        ("SCD with a step for each feature", (OWN,)),
    ):
        best = [
            rules[PROPOSED].errors[k] <= min(rules[other].errors[k] for other in others)
            for rules in found.values()
            for k in range(len(levels))
        ]
        record.claim(
            f"At every density the proposed rule has the lowest error: against {name}",
            paper="in all tasks"
            if len(others) > 1
            else "the paper does not say which step SCD has",
            ours=f"at {sum(best)} of {len(best)} levels of the tasks",
            verdict=verdict_of(float(np.mean(best))),
        )
    lowest = [
        rules[PROPOSED].error <= min(rules[other].error for other in (TG, GLOBAL, WIDE, NARROW))
        for rules in found.values()
    ]
    record.claim(
        "The proposed rule's last model has a lower error than TG's, SCD's with one step for all, "
        "and SMIDAS's",
        paper="in all tasks",
        ours=f"{sum(lowest)} of {len(lowest)} tasks; {_last(found, RULES)}",
        verdict=verdict_of(float(np.mean(lowest))),
    )
    for task, limit, paper in (
        ("comp_vs_rec", 0.3, "about 5% before 30% density"),
        ("comp_vs_talk", 0.2, "5% at 20% density"),
    ):
        if task in found:
            errors = dict(zip(levels, found[task][PROPOSED].errors, strict=True))
            error = min(e for level, e in errors.items() if level <= limit)
            record.claim(
                f"The proposed rule needs few features for an error of 5% ({task})",
                paper=paper,
                ours=f"{error:.3g}% at {100 * limit:g}% density",
                verdict=verdict_of(float(error <= 5.5)),
            )
    alone = [task for task in found if task not in ("comp_vs_sci", "rcv1")]
    stops = [found[task][PROPOSED].stopped > 0.5 for task in alone]
    record.claim(
        "The proposed rule stops updating before 40% density by itself",
        paper="in tasks 1, 3, 4, 5 and 6",
        ours="share of orders and last density: "
        + "; ".join(
            f"{task} {of[PROPOSED].stopped:.1f}, {of[PROPOSED].density:.3g}%"
            for task, of in found.items()
        ),
        verdict=verdict_of(float(np.mean(stops))) if stops else "not tested",
    )
    worst = [
        rules[WIDE].error >= max(of.error for rule, of in rules.items() if rule != WIDE)
        for rules in found.values()
    ]
    record.claim(
        "SMIDAS with p = 2 ln d has the highest error of all",
        paper="in tasks 1 to 7",
        ours=f"last models: in {sum(worst)} of {len(worst)} tasks; " + _last(found, (WIDE, NARROW)),
        verdict=verdict_of(float(np.mean(worst))),
    )
    for step in (GLOBAL, OWN):
        slower = [rules[TG].errors > rules[step].errors for rules in found.values()]
        record.claim(
            f"TG converges slower than SCD ({step.removeprefix('SCD, ')})",
            paper="in tasks 1 to 6",
            ours=f"TG's error is higher at {np.sum(slower)} of {np.size(slower)} levels of the "
            "tasks; " + _last(found, (TG, step)),
            verdict=verdict_of(float(np.mean(slower))),
        )
    record.claim(
        "On webspam the proposed rule has 5.9% error with 0.8% of the features, TG 8.2% with 0.7%",
        paper="5.9 and 8.2%",
        ours="the file is not available",
        verdict="not tested",
    )


def _last(found: Results, rules: tuple[str, ...]) -> str:
    errors = {rule: np.mean([of[rule].error for of in found.values()]) for rule in rules}
    said = "; ".join(f"{rule}: {error:.3g}%" for rule, error in errors.items())
    return f"mean error of the last models: {said}"


if __name__ == "__main__":
    main(ABOUT, run)
