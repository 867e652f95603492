"""Exponents of the weights of mirror descent (Table 3)."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.numerically_stable import tasks
from experiments.numerically_stable.curves import Curve, by_rows
from experiments.numerically_stable.tasks import RAW, UNIT
from experiments.record import About, Record, main, verdict_of
from thresher import MirrorDescentClassifier, health
from thresher.plots import style

ABOUT = About(
    "exponents",
    paper=tasks.PAPER,
    shows="Table 3",
    title="the range of magnitudes of the weights of mirror descent (SMIDAS)",
    parameters={
        "tasks": tasks.ALL,
        "density": 0.4,
        "p": ["2ln", "0.5ln"],
        "eta": [0.01, 0.1, 0.5, 2.0],
        "lambda": 1e-4,
        "most scans": 3,
    },
    quick={"tasks": ["sci_vs_talk"], "density": 0.1, "eta": [0.5]},
)

# Share within [e_m - 51, e_m], mean, standard deviation: p = 2 ln d, then p = 0.5 ln d.
PUBLISHED = {
    "comp_vs_rec": ((0.095, -80.3, 23.6), (1.000, -12.7, 7.2)),
    "comp_vs_sci": ((0.258, -69.8, 32.4), (0.999, -15.4, 7.1)),
    "comp_vs_talk": ((0.282, -78.6, 43.1), (0.996, -17.2, 9.1)),
    "sci_vs_rec": ((0.381, -63.6, 29.4), (1.000, -14.3, 6.1)),
    "sci_vs_talk": ((0.273, -69.3, 26.9), (1.000, -16.0, 5.9)),
    "rec_vs_talk": ((0.347, -68.4, 33.7), (0.999, -15.8, 7.5)),
    "rcv1": ((0.012, -136.8, 32.6), (0.998, -26.3, 6.5)),
    "webspam": ((None, None, None), (0.976, -71.4, 22.1)),
}
_NAMES = {"2ln": "p = 2 ln d", "0.5ln": "p = 0.5 ln d"}

Spreads = dict[tuple[str, str, str], tuple[health.ExponentSpread, float, float]]


def run(record: Record) -> None:
    """Train on all tasks; write tables, a plot and claims."""
    found: Spreads = {}
    there, absent = tasks.split(record.parameters["tasks"])
    for task in there:
        for weighting in (RAW, UNIT):
            data = tasks.load(task, unit_norm=weighting == UNIT)
            if weighting == RAW:
                parts = data.X_train, data.y_train, data.X_valid, data.y_valid
                record.uses(task, *parts, data.X_test, data.y_test)
            for p in record.parameters["p"]:
                found[task, weighting, p] = _measured(data, task, p, record.parameters)
    record.say(_PROTOCOL.format(**record.parameters))
    for weighting in (RAW, UNIT):
        for p in record.parameters["p"]:
            record.table(f"Exponents, {_NAMES[p]}, {weighting}", *_table(found, weighting, p))
    record.figure("Exponents of the weights, tf-idf", _picture(found))
    _claims(record, found)
    for task in absent:
        steep, flat = (values[0] for values in PUBLISHED[task])
        record.claim(
            f"{task}: with p = 2 ln d most weights are too small to be added to the largest, with "
            "p = 0.5 ln d nearly all weights can be added to it",
            paper=f"within: {'no model' if steep is None else steep} and {flat}",
            ours="the file is not available",
            verdict="not tested",
        )


_PROTOCOL = (
    "Each model is trained until {density:.0%} of its weights are nonzero (0.1% for webspam), for "
    "at most {most scans} scans, with lambda = {lambda}. The rate is the one of {eta} whose model "
    "has the smallest validation error among those that reach that density. If none does, it is "
    "the largest rate, and the model is not used for any claim. 'Within' is the share of weights "
    "that double precision can add to the largest: those with exponents up to 51 below the "
    "largest. The paper does not say how rows are scaled; its spectral radii imply tf-idf without "
    "normalisation. Both are shown. Errors are on the test rows; a row with w.x = 0 counts as "
    "wrong."
)


def _measured(
    data: Any, task: str, p: str, parameters: dict[str, Any]
) -> tuple[health.ExponentSpread, float, float]:
    """Return the exponents, the density and the test error of the model with the best rate."""
    density = 0.001 if task == "webspam" else parameters["density"]
    curves: list[Curve] = []
    for eta in sorted(parameters["eta"], reverse=True):
        estimator = MirrorDescentClassifier(
            p=p, eta0=eta, l1=parameters["lambda"], decay=1.0, fit_intercept=False
        )
        rows = data.X_train, data.y_train
        curves.append(by_rows(estimator, *rows, (density,), parameters["most scans"], seed=0))
        if not curves[-1].levels:
            break  # smaller rates are even sparser
    reached = [curve for curve in curves if curve.levels] or curves
    best = min(reached, key=lambda curve: curve.last_error(data.X_valid, data.y_valid))
    error = best.last_error(data.X_test, data.y_test)
    return health.exponents(best.last), 100 * best.density, error


def _table(found: Spreads, weighting: str, p: str) -> tuple[list[str], list[list[Any]]]:
    head = ["task", "within: paper", "ours", "mean: paper", "ours", "sd: paper", "ours"]
    rows = []
    for (task, kind, of), (spread, density, error) in found.items():
        if (kind, of) == (weighting, p):
            theirs = PUBLISHED[task][0 if p == "2ln" else 1]
            ours = spread.within, spread.mean, spread.std
            pairs = [value for pair in zip(theirs, ours, strict=True) for value in pair]
            rows.append([task, *pairs, density, error])
    return [*head, "density, %", "test error, %"], rows


def _picture(found: Spreads) -> Any:
    shown = list(dict.fromkeys(task for task, *_ in found))
    figure, all_axes = plt.subplots(
        -(-len(shown) // 3), min(3, len(shown)), figsize=(10, 3.0 * -(-len(shown) // 3) + 0.6),
        layout="constrained", squeeze=False, sharex=True,
    )  # fmt: skip
    for task, ax in zip(shown, all_axes.ravel(), strict=False):
        style.axes(ax)
        for number, p in enumerate(_NAMES):
            counts = found[task, RAW, p][0].counts
            at = np.array(list(counts))
            look = style.series(number)
            share = 100 * np.array(list(counts.values())) / sum(counts.values())
            ax.plot(at - at.max(), share, label=_NAMES[p], color=look["color"])
        ax.axvline(-51, color=style.SOFT, linestyle=":", label="limit of double precision")
        ax.set_title(task)
    for ax in all_axes[-1]:
        ax.set_xlabel("exponent less the largest")
    for ax in all_axes[:, 0]:
        ax.set_ylabel("share of weights, %")
    figure.legend(*all_axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _claims(record: Record, found: Spreads) -> None:
    least = 100 * record.parameters["density"]
    for weighting in (RAW, UNIT):
        shown = [
            task
            for task in dict.fromkeys(task for task, *_ in found)
            if min(found[task, weighting, p][1] for p in _NAMES) >= least
        ]  # that reached the density
        wide = [found[task, weighting, "2ln"] for task in shown]
        narrow = [found[task, weighting, "0.5ln"] for task in shown]
        lost = [(spread.within or 0.0) < 0.5 for spread, *_ in wide]
        kept = [(spread.within or 0.0) >= 0.97 for spread, *_ in narrow]
        better = [a[2] < b[2] for a, b in zip(narrow, wide, strict=True)]
        for text, paper, true, told in (
            (
                "With p = 2 ln d most weights are too small to be added to the largest",
                f"within: {tasks.span(PUBLISHED[task][0][0] for task in tasks.NEWSGROUPS)}",
                lost, "within: " + _within(wide),
            ),
            (
                "With p = 0.5 ln d nearly all weights can be added to it",
                f"within: {tasks.span(PUBLISHED[task][1][0] for task in tasks.NEWSGROUPS)}",
                kept, f"at least 0.97 in {sum(kept)} of {len(kept)} tasks; within: "
                + _within(narrow),
            ),
            (
                "Models with p = 0.5 ln d have the lower error", "in tasks 1 to 7 (Figure 5)",
                better, f"{sum(better)} of {len(better)} tasks; mean error {_mean(narrow)} "
                f"against {_mean(wide)}",
            ),
        ):  # fmt: skip
            record.claim(
                f"{text} ({weighting})",
                paper=paper,
                ours=told if shown else f"no model reaches {least:g} % density",
                verdict=verdict_of(float(np.mean(true))) if shown else "not tested",
            )


def _within(found: list[tuple[health.ExponentSpread, float, float]]) -> str:
    return tasks.span(spread.within for spread, *_ in found) if found else ""


def _mean(found: list[tuple[health.ExponentSpread, float, float]]) -> str:
    return f"{np.mean([error for *_, error in found]):.3g} %" if found else ""


if __name__ == "__main__":
    main(ABOUT, run)
