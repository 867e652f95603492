"""Makes records from docs/reliability.md, of kinds that have none: build/ is not kept with it.

So the counts of earlier runs are not lost, and a run goes on where they ended.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from reliability import records, report, suites


def restore(folder: Path, page: Path) -> None:
    """Write the records that the page has and the folder has not."""
    text = page.read_text() if page.exists() else ""
    found = {kind: _record(kind, text) for kind in report.LINES}
    for kind, record in {**found, "coverage": _coverage(text)}.items():
        if record and records.read(kind, folder) is None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{kind}.json").write_text(json.dumps(record, indent=1) + "\n")


def _record(kind: str, text: str) -> dict[str, Any] | None:
    what = re.escape(report.LINES[kind][0])
    counts = re.search(rf"^\| {what} \|.*\| ([\d,]+) \| ([\d,]+) \| (.*) \|$", text, re.M)
    if counts is None:
        return None
    tried, failed = _number(counts[1]), _number(counts[2])
    record = {"since": counts[3], "failures": re.findall(rf"^- {what}: `(.*)`$", text, re.M)}
    if kind == "faults":
        return {**record, **_points(text, tried, failed)}
    done = _files(kind, text) if kind in report.SUITES else {"tried": tried}
    return {**record, "tried": tried, "failed": failed, "done": done}


def _points(text: str, tried: int, failed: int) -> dict[str, Any]:
    """Return the counts of failing calls, with those that nanobind cannot survive."""
    known = re.search(r"^([\d,]+) more calls are not counted", text, re.M)
    rest = re.search(r"^Not all calls were tried: of (\d+) pairs .*,\n(\d+) are", text, re.M)
    others = _number(known[1]) if known else 0
    pairs, unfinished = (int(rest[1]), int(rest[2])) if rest else (0, 0)
    points = {"points": tried + others, "wrong": failed + others, "known": others}
    return {**points, "unfinished": unfinished, "pairs": pairs, "only_counts": True}


def _files(kind: str, text: str) -> dict[str, int]:
    """Return the files with tests that ran; all, if the page lists none."""
    files = suites.test_files(*report.SUITES[kind])
    listed = re.search(rf"^{report.LINES[kind][0]}: .* namely\n((?:.+\n)+)", text, re.M)
    if listed is None:
        return dict.fromkeys(files, 0)
    names = set(re.findall(r"`(.+?)`", listed[1]))
    return {file: 0 for file in files if names & {file, str(Path(file).parent)}}


def _coverage(text: str) -> dict[str, Any]:
    lines = re.findall(r"^\| (.+) \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.M)
    shares = {part: (float(some) / 100, float(other) / 100) for part, some, other in lines}
    found = {part: dict(zip(("lines", "branches"), of, strict=True)) for part, of in shares.items()}
    return {**found, "of_page": True} if found else {}


def _number(text: str) -> int:
    return int(text.replace(",", ""))
