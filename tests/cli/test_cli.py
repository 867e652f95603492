"""`thresher --help`, `--version` and `demo`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from thresher import __version__


def thresher(*arguments: str) -> str:
    """Run the command and return what it prints."""
    code = "from thresher.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found is not None
    return [float(group) for group in found.groups()]


def test_version_and_help() -> None:
    assert thresher("--version").strip() == f"thresher {__version__}"
    assert "demo" in thresher("--help")
    assert "--examples" in thresher("demo", "--help")


def test_demo_finds_the_relevant_features(tmp_path: Path) -> None:
    """With the defaults, as in `make demo`."""
    page = tmp_path / "demo.html"
    shown = thresher("demo", "--html", str(page))
    assert "40 of 40" in shown
    error, best = map(
        float, re.search(r"(\S+) % \(with the true weights: (\S+) %\)", shown).groups()
    )
    assert best < error < best + 0.5
    false, expected = numbers(r"(\d+) \(expected: about (\S+)\)", shown)
    assert false <= 3 * expected
    assert "rows per second" in shown
    assert "peak memory" in shown
    assert "</html>" in page.read_text(encoding="utf-8")


def test_quiet_demo_of_few_rows() -> None:
    shown = thresher("demo", "--quiet", "--examples", "5000", "--features", "2000")
    assert "relevant features found" in shown
    assert "4,096 rows" not in shown  # progress
