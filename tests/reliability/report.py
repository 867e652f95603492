"""Writes docs/reliability.md from the records in build/reliability."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reliability import records

PAGE = records.ROOT / "docs" / "reliability.md"

# Kind of record, what was tried, and what must hold.
LINES = {
    "kills": ("SIGKILL during `thresher train`", "the resumed run writes the same bytes"),
    "interrupts": ("SIGINT during `thresher train`", "a checkpoint; then the same bytes"),
    "terminations": ("SIGTERM during `thresher train`", "a checkpoint; then the same bytes"),
    "faults": ("failing calls of the system", "an error, the old file, no half of a new one"),
    "power": ("power cuts: prefixes of writes", "models and checkpoints can be read"),
    "hostile": ("models and checkpoints with changed bytes", "an error that names the file"),
    "fuzz_svmlight": ("fuzzed svmlight files", "each line is read, skipped or named as bad"),
    "fuzz_vw": ("fuzzed VW files", "the same, and all levels of the parser agree"),
    "fuzz_cache": ("fuzzed caches", "refused, or each block can be read"),
    "fuzz_model": ("fuzzed model files", "refused, or they predict and stay the same"),
    "fuzz_checkpoint": ("fuzzed checkpoints", "refused, or unchanged when written again"),
    "fuzz_unpacking": ("fuzzed compressed files", "the bytes of Python's modules, or an error"),
    "differential": ("VW lines, against a naive parser", "the same rows and bad lines"),
    "differential_vw": ("VW lines, against VW's own parser", "the same labels, weights and sums"),
    "properties": ("long property tests", "they pass"),
    "sanitize": ("tests, address and undefined sanitizers", "they pass, without a report"),
    "race": ("tests, thread sanitizer", "they pass, without a report"),
}

HEAD = """# Reliability: what was tried, and what failed

`make soak` writes this page. It ends training by signals, damages files, lets calls of the system
fail, generates inputs, and runs the tests with sanitizers, and it counts. It takes a night, and
goes on where an earlier run ended. `make test` runs a small part of each.

"""

TAIL = """
"Tried" and "failed" count from the version in the last column. A failure that was mended stays in
the count, except of failing calls, which are tried again. `make coverage` measures which lines and
branches the tests run; `make faults`, `make race`, `make sanitize` and `make fuzz` run one kind
each.
"""


def numbers(record: dict[str, Any]) -> tuple[int, int]:
    """Return what was tried and what failed; some records have other names for them."""
    tried = record.get("tried", record.get("points", record.get("prefixes")))
    failed = record.get("failed", record.get("wrong"))
    assert isinstance(tried, int)
    assert isinstance(failed, int)
    known = record.get("known", 0)
    return tried - known, failed - known


def table(folder: Path) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| what | what must hold | tried | failed | since |"
    yield "|---|---|---:|---:|---|"
    for kind, (what, holds) in LINES.items():
        record = records.read(kind, folder)
        if record is None:
            yield f"| {what} | {holds} | not run | | |"
            continue
        tried, failed = numbers(record)
        since = record.get("since", "")
        yield f"| {what} | {holds} | {tried:,} | {failed:,} | {since} |"
    record = records.read("faults", folder) or {}
    if known := record.get("known"):
        yield ""
        yield f"At {known:,} other points, nanobind has no memory for its table of objects and ends"
        yield "the process; its functions may not throw there."
    if unfinished := record.get("unfinished"):
        yield ""
        pairs = sum(len(one["faults"]) for one in record["operations"].values())
        yield f"The failing calls are not all: {unfinished} of {pairs} pairs of an operation and a"
        yield "fault have calls that were not tried."


def coverage(folder: Path) -> Iterator[str]:
    """Yield the lines about coverage."""
    yield ""
    yield "| coverage by the tests | lines | branches |"
    yield "|---|---:|---:|"
    record = records.read("coverage", folder) or {}
    for part in ("C++", "C++ readers and writers", "Python"):
        if part in record:
            lines, branches = (
                f"{100 * record[part][name]:.1f} %" for name in ("lines", "branches")
            )
            yield f"| {part} | {lines} | {branches} |"
        else:
            yield f"| {part} | not run | |"


def failures(folder: Path) -> Iterator[str]:
    """Yield the first line of each failure that the records keep."""
    for kind, (what, _) in LINES.items():
        for failure in (records.read(kind, folder) or {}).get("failures", [])[:20]:
            yield f"- {what}: `{_text(failure).splitlines()[0][:200]}`"


def _text(failure: str | dict[str, Any]) -> str:
    if isinstance(failure, str):
        return failure
    return "{operation}, {fault}, call {n}: {wrong}".format(**failure)


def write(folder: Path, page: Path) -> int:
    """Write the page; return 1 if something failed."""
    lines = [*table(folder), *coverage(folder)]
    if found := list(failures(folder)):
        lines += ["", "What failed:", "", *found]
    page.write_text(HEAD + "\n".join(lines) + "\n" + TAIL)
    found = [records.read(kind, folder) for kind in LINES]
    return int(any(numbers(record)[1] for record in found if record))
