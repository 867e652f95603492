"""Runs tests file by file, in a given environment, and counts them from pytest's XML."""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def counted(report: Path) -> tuple[int, list[str]]:
    """Return the number of tests that ran, and the names of those that failed."""
    cases = [case for case in ET.parse(report).iter("testcase") if case.find("skipped") is None]
    failed = [
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return len(cases), failed


def run(
    command: Sequence[str], file: str, report: Path, options: str = "", **variables: str
) -> tuple[int, list[str]]:
    """Run the tests of a file with `command`, which reads PYTEST_ARGS; return `counted`."""
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    arguments = f"{file} -q --junitxml={report} {options}"
    done = subprocess.run(
        [*command, f"PYTEST_ARGS={arguments}"],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True,
    )  # fmt: skip
    if not report.exists():
        return 1, [f"{file}: {(done.stdout + done.stderr)[-2000:]}"]
    tests, failed = counted(report)
    if done.returncode not in (0, 5) and not failed:  # 5: no tests; a sanitizer ended the process
        failed = [f"{file}: exit code {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"]
    return tests, failed


def test_files(*words: str) -> list[str]:
    """Return the test files that contain one of the words; all, if there are none."""
    found = sorted((ROOT / "tests").glob("**/test_*.py"))
    return [
        str(path.relative_to(ROOT))
        for path in found
        if not words or any(word in path.read_text() for word in words)
    ]
