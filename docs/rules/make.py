"""Write the tables of the pages of the rules, and draw their pictures.

    python docs/rules/make.py tables
    python docs/rules/make.py pictures [RULE...]

Tables come from the table of rules in src/thresher/rules, docs/defaults.md and docs/rules.md. They
replace what stands between `<!-- NAME -->` and `<!-- end of NAME -->` in a page. A picture shows
models of the same generated rows for a range of the parameter that controls how sparse they are.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import thresher
from thresher.rules import RULES
from thresher.rules.parameter import Parameter

FOLDER = Path(__file__).resolve().parent
DOCS = FOLDER.parent

# --- tables --------------------------------------------------------------------------------------

PEERS = {"Classification": "LinearSVC", "Regression": "RidgeCV"}
# Lines of docs/rules.md: a rule with its defaults, or with a penalty chosen by cross-validation.
LINES = {
    "truncated-gradient": "truncated gradient, CV",
    "averaged-sgd": "averaged SGD (Dekel)",
    "forward-backward": "forward-backward, CV",
    "ftrl": "FTRL (default)",
    "dual-averaging": "dual averaging, CV",
    "margin-perceptron": "margin perceptron",
    "mirror-descent": "mirror descent",
    "stabilized": "stabilized (default)",
    "coordinate-descent": "coordinate descent, CV",
    "hard-threshold": "hard threshold",
}


def parameters(rule: str) -> str:
    """Return the table of the parameters of a rule."""
    lines = ["| parameter | symbol | default | meaning |", "|---|---|---|---|"]
    for name, parameter in RULES[rule].parameters.items():
        symbol = f"`{parameter.symbol}`" if parameter.symbol else ""
        default = _default(parameter, RULES[rule].tasks)
        lines.append(f"| `{name}` | {symbol} | {default} | {_meaning(rule, name, parameter)} |")
    return "\n".join(lines)


def _default(parameter: Parameter, tasks: tuple[Any, ...]) -> str:
    found = dict.fromkeys(repr(parameter.default_for(task)) for task in tasks)
    if len(found) == 1:
        return f"`{next(iter(found))}`"
    return "; ".join(f"`{value}` ({task})" for value, task in zip(found, tasks, strict=True))


def _meaning(rule: str, name: str, parameter: Parameter) -> str:
    words = parameter.help.split("`")  # every second piece is code, and stays as it is
    words[::2] = [re.sub(r"([*_<>|])", r"\\\1", piece) for piece in words[::2]]
    text = "`".join(words)
    if name == "loss":
        text += " One of " + ", ".join(f"`{loss}`" for loss in RULES[rule].losses) + "."
    return text + (" Classifiers only." if parameter.of_classifiers else "")


def measured(rule: str) -> str:
    """Return the lines of docs/defaults.md and docs/rules.md on a rule."""
    page = (DOCS / "defaults.md").read_text(encoding="utf-8")
    lines = [
        "With default parameters, from [defaults.md](../defaults.md): geometric means over the "
        "sets,\nin units of the error of the best untuned peer.",
        "",
        "| task | passes | error | weights not zero, % |",
        "|---|---|---|---|",
    ]
    for task, peer in PEERS.items():
        section = page.partition(f"\n## {task}\n")[2]
        table = section.partition("\n\nOne pass:")[0]
        sets = re.search(r"Over (\d+) sets", section)
        assert sets is not None
        for passes, name in (("default", rule), ("one", f"{rule}, one pass")):
            if not (cells := _line(table, f"**{name}**")):
                continue
            if rule == "one-pass":
                passes = "one, the default"
            elif rule in ("coordinate-descent", "hard-threshold"):
                passes = "until it has converged"
            about = f"{task.lower()}, {sets[1]} sets"
            lines.append(f"| {about} | {passes} | {cells[2]} ({peer} is 1) | {cells[4]} |")
    if rule not in LINES:
        return "\n".join(lines)
    lines += [
        "",
        f'From [rules.md](../rules.md), the lines "{LINES[rule]}"; kappa compares the weights of',
        "models that learned the rows in different orders.",
        "",
        "| data | error, % (sd) | weights | kappa | seconds |",
        "|---|---|---|---|---|",
    ]
    page = (DOCS / "rules.md").read_text(encoding="utf-8")
    for name, width, table in re.findall(
        r"\n## (\w+) \(([\d,]+) features\)\n(.*?)(?=\n## |$)", page, re.S
    ):
        cells = _line(table, LINES[rule])
        lines.append(f"| {name} ({width} features) | {' | '.join(cells[2:6])} |")
    return "\n".join(lines)


def _line(table: str, name: str) -> list[str]:
    """Return the cells of the line of a table that begins with a name; none: an empty list."""
    match = re.search(rf"^\| {re.escape(name)} \|.*$", table, re.M)
    return [cell.strip() for cell in match[0].split("|")[1:-1]] if match else []


def filled(rule: str, page: str) -> str:
    """Return a page with the current tables."""
    for name, table in {"parameters": parameters(rule), "measured": measured(rule)}.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        assert end, f"{rule}.md has no place for the table '{name}'"
        page = f"{before}{begin}\n{table}\n\n{end}{after}"
    return page


# --- pictures ------------------------------------------------------------------------------------


class Sweep(NamedTuple):
    """What a picture varies: an estimator, its fixed parameters, and values of one parameter."""

    estimator: str
    parameter: str
    values: list[Any]
    fixed: Mapping[str, Any] = MappingProxyType({})


def _geometric(low: float, high: float, count: int = 25) -> list[float]:
    return np.geomspace(low, high, count).tolist()


COUNTS = list(range(1, 31))
SWEEPS = {
    "truncated-gradient": Sweep("TruncatedGradientClassifier", "gravity", _geometric(1e-5, 0.3)),
    "averaged-sgd": Sweep("AveragedSGDClassifier", "alpha", _geometric(1e-3, 10)),
    "forward-backward": Sweep("ForwardBackwardClassifier", "l1", _geometric(1e-5, 0.3)),
    "ftrl": Sweep("FTRLClassifier", "l1", _geometric(0.1, 3000)),
    "one-pass": Sweep("OnePassClassifier", "target_nnz", COUNTS),
    "adagrad": Sweep("AdaGradClassifier", "l1", _geometric(1e-5, 0.3)),
    "dual-averaging": Sweep("DualAveragingClassifier", "l1", _geometric(1e-5, 0.3)),
    "margin-perceptron": Sweep(
        "MarginPerceptronClassifier", "l1", _geometric(1e-4, 0.1), {"shrink": "all"}
    ),
    "mirror-descent": Sweep(
        "MirrorDescentClassifier", "l1", _geometric(1e-5, 0.3), {"threshold": "scaled"}
    ),
    "stabilized": Sweep("StabilizedClassifier", "target_nnz", COUNTS),
    "coordinate-descent": Sweep("CoordinateDescentClassifier", "l1", _geometric(1e-5, 0.3)),
    "hard-threshold": Sweep("HardThresholdRegressor", "n_nonzero", COUNTS),
}
FEATURES, TRUE = 60, 6
EFFECTS = np.array([2.0, -1.6, 1.3, -1.0, 0.8, -0.6])


def rows(count: int, seed: int, numbers: bool) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return rows of 60 features, of which the first six have an effect, and their targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, FEATURES)) * (rng.random((count, FEATURES)) < 0.4)
    score = X[:, :TRUE] @ EFFECTS
    y = score + rng.normal(size=count) if numbers else score + rng.logistic(size=count) > 0
    return sp.csr_matrix(X), y


def path(rule: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (values x features) and the test errors of a sweep, in percent."""
    sweep = SWEEPS[rule]
    numbers = sweep.estimator.endswith("Regressor")
    X, y = rows(1500, 0, numbers)
    held_out = rows(20_000, 1, numbers)
    weights, errors = [], []
    for value in sweep.values:
        estimator = getattr(thresher, sweep.estimator)(**{sweep.parameter: value}, **sweep.fixed)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model without features is not a surprise here
            estimator.fit(X, y)
        weights.append(np.ravel(estimator.coef_))
        errors.append(100 * (1 - estimator.score(*held_out)))
    return np.array(weights), np.array(errors)


