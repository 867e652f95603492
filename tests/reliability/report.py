"""Writes docs/reliability.md from the records in build/reliability."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reliability import records, suites

PAGE = records.ROOT / "docs" / "reliability.md"

# Kind of record, what was tried, and what must hold.
LINES = {
    "kills": ("SIGKILL during `thresher train`", "the resumed run writes the same bytes"),
    "interrupts": ("SIGINT during `thresher train`", "a checkpoint; then the same bytes"),
    "terminations": ("SIGTERM during `thresher train`", "a checkpoint; then the same bytes"),
    "faults": ("failing calls of the system", "an error, the old file, no incomplete new file"),
    "power": ("power cuts: states of the disk", "models and checkpoints can be read"),
    "hostile": ("models and checkpoints with changed bytes", "an error that names the file"),
    "fuzz_svmlight": ("fuzzed svmlight files", "each line is read, skipped or named as bad"),
    "fuzz_vw": ("fuzzed VW files", "the same, and all levels of the parser agree"),
    "fuzz_cache": ("fuzzed caches", "refused, or each block can be read"),
    "fuzz_model": ("fuzzed model files", "refused, or they predict and stay the same"),
    "fuzz_checkpoint": ("fuzzed checkpoints", "refused, or unchanged when written again"),
    "fuzz_unpacking": ("fuzzed compressed files", "the bytes of Python's modules, or an error"),
    "differential": ("inputs of VW lines, against a naive parser", "the same rows and bad lines"),
    "differential_vw": ("VW lines, against VW's own parser", "the same labels, weights and sums"),
    "properties": ("long property tests", "they pass"),
    "sanitize": ("tests, address and undefined sanitizers", "they pass, without a report"),
    "race": ("tests, thread sanitizer", "they pass, without a report"),
}

SUITES = {"properties": ("hypothesis", "mark.soak"), "sanitize": ()}  # and words of their files
PARTS_OF_COVERAGE = ("C++", "C++ readers and writers", "Python")

HEAD = """# Reliability: what was tried, and what failed

`make soak` writes this page. It ends training by signals, damages files, lets system calls fail,
generates inputs, and runs the tests with sanitizers, and it counts. It takes a night, and goes on
where an earlier run ended. `make test` runs a small part of each.

"""

TAIL = """
## How it is tried

- **Signals** (`tests/reliability/kills.py`). Several kinds of runs write checkpoints as often as
  they can: with and without shuffled rows, a cache, names of features, and several classes, and a
  search. A signal ends them at a random moment: soon after the start, after a checkpoint, or near
  the end, and `--resume` continues. After three signals a run may end. Its model must have the
  bytes of a run without interruption, and no file may be left.
- **Failing calls** (`tests/faults`). A preloaded library counts the calls that open, read, write,
  sync, rename and remove files, start threads and allocate memory. The operations are train,
  tune, predict, convert, save, load, merge, export, serve, a cluster run and others. The n-th
  call fails, for n = 1, 2, ... until the operation succeeds, with a full disk, a disk error, half
  of the bytes, an interruption, no memory (in the core), no thread, no lock, or a file that cannot
  be looked at; also each call from the n-th on. The operation must succeed with the same bytes, or
  end with one clear error; then all files are as before, none is open, and the operation must
  succeed when it is tried again in the same process.
- **Power cuts** (`tests/faults/power.py`). All changes of files are recorded. After each of them,
  the disk may lack what was not synced: all of it, all but the first changes, or any part if the
  changes are at most five names. In each such state the model or the checkpoint must be readable,
  and a run that has a checkpoint must be resumed to the same bytes.
- **Changed bytes** (`tests/reliability/hostile.py`). A bit is changed, the end is cut, or a part is
  repeated. Files whose checksum fits a wrong content are made by hand in
  `tests/model/test_bad_files.py`, and by the fuzzers, which make the checksum fit.
- **Fuzzing** (`cpp/fuzz`, `tests/fuzzing`). libFuzzer and atheris change inputs so that they reach
  new branches. The readers run with the address and undefined-behaviour sanitizers. Each input is
  read in two ways, which must give the same rows: at once, in many blocks, or with another level
  of the parser.
