"""Draw docs/plots/front.png, the picture of the README, from results that are in the repository.

    python docs/plots/front.py

Left: the errors of docs/defaults.md. Right: the shares of docs/discovery_results.md.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from thresher.plots.style import COLOURS, FAINT, SOFT, axes

ROOT = Path(__file__).resolve().parents[2]
LEARNERS = {  # names in defaults.json, and words for them
    "VW, one pass": "Vowpal Wabbit,\none pass",
    "VW, best of 8, one pass": "Vowpal Wabbit, best of 8\nrates by test error",
    "LinearSVC": "LinearSVC,\nmany passes",
    "one-pass, one pass": "OnePassClassifier,\none pass",
}
STATED = (0.05, 0.1, 0.2)


def ratios() -> dict[str, float]:
    """Return the geometric mean of each learner's error in units of the best of all on a set."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from default_page import Task

    saved = json.loads((ROOT / "benchmarks" / "results" / "defaults.json").read_text())
    task = Task("classification", saved)
    return {who: task.mean_ratio(who) for who in LEARNERS}


def shares(kind: str) -> list[float]:
    """Return the mean share of false features over the real rows, for each stated share."""
    designs = []
    for file in sorted((ROOT / "docs" / "results" / "discovery").glob("*.json")):
        saved = json.loads(file.read_text())
        if saved.get("kind") != "real":
            continue
        runs = [run for run in saved["runs"] if run["form"] == kind]
        if runs:
            designs.append([np.mean([share(run, stated) for run in runs]) for stated in STATED])
    return np.mean(designs, axis=0).tolist()


def share(run: dict[str, Any], stated: float) -> float:
    """Return the share of false features in one run."""
    selected, false = run["counts"][f"fdr {stated}"]
    return false / selected if selected else 0.0


def main() -> None:
    """Draw both panels."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.2), layout="constrained", width_ratios=(1.25, 1)
    )
    axes(left)
    found = ratios()
    for place, who in enumerate(LEARNERS):
        ours = who.startswith("one-pass")
        left.barh(place, found[who] - 1, left=1, color=COLOURS[0] if ours else FAINT, height=0.62)
        left.text(found[who] + 0.02, place, f"{found[who]:.2f}", va="center")
    left.set_yticks(range(len(LEARNERS)), list(LEARNERS.values()))
    left.set_xlim(1, 2.05)
    left.grid(axis="y", visible=False)
    left.set_xlabel("error, in units of the best learner (1.00)")
    left.set_title("Error on 25 data sets, geometric mean", fontsize="medium")

    axes(right)
    right.plot([0, 0.22], [0, 0.22], color=SOFT, linestyle=":", label="as stated")
    for name, place in (("crossfit", 0), ("stream", 1)):
        marker = "os"[place]
        right.plot(STATED, shares(name), color=COLOURS[place], marker=marker, label=name)
    right.set(xlim=(0, 0.22), ylim=(0, 0.22))
    right.set_xlabel("stated share of false features")
    right.set_ylabel("actual share")
    right.set_title("FeatureDiscovery, on real rows", fontsize="medium")
    right.legend(frameon=False, loc="upper left")
    figure.savefig(ROOT / "docs" / "plots" / "front.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