def draw(rule: str) -> None:
    """Draw the picture of a rule."""
    from matplotlib import pyplot as plt

    from thresher.plots.style import COLOURS, FAINT, axes

    sweep = SWEEPS[rule]
    weights, errors = path(rule)
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 2.9), layout="constrained")
    for panel in panels:
        axes(panel)
        panel.set_xlabel(sweep.parameter)
        if isinstance(sweep.values[0], float):
            panel.set_xscale("log")
    left, middle, right = panels
    left.plot(sweep.values, weights[:, TRUE:], color=FAINT, linewidth=0.7)
    for j in range(TRUE):
        left.plot(sweep.values, weights[:, j], color=COLOURS[0], linewidth=1.3)
    left.set_title("weights", fontsize="medium")
    kept = weights != 0
    middle.plot(sweep.values, kept[:, :TRUE].sum(axis=1), color=COLOURS[0], label="with effect")
    middle.plot(
        sweep.values, kept[:, TRUE:].sum(axis=1), color=COLOURS[1], linestyle="--", label="without"
    )
    middle.set_title("nonzero weights", fontsize="medium")
    middle.legend(frameon=False)
    right.plot(sweep.values, errors, color=COLOURS[0])
    numbers = sweep.estimator.endswith("Regressor")
    right.set_title(
        "1 - R2 on other rows, %" if numbers else "error on other rows, %", fontsize="medium"
    )
    right.set_ylim(0, 1.08 * errors.max())
    figure.savefig(FOLDER / f"{rule}.png", dpi=100, metadata={"Software": None})
    plt.close(figure)
    best = int(np.argmin(errors))
    kept_best = f"{kept[best, :TRUE].sum()} + {kept[best, TRUE:].sum()} weights"
    least = f"least error {errors[best]:.1f} % at {sweep.values[best]:.3g}"
    print(f"docs/rules/{rule}.png: {least}, with {kept_best}")


def main(what: str, *names: str) -> None:
    """Write tables or draw pictures."""
    if what == "tables":
        for rule in RULES:
            page = FOLDER / f"{rule}.md"
            page.write_text(filled(rule, page.read_text(encoding="utf-8")), encoding="utf-8")
        return
    import matplotlib as mpl

    mpl.use("Agg")
    for rule in names or RULES:
        draw(rule)


if __name__ == "__main__":
    main(*sys.argv[1:])