- **Other parsers** (`tests/reliability/differential.py`, `vw_peer.py`). Inputs of up to five random
  lines of the grammar of VW, changed at random places, are read by our parser and by a simple one
  in Python; lines without such changes are read by our parser and by VW's own.
- **Property tests.** hypothesis compares the core with naive dense code: 500 random cases of each
  test, where `make test` tries 10.
- **Sanitizers.** The tests run with a core that finds wrong addresses and undefined behaviour, and
  those of threads with one that finds races.

## How to read the numbers

"Tried" and "failed" count from the version in the last column. A failure stays in the count after
it was repaired. Failing calls are an exception: a call that was wrong is tried again, and counts by
its last result. A call that was right is not tried again, so some of them were tried with an
earlier state of the code.

`make soak SOAK_ARGS=kills` runs one step; the steps are `kills` (all signals), `hostile` (changed
bytes), `differential` (other parsers), `faults` (failing calls, power cuts), `fuzz`, `properties`,
`sanitize`, `race` and `coverage`. `--share 0.01` behind it runs a hundredth of a step, and
`--again` begins again. The counts, with all that failed, are in `build/reliability`. Model files
and checkpoints are fuzzed through Python, which is slower than fuzzing a parser. SIGHUP, two
signals one after the other, and signals in the first and the last moment of a command have tests of
their own (`tests/cli/test_hangup.py`).
"""


def numbers(record: dict[str, Any]) -> tuple[int, int]:
    """Return what was tried and what failed; some records have other names for them."""
    tried = record.get("tried", record.get("points", record.get("prefixes")))
    failed = record.get("failed", record.get("wrong"))
    assert isinstance(tried, int)
    assert isinstance(failed, int)
    known = record.get("known", 0)
    return tried - known + record.get("earlier", 0), failed - known


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
        yield f"{known:,} more calls are not counted: there, the library nanobind gets no memory"
        yield "and ends the process. Thresher cannot change that."
    if unfinished := record.get("unfinished"):
        yield ""
        pairs = _pairs(record)
        yield f"Not all calls were tried: of {pairs} pairs of an operation and a kind of failure,"
        yield f"{unfinished} are not complete."
    for kind, words in SUITES.items():
        done = set((records.read(kind, folder) or {}).get("done", {}))
        files = suites.test_files(*words)
        if done and not done.issuperset(files):
            yield ""
            yield f"{LINES[kind][0]}: {len(done)} of {len(files)} files with tests ran, namely"
            yield from _listed(done, files)


def _pairs(record: dict[str, Any]) -> int:
    """Return how many pairs of an operation and a fault there are."""
    pairs = record.get("pairs")  # of a record that was read from the page
    return pairs or sum(len(one["faults"]) for one in record["operations"].values())


def _listed(done: set[str], files: list[str]) -> Iterator[str]:
    """Yield lines that name the folders of which all files were run, and the other files."""
    folders = {str(Path(file).parent) for file in done} - {"tests"}
    whole = {
        folder
        for folder in folders
        if done.issuperset(file for file in files if str(Path(file).parent) == folder)
    }
    names = sorted(whole | {file for file in done if str(Path(file).parent) not in whole})
    text = ", ".join(f"`{name}`" for name in names)
    yield from textwrap.wrap(f"{text}.", 100, break_long_words=False, break_on_hyphens=False)


def coverage(folder: Path) -> Iterator[str]:
    """Yield the lines about coverage."""
    yield ""
    yield "| coverage by the tests | lines | branches |"
    yield "|---|---:|---:|"
    record = records.read("coverage", folder) or {}
    for part in PARTS_OF_COVERAGE:
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


def failed(folder: Path, *kinds: str) -> int:
    """Return how many failures the records count: all records, or those of these kinds."""
    found = [records.read(kind, folder) for kind in LINES if kind in (kinds or LINES)]
    return sum(numbers(record)[1] for record in found if record)


def write(folder: Path, page: Path) -> None:
    """Write the page."""
    lines = [*table(folder), *coverage(folder)]
    if found := list(failures(folder)):
        lines += ["", "What failed:", "", *found]
    page.write_text(HEAD + "\n".join(lines) + "\n" + TAIL)
