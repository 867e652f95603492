"""Results of a design as JSON; a later run adds repetitions."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from experiments.discovery.designs import Design
from experiments.record import ROOT

RESULTS = ROOT / "docs" / "results" / "discovery"


@dataclass
class Saved:
    """The runs of a design.

    Attributes
    ----------
    design : Design
    path : Path
    runs : list of dict
        See `measuring.measured`.
    """

    design: Design
    path: Path
    runs: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, design: Design, folder: Path = RESULTS) -> Self:
        """Return the results so far.

        Parameters
        ----------
        design : Design
        folder : Path
        """
        path = folder / f"{design.name}.json"
        runs = json.loads(path.read_text())["runs"] if path.exists() else []
        return cls(design, path, runs)

    def has(self, form: str, number: int) -> bool:
        """Return whether a form has a repetition."""
        return any(run["form"] == form and run["seed"] == number for run in self.runs)

    def of_form(self, form: str) -> list[dict[str, Any]]:
        """Return the runs of one form; those of "joint" are crossfits."""
        wanted = "crossfit" if form == "joint" else form
        return [run for run in self.runs if run["form"] == wanted]

    def write(self) -> None:
        """Write the results, one run in a line."""
        head = {"name": self.design.name, "title": self.design.title, "kind": self.design.kind}
        self.runs.sort(key=lambda run: (run["seed"], run["form"]))
        lines = ",\n".join(json.dumps(run) for run in self.runs)
        text = json.dumps(head)[:-1] + f', "runs": [\n{lines}\n]}}\n'
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(text)
        os.replace(unfinished, self.path)
