"""Runs the sweeps of all operations and faults, several at a time, and counts."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet  # noqa: F401 - imported once, before the processes are forked
import sklearn.linear_model  # noqa: F401

import thresher.cli.app
import thresher.distributed  # noqa: F401
from faults.library import FAULTS
from faults.operations import OPERATIONS
from faults.parts import Part, is_known
from faults.points import PLACE, ChildError, reference_of, sweep

SLICE = (
    *("train, 2 threads", "train, quarantine", "convert to parquet", "save", "load", "cluster"),
    *("save, named files", "train, checkpoint"),
)
FEW = (2, 11)  # the calls that fail in a slice
KEYS = ("points", "wrong", "known", "unfinished")


def swept(
    only: str, fault: str, few: bool, jobs: int, folder: Path, seconds: float
) -> dict[str, Any]:
    """Return the counts of all operations, and the points that were wrong; also of earlier runs.

    Parameters
    ----------
    only, fault : str
        Try only operations and faults whose names start so.
    few : bool
        Try two points of each fault, and only the operations of `SLICE`.
    jobs : int
        Number of processes.
    folder : Path
        Where the parts are; those that are there go on.
    seconds : float
        No point begins after this time.
    """
    known = SLICE if few else tuple(OPERATIONS)
    parts = {
        name: [Part(folder, name, kind, FEW if few else ()) for kind in FAULTS] for name in known
    }
    until = time.monotonic() + seconds
    running: dict[int, Path] = {}
    for name, of in parts.items():
        chosen = [part for part in of if part.fault.startswith(fault)]
        if name.startswith(only):
            if len(running) == jobs:
                _wait(running)
            running[_started(name, chosen, until, _error(folder, name))] = _error(folder, name)
    while running:
        _wait(running)
    operations, failures = {}, []
    for name, of in parts.items():
        counts = {}
        error = _error(folder, name)
        if error.exists():
            failures.append(_failure(name, error.read_text()))
        for part in of:
            part.read()
            counts[part.fault] = part.counts()
            failures += [
                {"operation": name, "fault": part.fault, **point}
                for point in part.wrong()
                if not is_known(point)
            ]
        sums = _sums(counts)
        sums["wrong"] += error.exists()
        operations[name] = {**sums, "faults": counts}
    pairs = len(known) * len(FAULTS)
    return {**_sums(operations), "pairs": pairs, "operations": operations, "failures": failures}


def _sums(counts: dict[str, Any]) -> dict[str, int]:
    return {key: sum(one[key] for one in counts.values()) for key in KEYS}


def _error(folder: Path, name: str) -> Path:
    """Return the file of the error with which the sweep of an operation ended, if it did."""
    return folder / f"{name}.error".replace(" ", "_")


def _failure(name: str, error: str) -> dict[str, Any]:
    last = error.strip().splitlines()[-1]
    return {
        **{"operation": name, "fault": "all faults", "n": 0, "hit": False},
        **{"wrong": [f"the sweep ends with an error: {last}"], "message": error, "frames": []},
    }


def _started(name: str, parts: list[Part], until: float, error: Path) -> int:
    """Start the sweeps of an operation in a forked process; return its number.

    If they end with an error, it is written to a file.
    """
    error.unlink(missing_ok=True)
    child = os.fork()
    if child != 0:
        return child
    code = 1
    try:
        sweep(name, parts, until)
        counts = ", ".join(f"{part.fault}: {part.counts()['points']}" for part in parts)
        print(f"{name}: {counts}", file=sys.stderr, flush=True)
        code = 0
    except BaseException:
        text = traceback.format_exc()
        print(f"{name}: {text}", file=sys.stderr)
        _write(error, text)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(running: dict[int, Path]) -> None:
    child, status = os.wait()
    error = running.pop(child)
    if status != 0 and not error.exists():
        _write(error, f"the process ends with status {os.waitstatus_to_exitcode(status)}")


def _write(error: Path, text: str) -> None:
    error.parent.mkdir(parents=True, exist_ok=True)
    error.write_text(text)


def references(only: str) -> list[str]:
    """Run operations without a fault; return what is wrong.

    Parameters
    ----------
    only : str
        Run only operations whose names start so.
    """
    wrong = []
    for name, operation in OPERATIONS.items():
        if name.startswith(only):
            with tempfile.TemporaryDirectory(prefix="faults-", dir=PLACE) as place:
                try:
                    _, modules = reference_of(operation, Path(os.path.realpath(place), "all"))
                    for module in modules:
                        importlib.import_module(module)
                except ChildError as error:
                    wrong.append(f"{name}: {error.ending}: {error.output}")
                except RuntimeError as error:
                    wrong.append(f"{name}: {error}")
    return wrong
