"""Write docs/results.md from the JSON of all experiments: `python -m experiments.results`."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from textwrap import fill
from typing import Any, get_args

from experiments.record import RESULTS, ROOT, Verdict

_VERDICTS = get_args(Verdict)
_LEAD = """# Results of the papers, reproduced

A script in `experiments/` reproduces each table and figure of the papers. `make experiments` runs
all scripts and writes this page.

The scripts compute each verdict from the numbers, by one rule. A claim holds if it is true in all
cases tried. It holds in part if it is true in at least half of them; otherwise it does not hold. A
claim that something happens "often" or "on the whole" holds if it happens in more than half of the
cases.

Statements marked *own* are in no paper: they are our variants and controls of the papers'
experiments, and are counted separately. `docs/results/` has the plots, and the numbers as JSON with
parameters, seed and digests of the data.
"""


def page(folder: Path = RESULTS) -> str:
    """Return the page.

    Parameters
    ----------
    folder : Path
        Of the JSON files.
    """
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    found.sort(key=lambda one: (_year(one), one["paper"], _number(one), one["name"]))
    claims = [claim for one in found for claim in one["claims"]]
    papers = _count("The papers' claims", [claim for claim in claims if not claim.get("own")])
    own = _count("Own statements", [claim for claim in claims if claim.get("own")])
    lines = [_LEAD, "## Claims", "", papers, "", own]
    for paper in dict.fromkeys(one["paper"] for one in found):
        lines += ["", f"**{paper}**", ""]
        lines += [
            "| where | claim | the paper's numbers | ours | verdict |",
            "|---|---|---|---|---|",
        ]
        for one in found:
            where = f"[{one['shows']}](#{anchor(heading(one))})"
            lines += [_claim(where, claim) for claim in one["claims"] if one["paper"] == paper]
    for one in found:
        lines += ["", f"## {heading(one)}", "", *_section(one)]
    return "\n".join(lines) + "\n"


def _count(what: str, claims: list[dict[str, Any]]) -> str:
    """Return the number of claims with each verdict, in a line."""
    verdicts = Counter(claim["verdict"] for claim in claims)
    said = ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in _VERDICTS)
    return f"{what}: {len(claims)} ({said})."


def _claim(where: str, claim: dict[str, Any]) -> str:
    text = f"*own:* {claim['claim']}" if claim.get("own") else claim["claim"]
    told = (text, claim["paper"], claim["ours"], f"**{claim['verdict']}**")
    return f"| {' | '.join(map(_cell, (where, *told)))} |"


def _year(one: dict[str, Any]) -> int:
    return int(one["paper"].split()[-1])


def _number(one: dict[str, Any]) -> tuple[str, int]:
    """Return the sort key of a table or a figure: its kind, and its first number."""
    kind, *rest = one["shows"].replace(",", " ").split()
    return kind.rstrip("s"), int(next((word for word in rest if word.isdecimal()), 0))


def heading(one: dict[str, Any]) -> str:
    """Return the heading of an experiment.

    Parameters
    ----------
    one : dict
    """
    return f"{one['paper']}, {one['shows']}: {one['title']}"


def anchor(text: str) -> str:
    """Return the anchor that GitHub gives a heading.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> anchor("Ma, Zheng 2017, Table 2: error")
    'ma-zheng-2017-table-2-error'
    """
    kept = "".join(c for c in text.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _section(one: dict[str, Any]) -> list[str]:
    lines = ["A quick run, with little data.", ""] if one["quick"] else []
    for part in one["parts"]:
        if part["kind"] == "text":
            lines += [fill(part["text"], 100, break_on_hyphens=False), ""]
        elif part["kind"] == "figure":
            lines += [f"![{part['title']}](results/{part['file']})", ""]
        else:
            lines += [f"{part['title']}:", "", f"| {' | '.join(part['head'])} |"]
            lines.append("|---" * len(part["head"]) + "|")
            lines += [f"| {' | '.join(map(_cell, row))} |" for row in part["rows"]]
            lines.append("")
    chosen = {name: value for name, value in one["parameters"].items() if value is not None}
    told = ", ".join(f"{name} = {_cell(value)}" for name, value in chosen.items())
    data = "; ".join(
        f"{name} ({', '.join(facts['shapes'])}; {facts['sha256']})"
        for name, facts in one["data"].items()
    )
    lines.append(f"`python -m {one['module']}`; seed {one['seed']}; {told}. Data: {data}.")
    return lines


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_cell, value))}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def build(folder: Path = RESULTS, to: Path = ROOT / "docs" / "results.md") -> None:
    """Write the page.

    Parameters
    ----------
    folder : Path
        Of the JSON files.
    to : Path
    """
    unfinished = to.with_suffix(".unfinished")
    unfinished.write_text(page(folder))
    os.replace(unfinished, to)


if __name__ == "__main__":
    build()
