"""The version is the same in all files: `python version.py [--tag v0.2.0]`.

It needs only Python: the workflow of a release runs it before it builds anything.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "src/thresher/_version.py": r'^__version__ = "(.+)"$',
    "CHANGELOG.md": r"^## \[(\d.+?)\] - \d{4}-\d\d-\d\d$",
    "CITATION.cff": r"^version: (.+)$",
}


def versions(root: Path) -> dict[str, str]:
    """Return the first version that each file states; an empty text if there is none."""
    found = {}
    for name, pattern in PLACES.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else ""
    return found


def dates(root: Path) -> set[str]:
    """Return the dates of the newest version in the changelog and in the citation."""
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    first = re.search(r"^## \[\d.*?\] - (\S+)$", changelog, re.MULTILINE)
    released = re.search(r'^date-released: "(.+)"$', citation, re.MULTILINE)
    return {match[1] if match else "" for match in (first, released)}


def problem(root: Path, tag: str | None = None) -> str:
    """Return what does not agree, or an empty text."""
    found = versions(root)
    if tag is not None:
        found["the tag"] = tag.removeprefix("v")
    if len(set(found.values())) > 1:
        return "the versions differ: " + ", ".join(f"{k}: {v or 'none'}" for k, v in found.items())
    if len(dates(root)) > 1:
        return f"the dates in CHANGELOG.md and CITATION.cff differ: {sorted(dates(root))}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if tag is not None and "## [Unreleased]" in changelog:
        return "CHANGELOG.md has entries under [Unreleased]"
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="the tag of the release")
    sys.exit(problem(ROOT, parser.parse_args().tag))
