"""The results of an experiment: numbers, parameters, seed, digests of the data, plots, verdicts.

The script of an experiment describes it in `About`, runs it in a function that takes a `Record`,
and ends with ``main(ABOUT, run)``::

    ABOUT = About("burst_sparsity", paper="Ma, Zheng 2017", shows="section 2", parameters={...})

    def run(record: Record) -> None:
        data = datasets.load("dexter_scaled")
        record.uses("dexter_scaled", data.X_train, data.y_train, data.X_test, data.y_test)
        ...
        record.table("Nonzeros", ["K", "nonzeros %"], rows)
        record.figure("Nonzeros against K", figure)
        record.claim("A smaller K ...", paper="...", ours="...", verdict=verdict_of(share))

A verdict is computed from the numbers by one function, `verdict_of`, and never written by hand. A
statement that cannot fail, such as a definition or a theorem, is not a claim: `say` it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"

Verdict = Literal["holds", "holds in part", "does not hold", "not tested"]


@dataclass(frozen=True)
class About:
    """The description of an experiment.

    Attributes
    ----------
    name : str
        Name of its module, without the folder.
    paper : str
        Authors and year.
    shows : str
        Number of the table or figure in the paper.
    title : str
        The question, in a line.
    parameters : mapping
        All choices that could have been different.
    quick : mapping
        Parameters that a quick run changes.
    seed : int
    """

    name: str
    paper: str
    shows: str
    title: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


class Record:
    """The results of an experiment, to be written as JSON and plots.

    Parameters
    ----------
    about : About
    folder : Path
        Folder for the results.
    quick : bool
        Whether this is a run with little data, to check that the script works.
    only : sequence of str
        Names of the lines to measure again; empty: all. Others are those of the last run.
    """

    def __init__(
        self, about: About, folder: Path, quick: bool = False, only: Sequence[str] = ()
    ) -> None:
        self.about, self.folder, self.quick, self.only = about, folder, quick, tuple(only)
        self.module = modules().get(about.name, about.name)
        self.parameters = {**about.parameters, **(about.quick if quick else {})}
        self.seed = about.seed
        self._data: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []  # tables, plots and texts, in their order
        self._claims: list[dict[str, Any]] = []
        self._pictures: list[tuple[str, Any]] = []
        self._lines: dict[str, Any] = {}
        self._began = time.monotonic()

    def line(self, name: str, where: str, measured: Callable[[], Any]) -> Any:
        """Return the numbers of a line of a table: measured now, or by the last run.

        Parameters
        ----------
        name : str
            A name for `only`.
        where : str
            The data set, and what else the numbers depend on.
        measured : callable
            Returns numbers that JSON can hold.
        """
        key = f"{where}: {name}"
        if self.only and name not in self.only:
            path = self.folder / f"{self.about.name}.json"
            last = json.loads(path.read_text()) if path.exists() else {}
            same = all(last.get("data", {}).get(n) == data for n, data in self._data.items())
            if key not in last.get("lines", {}) or not same or last["quick"] != self.quick:
                raise ValueError(f"{path} has no line {key!r} of this data; run without --only")
            self._lines[key] = last["lines"][key]
        else:
            self._lines[key] = measured()
        return self._lines[key]

    def uses(self, name: str, *arrays: Any) -> None:
        """Store the shape and a digest of data.

        Parameters
        ----------
        name : str
        *arrays : array or CSR matrix
            All training and test data.
        """
        digest, shapes = hashlib.sha256(), []
        for array in arrays:
            parts = (array.indptr, array.indices, array.data) if hasattr(array, "indptr") else ()
            for part in parts or (np.asarray(array),):
                digest.update(np.ascontiguousarray(part).tobytes())
            shapes.append(" x ".join(f"{n:,}" for n in array.shape))
        self._data[name] = {"shapes": shapes, "sha256": digest.hexdigest()[:16]}

    def say(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append({"kind": "text", "text": text})

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table.

        Parameters
        ----------
        title : str
        head : sequence of str
        rows : sequence of sequence
            The JSON has the numbers in full; the page shortens them.
        """
        lines = [[_plain(cell) for cell in row] for row in rows]
        self._parts.append({"kind": "table", "title": title, "head": list(head), "rows": lines})

    def figure(self, title: str, figure: Any) -> None:
        """Add a plot.

        Parameters
        ----------
        title : str
        figure : matplotlib Figure
        """
        file = f"{self.about.name}-{len(self._pictures) + 1}.png"
        self._pictures.append((file, figure))
        self._parts.append({"kind": "figure", "title": title, "file": file})

    def claim(
        self, text: str, *, paper: str, ours: str, verdict: Verdict, own: bool = False
    ) -> None:
        """Add a claim of the paper, our result, and whether the claim holds.

        Parameters
        ----------
        text : str
            The claim, in a sentence.
        paper, ours : str
            The paper's numbers, and ours.
        verdict : {"holds", "holds in part", "does not hold", "not tested"}
        own : bool
            Whether the statement is ours and in no paper (a variant, a control). These are counted
            separately.
        """
        claim = {"claim": text, "paper": paper, "ours": ours, "verdict": verdict, "own": own}
        self._claims.append(claim)

    def save(self) -> Path:
        """Write plots, then the JSON that names them; return its path.

        Plots of an earlier run that this run did not make are removed.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        made = {file for file, _ in self._pictures}
        for old in self.folder.glob(f"{self.about.name}-[0-9]*.png"):
            if old.name not in made:
                old.unlink()
        for file, figure in self._pictures:
            figure.savefig(self.folder / file, dpi=110, metadata={"Software": None})
        about = self.about
        facts = {
            "name": about.name,
            "module": self.module,
            "paper": about.paper,
            "shows": about.shows,
            "title": about.title,
            "quick": self.quick,
            "parameters": {name: _plain(value) for name, value in self.parameters.items()},
            "seed": self.seed,
            "data": self._data,
            "seconds": round(time.monotonic() - self._began, 1),
            "claims": self._claims,
            "parts": self._parts,
        }
        if self._lines:
            facts["lines"] = self._lines
        path = self.folder / f"{about.name}.json"
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False))
        os.replace(unfinished, path)
        return path


def modules() -> dict[str, str]:
    """Return the modules of all experiments, by name."""
    return {
        path.stem: f"experiments.{path.parent.name}.{path.stem}"
        for path in sorted(ROOT.glob("experiments/*/*.py"))
        if "\nABOUT = " in path.read_text()
    }


def verdict_of(share: float) -> Verdict:
    """Return the verdict on a claim that was true in a share of the cases.

    All cases: it holds; at least half: it holds in part; fewer: it does not hold. A claim that
    something happens "often" or "on the whole" is one case, true if it happened in more than half.

    Parameters
    ----------
    share : float
        Share of the cases in which it was true.

    Examples
    --------
    >>> [verdict_of(share) for share in (1.0, 0.5, 0.4)]
    ['holds', 'holds in part', 'does not hold']
    """
    return "holds" if share >= 1.0 else "holds in part" if share >= 0.5 else "does not hold"


def main(about: About, run: Callable[[Record], None]) -> None:
    """Run one experiment as a script: ``--quick``, ``--out FOLDER``, ``--only LINE ...``.

    Parameters
    ----------
    about : About
    run : callable
    """
    parser = argparse.ArgumentParser(description=f"{about.title} ({about.paper}, {about.shows}).")
    parser.add_argument(
        "--quick", action="store_true", help="little data, to check that the script works"
    )
    parser.add_argument(
        "--out", type=Path, default=RESULTS, metavar="FOLDER", help="default: docs/results"
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        metavar="LINE",
        help="measure only these lines of the tables; the last run has the others (experiments "
        "that keep their lines in the JSON)",
    )
    options = parser.parse_args()
    os.environ.setdefault("MPLBACKEND", "Agg")  # plots go to files
    record = Record(about, options.out, options.quick, options.only)
    run(record)
    print(record.save())


def _plain(value: Any) -> Any:
    """Return a value for JSON; numbers that are not finite become None."""
    if isinstance(value, (np.generic,)):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
