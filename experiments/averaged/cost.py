"""Time of a step of averaged SGD against the number of features and of nonzeros in a row."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.averaged.dense import averaged
from experiments.record import About, Record, main, verdict_of
from thresher import AveragedSGDClassifier
from thresher.plots import style

ABOUT = About(
    name="cost",
    paper="Dekel 2017",
    shows="sections 3 and 4",
    title="T steps cost O(n + Tk): n features, k nonzeros in a row",
    parameters={
        "features": [1_000, 10_000, 100_000, 1_000_000],
        "k at which n varies": 50,
        "nonzeros": [10, 30, 100, 300, 1000],
        "n at which k varies": 100_000,
        "large k": 100,
        "rows": 20_000,
        "passes": 20,
        "dense steps": 40,
        "repeats": 5,
    },
    quick={
        "features": [1_000, 30_000],
        "nonzeros": [10, 100],
        "n at which k varies": 10_000,
        "large k": 10,
        "rows": 1_000,
        "passes": 10,
        "dense steps": 10,
        "repeats": 2,
    },
    seed=0,
)


def run(record: Record) -> None:
    """Measure both, with and without centring, and dense arithmetic for comparison."""
    chosen = record.parameters
    fixed_k, fixed_n = chosen["k at which n varies"], chosen["n at which k varies"]
    by_n = [[n, *_measure(record, n, fixed_k)] for n in chosen["features"]]
    by_k = [[k, *_measure(record, fixed_n, k)] for k in chosen["nonzeros"]]
    record.say(
        "Processor time of a step: the time of a fit of many passes over random rows, minus that "
        "of a fit of one pass, divided by the steps between; the minimum of several repeats. Both "
        "fits include the O(n) cost of making the model and reading it. Dense means NumPy, with "
        "two vectors of n in each step. Times depend on the machine, so claims are about slopes "
        "and ratios."
    )
    head = ["microseconds per step", "centred", "dense NumPy", "dense / sparse"]
    record.table(f"Against n, k = {fixed_k}", ["n", *head], [_shown(row) for row in by_n])
    record.table(f"Against k, n = {fixed_n:,}", ["k", *head], [_shown(row) for row in by_k])
    record.figure("Time of a step", _figure(by_n, by_k, fixed_k, fixed_n))
    _claims(record, np.array(by_n), np.array(by_k))


def _shown(row: list[float]) -> list[float]:
    return [int(row[0]), *(1e6 * seconds for seconds in row[1:]), row[3] / row[1]]


def _claims(record: Record, by_n: Any, by_k: Any) -> None:
    chosen = record.parameters
    plain, centred, dense = (_slope(by_n[:, 0], by_n[:, i]) for i in (1, 2, 3))
    decades = np.log10(by_n[-1, 0] / by_n[0, 0])
    grown = max(by_n[-1, i] / by_n[0, i] for i in (1, 2))
    record.claim(
        "a step's time does not depend on the number of features",
        paper="O(n + Tk), against O(Tn) of the simple implementation",
        ours=f"time ~ n^{plain:.2f} (centred n^{centred:.2f}; dense n^{dense:.2f}; criterion: "
        f"at most 0.15); {grown:.1f} times as long over {decades:.0f} decades of n",
        verdict=verdict_of(float(np.mean([plain <= 0.15, centred <= 0.15]))),
    )
    k = chosen["k at which n varies"]
    times = by_n[:, 3] / by_n[:, 1] / (by_n[:, 0] / k)
    record.claim(
        "dense arithmetic is slower by the order of n / k",
        paper="no number",
        ours=f"{times.min():.2g} to {times.max():.2g} times n / k (criterion: 0.1 to 10), k = {k}, "
        f"n up to {by_n[-1, 0]:,.0f}",
        verdict=verdict_of(float(np.mean((times > 0.1) & (times < 10)))),
    )
    large = by_k[by_k[:, 0] >= chosen["large k"]]
    of_k = [_slope(large[:, 0], large[:, i]) for i in (1, 2)]
    record.claim(
        "a step's time is linear in the nonzeros of a row",
        paper="O(n + Tk)",
        ours=f"from k = {chosen['large k']} on time ~ k^{of_k[0]:.2f}, centred k^{of_k[1]:.2f} "
        "(criterion: 0.5 to 1.15)",
        verdict=verdict_of(float(np.mean([0.5 <= slope <= 1.15 for slope in of_k]))),
    )
    extra = np.r_[by_n[:, 2] / by_n[:, 1], by_k[:, 2] / by_k[:, 1]]
    record.claim(
        "centring costs a constant factor, not dense rows",
        paper="the same O(n + Tk)",
        ours=f"{extra.min():.2f} to {extra.max():.2f} times the time without, over n and k "
        "(criterion: at most 3)",
        verdict=verdict_of(float(np.mean(extra <= 3))),
    )


def _slope(x: Any, y: Any) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _measure(record: Record, features: int, nonzeros: int) -> tuple[float, float, float]:
    """Return seconds of a step: plain, centred, dense."""
    chosen, steps = record.parameters, record.parameters["rows"]
    rng = np.random.default_rng(record.seed)
    at = rng.integers(0, features, (steps, nonzeros), dtype=np.int32)
    at.sort(axis=1)
    values = rng.standard_normal(at.size).astype(np.float32) / np.float32(np.sqrt(nonzeros))
    ends = np.arange(0, at.size + 1, nonzeros, dtype=np.int32)
    X = sp.csr_matrix((values, at.ravel(), ends), (steps, features))
    X.sum_duplicates()
    y = np.where(rng.random(steps) < 0.5, 1.0, -1.0)
    record.uses(f"random rows, n = {features:,}, k = {nonzeros}", X, y)
    sparse = [_step(X, y, center, chosen) for center in (False, True)]
    few = chosen["dense steps"]
    rows = X[:few].toarray().astype(np.float64)
    dense = _least(2, lambda: averaged(rows, y[:few], loss="logistic", alpha=0.01)) / few
    return sparse[0], sparse[1], dense


def _step(X: Any, y: Any, center: bool, chosen: dict[str, Any]) -> float:
    learner = AveragedSGDClassifier(alpha=0.01, center=center, shuffle=False, tol=None)

    def seconds(passes: int) -> float:
        learner.set_params(passes=passes)
        return _least(chosen["repeats"], lambda: learner.fit(X, y))

    passes = chosen["passes"]
    return max(seconds(1 + passes) - seconds(1), 1e-9) / (passes * y.size)


def _least(repeats: int, what: Callable[[], Any]) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        what()
        times.append(time.process_time() - began)
    return min(times)


def _figure(by_n: Any, by_k: Any, fixed_k: int, fixed_n: int) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
    shown = (
        (by_n, f"features n (k = {fixed_k})"),
        (by_k, f"nonzeros of a row k (n = {fixed_n:,})"),
    )
    for ax, (rows, label) in zip(axes, shown, strict=True):
        style.axes(ax)
        for number, name in enumerate(("averaged", "averaged, centred", "dense NumPy")):
            times = [row[number + 1] * 1e6 for row in rows]
            ax.plot([row[0] for row in rows], times, label=name, **style.series(number))
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(label)
    axes[0].set_ylabel("microseconds per step")
    axes[0].legend(frameon=False)
    return figure


if __name__ == "__main__":
    main(ABOUT, run)
