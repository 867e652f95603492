"""Runs the sweeps of all operations and faults, several at a time, and counts."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from dataclasses import asdict
from typing import IO, Any, NoReturn

import pyarrow.csv
import pyarrow.parquet  # noqa: F401 - imported once, before the processes are forked
import sklearn.linear_model  # noqa: F401

import thresher.cli.app
import thresher.distributed  # noqa: F401
from faults.library import FAULTS
from faults.operations import OPERATIONS
from faults.points import sweep

SLICE = ("train, 2 threads", "train, quarantine", "convert to parquet", "save", "load", "cluster")


def swept(only: str, fault: str, few: bool, jobs: int) -> dict[str, Any]:
    """Return the counts of all operations, and the points that were wrong.

    Parameters
    ----------
    only, fault : str
        Only operations and faults whose names start so.
    few : bool
        Try two points of each fault, and only the operations of `SLICE`.
    jobs : int
        Number of processes.
    """
    names = [name for name in (SLICE if few else OPERATIONS) if name.startswith(only)]
    kinds = [kind for kind in FAULTS if kind.startswith(fault)]
    results = _in_parallel(names, kinds, slice(2, 20, 9) if few else slice(1, None), jobs)
    operations, failures = {}, []
    for name, faults in zip(names, results, strict=True):
        counts = {kind: _counts(points) for kind, points in faults.items()}
        operations[name] = {**_sums(counts), "faults": counts}
        failures += [
            {"operation": name, "fault": kind, **point}
            for kind, points in faults.items()
            for point in points
            if point["wrong"]
        ]
    return {**_sums(operations), "operations": operations, "failures": failures}


def _counts(points: list[dict[str, Any]]) -> dict[str, int]:
    wrong = [point for point in points if point["wrong"]]
    return {"points": len(points), "wrong": len(wrong), "known": sum(map(_is_known, wrong))}


def _is_known(point: dict[str, Any]) -> bool:
    """Return whether nanobind ended the process: it has no memory for its table of objects.

    Its functions that fill the table may not throw; that cannot be changed from outside.
    """
    return point["wrong"] == ["crash: SIGABRT"] and "std::bad_alloc" in point["message"]


def _sums(counts: dict[str, Any]) -> dict[str, int]:
    return {key: sum(one[key] for one in counts.values()) for key in ("points", "wrong", "known")}


def _in_parallel(
    names: list[str], kinds: list[str], chosen: slice, jobs: int
) -> list[dict[str, list[dict[str, Any]]]]:
    """Run the sweeps of operations in forked processes, `jobs` at a time."""
    files = [tempfile.TemporaryFile() for _ in names]  # noqa: SIM115
    running: dict[int, str] = {}
    for name, file in zip(names, files, strict=True):
        if len(running) == jobs:
            _wait(running)
        child = os.fork()
        if child == 0:
            _sweep_and_exit(name, kinds, chosen, file)
        running[child] = name
    while running:
        _wait(running)
    results = []
    for file in files:
        file.seek(0)
        results.append(json.loads(file.read()))
        file.close()
    return results


def _sweep_and_exit(name: str, kinds: list[str], chosen: slice, file: IO[bytes]) -> NoReturn:
    code = 1
    try:
        found = sweep(name, kinds, chosen)
        content = {kind: [asdict(point) for point in points] for kind, points in found.items()}
        file.write(json.dumps(content).encode())
        file.flush()
        counts = ", ".join(f"{kind}: {len(points)}" for kind, points in found.items())
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
