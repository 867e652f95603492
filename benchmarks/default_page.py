"""Writes docs/defaults.md from the results of `benchmarks/defaults.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from default_sets import CLASSIFICATION, REGRESSION, SCALINGS

_ONE = ", one pass"
_INTRO = """# How good the defaults are

`python benchmarks/defaults.py` makes this page. All learners have all their defaults. Rows of
training come in {orders} random orders; rows of test never change. A learner that takes more than
10 seconds is run in one order. Errors are means over the orders: the share of wrong classes, or
1 - R2 for regression. Sparse sets have rows of norm 1; columns of scikit-learn's and statsmodels'
sets are standardised; UCI tables are scaled to [0, 1]. Peers that search a grid by
cross-validation (LogisticRegressionCV with the l1 penalty and 3 folds; LassoCV) get at most 5000
training rows. Mirror descent leaves out sets with more than 20,000 features: its time grows with
them. Defaults of ours were chosen by cross-validation on training rows only
(`--folds`); see [decision 18](decisions/0018-automatic-rates.md).

Peers are of {versions}.
"VW, best of 8" has for each set the learning rate of 8 with the least test error, which a user
could not know. VW's weights count features that occur.

A ratio compares a learner with the best of all on the same set; half an error is added to the
number of wrong test rows, so that a perfect learner has no infinite ratio. Means are geometric.
"""


class Task:
    """The results of one task, with the rates of VW joined to their best.

    Sets without results of all learners are left out: the comparison was interrupted.
    """

    def __init__(self, task: str, whole: dict[str, Any]) -> None:
        self.task, self.whole = task, whole
        found = whole["results"].get(task, {})
        self.scaled = {name: result for name, result in found.items() if "@" in name}
        self.sets = {name: _with_best(result) for name, result in found.items() if "@" not in name}
        most = max((len(result) for result in self.sets.values()), default=0)
        self.sets = {name: result for name, result in self.sets.items() if len(result) == most}
        first = next(iter(self.sets.values()), {})
        self.keys = [k for k in first if not k.startswith("VW -l") and self.sets_of(k)]
        self.peers = [key for key in self.keys if not is_ours(key)]
        self.ours = [key for key in self.keys if is_ours(key)]

    def sets_of(self, *keys: str) -> list[str]:
        """Return the sets that all these learners have learned."""
        found = self.sets.items()
        return [name for name, result in found if all(result[key]["error"] for key in keys)]

    def error(self, name: str, key: str) -> float:
        """Return the mean error; infinity if the set was left out."""
        errors = self.sets[name][key]["error"]
        return float(np.mean(errors)) if errors else np.inf

    def smooth(self, name: str, key: str) -> float:
        """Return the mean error, with half an error added."""
        extra = 0.5 / self.whole["sizes"][name][2] if self.task == CLASSIFICATION else 1e-3
        return self.error(name, key) + extra

    def mean_ratio(self, key: str, other: str | None = None) -> float:
        """Return the geometric mean of ratios to another learner, or to the best of all."""
        ratios = []
        for name in self.sets_of(key, *([other] if other else [])):
            base = [self.smooth(name, k) for k in ([other] if other else self.keys)]
            ratios.append(self.smooth(name, key) / min(base))
        return float(np.exp(np.mean(np.log(ratios))))

    def best_peer(self) -> str:
        """Return the untuned peer with the least geometric mean."""
        untuned = [key for key in self.peers if "best of" not in key]
        return min(untuned, key=self.mean_ratio)

    def share(self, key: str) -> float:
        """Return the mean share of weights that are not zero."""
        shares = [
            np.mean(self.sets[name][key]["nonzeros"]) / self.whole["sizes"][name][1]
            for name in self.sets_of(key)
        ]
        return float(np.mean(shares))

    def seconds(self, key: str) -> float:
        """Return the seconds of one order of all sets."""
        return float(sum(np.mean(self.sets[name][key]["seconds"]) for name in self.sets_of(key)))


def is_ours(key: str) -> bool:
    """Return whether a learner is ours: names of rules have no capital letters."""
    name = key.removesuffix(_ONE)
    return name == name.lower() or name.startswith("Sparse")


def _with_best(result: dict[str, Any]) -> dict[str, Any]:
    rates = [key for key in result if key.startswith("VW")]
    if len(rates) < 2:
        return result
    best = min(rates, key=lambda key: np.mean(result[key]["error"]))
    surest = min(rates, key=lambda key: np.mean(result[key]["progressive"]))
    joined = {**result[best], "progressive": result[surest]["progressive"]}
    return {**result, f"VW, best of {len(rates)}{_ONE}": joined}


# ---- tables --------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _summary(task: Task) -> list[str]:
    peer = task.best_peer() if task.peers else None
    rows = []
    for key in sorted(task.keys, key=task.mean_ratio):
        ratios = {name: task.smooth(name, key) for name in task.sets}
        bests = {name: min(task.smooth(name, k) for k in task.keys) for name in task.sets}
        worst = max(task.sets_of(key), key=lambda name: ratios[name] / bests[name])
        rows.append((
            f"**{key}**" if is_ours(key) else key, f"{task.mean_ratio(key):.3f}",
            f"{task.mean_ratio(key, peer):.3f}" if peer else "",
            f"{ratios[worst] / bests[worst]:.2f} ({worst})", f"{100 * task.share(key):.0f}",
            f"{task.seconds(key):.1f}",
        ))  # fmt: skip
    said = [
        f"Over {len(task.sets)} sets; ours are bold. The best untuned peer is {peer}." if peer
        else f"Over {len(task.sets)} sets; ours are bold.",
        "",
    ]  # fmt: skip
    head = ("learner", "ratio to the best of all", f"ratio to {peer}", "worst ratio",
            "weights not zero, %", "seconds")  # fmt: skip
    return [*said, *_table(head, rows)]


def _against_vw(task: Task) -> list[str]:
    vw = f"VW{_ONE}"
    best = next((key for key in task.peers if "best of" in key), None)
    if vw not in task.keys:
        return ["VW was not installed.", ""]
    rows = []
    for key in task.ours:
        if not key.endswith(_ONE):
            continue
        row = [key.removesuffix(_ONE)]
        for other in (vw, best):
            if other is None:
                continue
            row += [_verdicts(task, key, other, "error"), f"{task.mean_ratio(key, other):.3f}"]
            row += [_verdicts(task, key, other, "progressive"), _progress_ratio(task, key, other)]
        rows.append(row)
    head = ["rule"]
    for other in ("VW", "best of 8")[: 2 if best else 1]:
        head += [f"{other}: error", "ratio", f"{other}: progressive loss", "ratio"]
    said = [
        "One pass: wins, ties and losses over the sets. A tie is a mean difference of at most one",
        "paired standard error over the orders. Progressive loss is the logistic or squared loss",
        "of each row before it was learned; rules with other losses have none.", "",
    ]  # fmt: skip
    return [*said, *_table(head, rows)]


def _verdicts(task: Task, key: str, other: str, measure: str) -> str:
    wins = ties = losses = 0
    for result in task.sets.values():
        a, b = (np.array(result[k][measure]) for k in (key, other))
        size = min(len(a), len(b))
        if size == 0:
            continue
        difference = a[:size] - b[:size]
        error = difference.std(ddof=1) / np.sqrt(size) if size > 1 else 0.0
        wins += difference.mean() < -error
        losses += difference.mean() > error
        ties += abs(difference.mean()) <= error
    return f"{wins} / {ties} / {losses}" if wins + ties + losses else ""


def _progress_ratio(task: Task, key: str, other: str) -> str:
    ratios = [
        np.mean(result[key]["progressive"]) / np.mean(result[other]["progressive"])
        for result in task.sets.values()
        if result[key]["progressive"] and result[other]["progressive"]
    ]
    return f"{np.exp(np.mean(np.log(ratios))):.3f}" if ratios else ""


def _by_set(task: Task, keys: Sequence[str], title: str) -> list[str]:
    rows = []
    for name in task.sets:
        errors = [100 * task.error(name, key) for key in keys]
        shape = task.whole["sizes"][name]
        rows.append([f"{name} ({shape[0]:,} x {shape[1]:,})", *map(_percent, errors)])
    return [f"### {title}", "", *_table(["set", *(k.removesuffix(_ONE) for k in keys)], rows)]


def _percent(value: float) -> str:
    if np.isinf(value):
        return ""
    return f"{value:.2f}" if value < 100 else f"{value:.3g}"


def _scalings(task: Task) -> list[str]:
    if not task.scaled:
        return []
    bases = sorted({name.split("@")[0] for name in task.scaled})
    scalings = [s for s in SCALINGS if any(name.endswith(f"@{s}") for name in task.scaled)]
    keys = [
        key for key in task.keys
        if all(key in result for result in task.scaled.values()) and "best of" not in key
    ]  # fmt: skip
    measure = "mean error in percent" if task.task == CLASSIFICATION else "mean R2"
    rows = []
    for key in keys:
        groups = [[task.sets[base][key] for base in bases]]
        groups += [[task.scaled[f"{base}@{s}"][key] for base in bases] for s in scalings]
        row = [f"**{key}**" if is_ours(key) else key]
        for group in groups:
            mean = float(np.mean([np.mean(found["error"]) for found in group]))
            value = f"{100 * mean:.1f}" if task.task == CLASSIFICATION else _r2(1 - mean)
            row.append(value + (" w" if any(found["warned"] for found in group) else ""))
        rows.append(row)
    return [
        f"### Scalings: {measure} over {', '.join(bases)}", "",
        '"w": there was a warning or an error on at least one set.', "",
        *_table(["learner", "as it is", *scalings], rows),
    ]  # fmt: skip


def _r2(value: float) -> str:
    return f"{value:.3f}" if value > -10 else f"{value:.2g}"


def page(whole: dict[str, Any]) -> str:
    """Return the page."""
    versions = ", ".join(f"{name} {version}" for name, version in whole["versions"].items())
    lines = [_INTRO.format(orders=whole["orders"], versions=versions)]
    for name, unit in ((CLASSIFICATION, "error in percent"), (REGRESSION, "1 - R2 in percent")):
        task = Task(name, whole)
        if not task.sets:
            continue
        one = [key for key in task.keys if key.endswith(_ONE)]
        many = [key for key in task.ours if not key.endswith(_ONE)]
        peers = [key for key in task.peers if not key.endswith(_ONE)]
        lines += [f"## {name.title()}", "", *_summary(task), *_against_vw(task)]
        lines += _by_set(task, one, f"One pass: {unit}")
        lines += _by_set(task, [*many, *peers], f"Default passes, and peers: {unit}")
        lines += _scalings(task)
    return "\n".join(lines).rstrip() + "\n"
