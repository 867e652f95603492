"""`thresher --help`, `--version` and `demo`."""

from __future__ import annotations

import subprocess
import sys

from thresher import __version__


def thresher(*arguments: str) -> str:
    """Run the command and return what it prints."""
    code = "from thresher.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_version_and_help() -> None:
    assert thresher("--version").strip() == f"thresher {__version__}"
    assert "demo" in thresher("--help")
    assert "--examples" in thresher("demo", "--help")


def test_demo_finds_the_relevant_features() -> None:
    """With the defaults, as in `make demo`."""
    shown = thresher("demo")
    assert "40 of 40" in shown
    assert "rows per second" in shown
    assert "peak memory" in shown
    assert "nonzeros" in shown


def test_quiet_demo_of_few_rows() -> None:
    shown = thresher("demo", "--quiet", "--examples", "5000", "--features", "2000")
    assert "relevant features found" in shown
    assert "partial_fit" not in shown
