"""Other methods on the same rows: ``python -m experiments.discovery.comparing [--knockpy DIR]``."""

from __future__ import annotations

import argparse
import json
import os
import zlib
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_library, "1")

import numpy as np

from experiments.discovery import others
from experiments.discovery.designs import all_designs
from experiments.discovery.measuring import shares
from experiments.discovery.saved import RESULTS, Saved

NAME = "other_methods.json"
KEY = f"fdr {others.LEVEL:g}"


def run(name: str, repetitions: int, knockpy: str | None) -> list[dict[str, Any]]:
    """Run all methods on the first repetitions of a design.

    Parameters
    ----------
    name : str
        Of a design.
    repetitions : int
    knockpy : str or None
        Folder of the package knockpy.
    """
    design = next(one for one in all_designs() if one.name == name)
    found = []
    for number in range(repetitions):
        rng = np.random.default_rng([number, zlib.crc32(name.encode())])
        drawn = design.draw(rng)
        counts = others.compared(drawn, knockpy if number < 5 else None)  # knockoffs are slow
        found.append({"seed": number, "true": int(drawn.true.sum()), "counts": counts})
    return found


def lines(folder: Path = RESULTS) -> list[str]:
    """Return the table, with FeatureDiscovery first; nothing if there are no results."""
    path = folder / NAME
    if not path.exists():
        return []
    saved = json.loads(path.read_text())
    methods = ["Benjamini-Hochberg", "knockoffs", "stability selection", "l1, cross-validation"]
    head = ["", "crossfit", "joint", "stream", *methods]
    found = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for design in all_designs():
        if design.name not in saved:
            continue
        cells = []
        own = Saved.of(design, folder)
        for form in ("crossfit", "joint", "stream"):
            runs = own.of_form(form)
            cells.append(_cell(runs, KEY, "joint" if form == "joint" else "counts"))
        for method in methods:
            runs = [run for run in saved[design.name] if method in run["counts"]]
            cells.append(_cell(runs, method, "counts"))
        found.append(f"| {design.title} | {' | '.join(cells)} |")
    return found


def _cell(runs: list[dict[str, Any]], key: str, counts: str) -> str:
    if not runs:
        return "not run"
    share, error, power = shares(runs, key, counts)
    return f"{share:.2f} ({error:.2f}) / {power:.2f}"


def main() -> None:
    """Run all methods, and save the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(others.DESIGNS))
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--knockpy", metavar="FOLDER", help="where knockpy is installed")
    options = parser.parse_args()
    path = RESULTS / NAME
    for name in options.names:
        found = run(name, options.repetitions, options.knockpy)
        saved = json.loads(path.read_text()) if path.exists() else {}
        saved[name] = found
        path.write_text(json.dumps(saved, indent=0))
        print(name, flush=True)


if __name__ == "__main__":
    main()
