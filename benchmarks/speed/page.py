"""Writes the table into docs/speed.md, between two marks; the text around them is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from speed import table
from speed.results import ROOT, results_in, version_of

PAGE = ROOT / "docs" / "speed.md"
PICTURE = ROOT / "docs" / "plots" / "speed-history.svg"
HISTORY = ("![The ratios of all versions that were measured](plots/speed-history.svg)", "")
BEGIN, END = "<!-- made by make bench-full -->", "<!-- end of what make bench-full makes -->"


def section(kept: dict[str, Any]) -> str:
    """Return the table with what one needs to know to judge it."""
    place, caches = kept["machine"], kept["machine"]["caches"]
    peers = [f"{name} {version}" for name, version in kept["peers"].items()]
    sizes = "`make bench-full`" if kept["full"] else "`make bench` (small sizes)"
    facts = {
        "Machine": f"{place['cpu']}, {place['cores']} cores, {place['memory_gib']} GiB of memory",
        "Caches": ", ".join(f"{name} {size}" for name, size in caches.items()) or "unknown",
        "Instruction sets": ", ".join(place["instruction_sets"]) or "unknown",
        "Thresher": f"{version_of(kept)}, Python {place['python']}",
        "Peers": ", ".join(peers),
        "Measured": f"{kept['date'][:10]}, {sizes}",
    }
    results = results_in(kept)
    return "\n".join(
        [
            BEGIN,
            "",
            *(f"- {name}: {value}" for name, value in facts.items()),
            "",
            table.markdown(results),
            "",
            f"{table.summary(results)}.",
            "",
            *(HISTORY if PICTURE.exists() else ()),
            END,
        ]
    )


def write_page(kept: dict[str, Any], page: Path = PAGE) -> None:
    """Replace the part between the marks.

    Raises ValueError if the page has no marks.
    """
    old = page.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(old):
        raise ValueError(f"{page} has no lines {BEGIN!r} and {END!r} around the table")
    page.write_text(pattern.sub(lambda _: section(kept), old), encoding="utf-8")
