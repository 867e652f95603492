"""Results of the table: one `Result` for each line, and the file that keeps them."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from speed import peers
from speed.line import Measured
from speed.machine import machine, short_name

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Result:
    """What was measured, without the data; `skipped` or `failed` says why there is nothing.

    Attributes
    ----------
    area, name, peer_name, must, unit
        As in `Line`.
    ours, peer : float
        Best seconds.
    ratio : float
    reached : bool
    checked : str
        What the check of the line returned.
    skipped, failed : str
    """

    area: str
    name: str
    peer_name: str = ""
    must: float = 0.0
    unit: bool = False
    ours: float = 0.0
    peer: float = 0.0
    ratio: float = 0.0
    reached: bool = False
    checked: str = ""
    skipped: str = ""
    failed: str = ""

    @property
    def measured(self) -> bool:
        """Whether there are numbers."""
        return not (self.skipped or self.failed)


def result_of(area: str, found: Measured) -> Result:
    """Keep the numbers of a measured line, and release its data."""
    line = found.line
    return Result(
        area, line.name, line.peer_name, line.must, line.unit,
        found.ours, found.peer, found.ratio, found.reached, found.checked,
    )  # fmt: skip


def record(results: Sequence[Result], full: bool) -> dict[str, Any]:
    """Return all that a file keeps: where, when, what with, and the results."""
    import thresher

    return {
        "version": thresher.__version__,
        "commit": git("rev-parse", "--short=10", "HEAD"),
        "committed": git("show", "-s", "--format=%cd", "--date=iso-local", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no", "--", "src", "cpp")),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "full": full,
        "machine": machine(),
        "peers": peers.versions(),
        "lines": [asdict(result) for result in results],
    }


def results_in(kept: dict[str, Any]) -> list[Result]:
    """Return the results of a record."""
    return [Result(**line) for line in kept["lines"]]


def file_of(kept: dict[str, Any], folder: Path = FOLDER) -> Path:
    """Return the file of a record: one for each machine and version."""
    kind = "speed" if kept["full"] else "speed-quick"
    return folder / f"{kind}-{short_name(kept['machine'])}-{version_of(kept)}.json"


def read_all(full: bool, machine_name: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Return the records of one machine, by the dates of their commits."""
    kept = [json.loads(file.read_text("utf-8")) for file in folder.glob("speed-*.json")]
    chosen = [
        one for one in kept if one["full"] == full and short_name(one["machine"]) == machine_name
    ]
    return sorted(chosen, key=lambda one: (one["committed"], one["date"]))


def version_of(kept: dict[str, Any]) -> str:
    """Return the version with the commit.

    Examples
    --------
    >>> version_of({"version": "0.1.0", "commit": "1d3f118aaa", "changed": True})
    '0.1.0-1d3f118aaa-changed'
    """
    parts = [kept["version"], kept["commit"], "changed" if kept["changed"] else ""]
    return "-".join(part for part in parts if part)


def write(kept: dict[str, Any], file: Path) -> None:
    """Write a record as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def git(*arguments: str) -> str:
    """Return what git prints; nothing where there is no git or no repository."""
    try:
        env = {**os.environ, "TZ": "UTC"}  # dates of all machines are in the same zone
        run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, env=env)
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
