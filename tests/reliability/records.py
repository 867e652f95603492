"""What was tried and what failed: one JSON file for each kind, in build/reliability.

A record has `tried` and `failed` (counts), `failures` (the first of them, as text), `since` (the
version at the first try), `version` (at the last) and `done` (facts by which a later run goes on).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from thresher import __version__

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "reliability"
MOST_SHOWN = 20  # failures that a record keeps


def read(kind: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """Return a record; None if nothing of this kind was tried."""
    path = folder / f"{kind}.json"
    return json.loads(path.read_text()) if path.exists() else None


@contextlib.contextmanager
def locked(name: str, folder: Path = FOLDER, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock; if another process holds it, wait for it or, without `wait`, end this one."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise SystemExit(f"error: another process runs the step {name}") from None
        yield


def add(
    kind: str,
    tried: int,
    failures: Iterable[str] = (),
    *,
    done: dict[str, Any] | None = None,
    folder: Path = FOLDER,
) -> dict[str, Any]:
    """Add tries and failures to a record, and facts to its `done`; return it."""
    with locked(f"{kind}.record", folder):
        return _added(kind, tried, list(failures), done or {}, folder)


def _added(
    kind: str, tried: int, failures: list[str], done: dict[str, Any], folder: Path
) -> dict[str, Any]:
    record = read(kind, folder) or {"tried": 0, "failed": 0, "failures": [], "since": __version__}
    record["tried"] += tried
    record["failed"] += len(failures)
    record["failures"] = [*record["failures"], *failures][:MOST_SHOWN]
    record["version"] = __version__
    record["done"] = {**record.get("done", {}), **done}
    new = folder / f"{kind}.json.new"
    new.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(new, folder / f"{kind}.json")
    return record


def start_again(folder: Path = FOLDER) -> None:
    """Remove what earlier runs have done, so that all steps run again.

    Counts that grow with each run stay. Faults, power cuts and coverage are counted anew.
    """
    shutil.rmtree(folder / "faults", ignore_errors=True)
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text())
        if "done" in record:
            path.write_text(json.dumps({**record, "done": {}}, indent=1) + "\n")
        else:
            path.unlink()
