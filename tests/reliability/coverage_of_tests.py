"""`make coverage`: the share of lines and branches that the tests run, of C++ and of Python.

    .venv-coverage/bin/python tests/reliability/coverage_of_tests.py [TEST ...]

Writes build/reliability/coverage.json if all tests ran, and the branches that no test takes to
build/coverage/untaken.txt. Neither branch of a call that may throw is counted. The code of a
template counts once for each line of the source, not for each of its types.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reliability import suites

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "coverage"
RESULT = ROOT / "build" / "reliability" / "coverage.json"
READERS = "cpp/thresher/io/"

Lines = dict[str, dict[int, int]]  # file, line: how often it ran
Branches = dict[str, dict[tuple[int, int], int]]  # file, (line, number): how often it was taken

SETTINGS = f"""[run]
branch = True
parallel = True
sigterm = True
source_pkgs = thresher
data_file = {BUILD}/python/counts
"""


def run_tests(groups: list[list[str]]) -> int:
    """Run groups of tests at once, and measure all processes; return the worst exit code of pytest.

    Each group has a process that ends in the ordinary way: gcov writes its counts at this end, to
    which the processes of pytest-xdist do not come.
    """
    for folder in (BUILD / "python", BUILD / "core"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    settings = BUILD / "coverage.ini"
    settings.write_text(SETTINGS)
    packages = Path(sysconfig.get_path("purelib"))
    shutil.copy(Path(__file__).with_name("measured.py"), packages)
    start = packages / "measured.pth"
    start.write_text("import measured\n")
    try:
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", *tests],
                cwd=ROOT, env={**os.environ, "COVERAGE_PROCESS_START": str(settings)},
            )
            for tests in groups
        ]  # fmt: skip
        return max(process.wait() for process in running)
    finally:
        start.unlink()


def groups_of_tests() -> list[list[str]]:
    """Divide the files with tests; those on Ray stay together, so that there is one cluster."""
    files = suites.test_files()
    on_ray = [file for file in files if file.endswith("_ray.py")]
    others = [file for file in files if file not in on_ray]
    return [on_ray + others[0::3], others[1::3], others[2::3]]


def python_counts() -> dict[str, Any]:
    """Return the totals of coverage.py, and the branches that were not taken."""
    command = [sys.executable, "-m", "coverage"]
    options = [f"--rcfile={BUILD / 'coverage.ini'}"]
    subprocess.run([*command, "combine", "-q", *options], check=True, cwd=ROOT)
    result = BUILD / "python.json"
    subprocess.run([*command, "json", "-q", *options, "-o", str(result)], check=True, cwd=ROOT)
    return json.loads(result.read_text())


def without_throws(branches: list[dict[str, Any]]) -> tuple[int, ...]:
    """Return the counts of the branches of a line, without those of calls that may throw.

    Such a call has two branches: one to what follows, and behind it in the list the exception.
    """
    kept: list[int] = []
    for branch in branches:
        if branch["throw"]:
            kept = kept[:-1]
        else:
            kept.append(branch["count"])
    return tuple(kept)


class Line:
    """The branches of a line of the source, in all templates, types and objects that have it.

    They can be compared if they are equally many. A line has as many branches as that code of it
    with the most, of what was run.
    """

    def __init__(self) -> None:
        self._run: dict[int, list[int]] = {}
        self._other: dict[int, list[int]] = {}

    def add(self, ran: bool, taken: tuple[int, ...]) -> None:
        """Add the counts of one function."""
        sums = (self._run if ran else self._other).setdefault(len(taken), [0] * len(taken))
        for place, count in enumerate(taken):
            sums[place] += count

    def counts(self) -> list[int]:
        """Return the counts of the branches."""
        known = self._run or self._other
        return known[max(known)]


def gcov_files(counts: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield what gcov says of the source files of objects; a few at a time, for they are large."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, len(counts), 8):
            for objects in pool.map(gcov, counts[first : first + 8]):
                for one in objects:
                    yield from one["files"]


def gcov(counts: Path) -> list[dict[str, Any]]:
    """Return what gcov says of a file of counts. Its notes are where the object was built.

    That is nothing if the file is broken, because the process was killed or had a full disk.
    """
    notes = Path("/", *counts.with_suffix(".gcno").relative_to(BUILD / "core").parts[1:])
    link = counts.with_suffix(".gcno")
    link.unlink(missing_ok=True)
    link.symlink_to(notes)
    done = subprocess.run(
        ["gcov", "--json-format", "--branch-probabilities", "--stdout", str(counts)],
        cwd=BUILD, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        print(f"left out: {counts}: {done.stderr.strip()}", file=sys.stderr)
        return []
    return [json.loads(text) for text in done.stdout.splitlines()]


def core_counts() -> tuple[Lines, Branches]:
    """Return the counts of gcov for all files in cpp/, summed over objects and processes."""
    lines: Lines = defaultdict(lambda: defaultdict(int))
    found: dict[str, dict[int, Line]] = defaultdict(lambda: defaultdict(Line))
    for file in gcov_files(sorted((BUILD / "core").rglob("*.gcda"))):
        path = (BUILD / file["file"]).resolve()
        if not path.is_relative_to(ROOT / "cpp"):
            continue
        name = str(path.relative_to(ROOT))
        for line in file["lines"]:
            number = line["line_number"]
            lines[name][number] += line["count"]
            found[name][number].add(line["count"] > 0, without_throws(line["branches"]))
    branches = {
        name: {
            (number, place): count
            for number, line in of.items()
            for place, count in enumerate(line.counts())
        }
        for name, of in found.items()
    }
    return lines, branches


def share(counts: dict[str, dict[Any, int]], prefix: str = "") -> float:
    """Return the share of counts that are not zero, in files whose names begin so."""
    values = [
        count for name, of in counts.items() if name.startswith(prefix) for count in of.values()
    ]
    return sum(count > 0 for count in values) / len(values) if values else 0.0


def untaken(branches: Branches, python: dict[str, Any]) -> Iterator[str]:
    """Yield the lines with branches that no test takes."""
    for name, counts in sorted(branches.items()):
        for line in sorted({line for (line, _), count in counts.items() if count == 0}):
            yield f"{name}:{line}"
    for name, file in sorted(python["files"].items()):
        for line, to in file["missing_branches"]:
            yield f"{name}:{line} to {to}"


def main() -> None:
    """Run the tests, measure, and write the record."""
    code = run_tests([sys.argv[1:]] if sys.argv[1:] else groups_of_tests())
    if code not in (0, 1):  # 1: some tests failed
        sys.exit(f"error: the tests did not run to their end: exit code {code} of pytest")
    python = python_counts()
    lines, branches = core_counts()
    totals = python["totals"]
    record = {
        "C++": {"lines": share(lines), "branches": share(branches)},
        "C++ readers and writers": {
            "lines": share(lines, READERS),
            "branches": share(branches, READERS),
        },
        "Python": {
            "lines": totals["covered_lines"] / totals["num_statements"],
            "branches": totals["covered_branches"] / totals["num_branches"],
        },
    }
    if not sys.argv[1:]:  # the shares of some tests say nothing about all
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(record, indent=1) + "\n")
    (BUILD / "untaken.txt").write_text("".join(f"{line}\n" for line in untaken(branches, python)))
    for part, shares in record.items():
        print(f"{part}: {shares['lines']:.1%} of lines, {shares['branches']:.1%} of branches")


if __name__ == "__main__":
    main()
