"""Runs the sweeps of all operations and faults, several at a time, and counts."""

from __future__ import annotations

import os
import sys
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
from faults.points import sweep

SLICE = ("train, 2 threads", "train, quarantine", "convert to parquet", "save", "load", "cluster")
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
    running: dict[int, str] = {}
    for name, of in parts.items():
        chosen = [part for part in of if part.fault.startswith(fault)]
        if name.startswith(only):
            if len(running) == jobs:
                _wait(running)
            running[_started(name, chosen, until)] = name
    while running:
        _wait(running)
    operations, failures = {}, []
    for name, of in parts.items():
        counts = {}
        for part in of:
            part.read()
            counts[part.fault] = part.counts()
            failures += [
                {"operation": name, "fault": part.fault, **point}
                for point in part.wrong()
                if not is_known(point)
            ]
        operations[name] = {**_sums(counts), "faults": counts}
    return {**_sums(operations), "operations": operations, "failures": failures}


def _sums(counts: dict[str, Any]) -> dict[str, int]:
    return {key: sum(one[key] for one in counts.values()) for key in KEYS}


def _started(name: str, parts: list[Part], until: float) -> int:
    """Start the sweeps of an operation in a forked process; return its number."""
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
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _wait(running: dict[int, str]) -> None:
    child, status = os.wait()
    name = running.pop(child)
    if status != 0:
        raise RuntimeError(f"{name}: its sweeps did not end as they should")
