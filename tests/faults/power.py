"""Simulated power cuts: after every change of a file, everything not synced may be lost.

The changes of a run are recorded. For each prefix of the record, all states that `disk.py` allows
are written to a folder, and the files there must be readable: as before, or new.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import calls, disk
from faults.library import Library
from faults.operation import Operation
from faults.operations import OPERATIONS
from faults.points import PLACE, in_child, outcome_of, prepare

Check = Callable[["Cut"], None]
_SAVED = "run.checkpoint"


@dataclass(frozen=True)
class Cut:
    """A state after a power cut. The working folder holds it.

    Attributes
    ----------
    old, new : dict
        The bytes of the files before and after the run.
    saved : bool
        Whether a checkpoint was complete before the cut.
    removed : bool
        Whether the run has removed it, or not made it yet.
    done : bool
        Whether the run was at its end.
    """

    old: dict[str, bytes]
    new: dict[str, bytes]
    saved: bool
    removed: bool
    done: bool

    def result(self, name: str) -> str:
        """Return "old" or "new"; raises an error if the file is neither."""
        content = Path(name).read_bytes()
        if content == self.new[name]:
            return "new"
        assert content == self.old[name], f"{name} is neither old nor new"
        assert not self.done, f"{name} is still old after the end of the run"
        return "old"


def _whole(name: str) -> Check:
    """Return a check that a file is as before or new."""

    def check(cut: Cut) -> None:
        cut.result(name)

    return check


def _new_cache(cut: Cut) -> None:
    cut.result("model")
    calls.check_cache()


def _checkpoint(cut: Cut) -> None:
    """Check that the checkpoint is there and can be read, until the run removes it."""
    if os.path.exists(_SAVED) or not cut.removed:
        calls.digest()


def _goes_on(name: str, checkpoint: str, *results: str) -> Check:
    """Return a check that an operation can go on from its checkpoint, to the same results.

    Parameters
    ----------
    name : str
    checkpoint : str
        If it is gone after it was complete, all results must be new.
    *results : str
        Files.
    """
    operation = OPERATIONS[name]
    places = [name for name in operation.changes if not operation.is_stable(name)]

    def check(cut: Cut) -> None:
        if not os.path.exists(checkpoint):
            if cut.saved or cut.done:
                for result in results:
                    assert cut.result(result) == "new", f"neither checkpoint nor {result}"
            if cut.done:
                return
        assert isinstance(operation.run, tuple)
        again = operation.again if any(map(os.path.exists, places)) else ()
        outcome = outcome_of((*operation.run, *again))
        assert outcome.code == 0, f"the run cannot go on: {outcome.errors}"
        for result in filter(operation.is_stable, results):
            content = Path(result).read_bytes()
            assert content == cut.new[result], f"{result} is another one after the run went on"

    return check


def _learned(cut: Cut) -> None:
    rows = calls.rows_learned()
    assert rows >= 1, "the row that was learned before is lost"
    assert rows == calls.LEARNED or not cut.done, f"{rows} of {calls.LEARNED} rows are left"


_RESULTS = {
    **{name: "model" for name in ("train", "train, keep state", "train, from", "merge", "save")},
    **{name: "model" for name in ("tune", "save, named files", "train, named files")},
    **{f"convert to {form}": f"made.{form}" for form in ("cache", "csv", "vw", "svm.gz")},
    **{f"export to {form}": f"out.{form}" for form in ("json", "onnx")},
    **{"predict": "out", "evaluate": "page.html"},
}
CHECKS: dict[str, tuple[Check, str]] = {  # and the file that a complete checkpoint renames
    **{name: (_whole(result), "-") for name, result in _RESULTS.items()},
    "train, new cache": (_new_cache, "-"),
    **{name: (_checkpoint, _SAVED) for name in ("checkpoint", "checkpoint, named files", "resume")},
    **{
        name: (_goes_on(name, checkpoint, *results), checkpoint)
        for name, checkpoint, *results in (
            ("train, checkpoint", _SAVED, "model"),
            ("train, checkpoint, quarantine", _SAVED, "model", "lines/bad"),
            ("tune, checkpoint", _SAVED, "model"),
            ("discover, checkpoint", _SAVED, "model"),
            ("compare", _SAVED, "out.json", "page.html"),
            ("cluster", "run/committed.json", "model"),
        )
    },
    "serve, learn": (_learned, "-"),
}


SLICE = ("save", "checkpoint")


def cuts(name: str, step: int = 1) -> dict[str, Any]:
    """Cut the power after every `step` changes of an operation; return counts and failures."""
    check, saved = CHECKS[name]
    with tempfile.TemporaryDirectory(prefix="power-", dir=PLACE) as place:
        template = Path(os.path.realpath(place), "template")
        in_child(lambda: prepare(OPERATIONS[name], template))
        work, log = template.with_name("work"), template.with_name("log")
        shutil.copytree(template, work)
        in_child(lambda: _recorded(OPERATIONS[name], work, log))
        facts = in_child(lambda: _tried(template, work, log, check, saved, step), seconds=3600)
    return facts


def _recorded(operation: Operation, work: Path, log: Path) -> dict[str, Any]:
    os.chdir(work)
    tempfile.tempdir = str(work / "tmp")
    library = Library()
    library.watch(work, unnamed=not operation.named)
    with open(log, "wb") as file:
        library.log(file.fileno())
        outcome = outcome_of(operation.run)
        library.log(-1)
    assert outcome.code == 0, outcome.errors
    return {}


def _tried(
    template: Path, work: Path, log: Path, check: Check, saved: str, step: int
) -> dict[str, Any]:
    """Check all states; those that were checked before are not checked again."""
    old, new = _contents(template), _contents(work)
    shutil.rmtree(work)
    shutil.copytree(template, work)
    simulated, changes = disk.Disk(work), disk.events(log.read_bytes())
    seen: set[bytes] = set()
    failures, is_saved = [], False
    for number in range(len(changes) + 1):
        at_end = number == len(changes)
        for state in simulated.states() if number % step == 0 or at_end else ():
            removed = f"{simulated.root}/{saved}" not in simulated.names
            facts = (sorted(state.items()), is_saved, removed, at_end)
            key = hashlib.sha256(repr(facts).encode()).digest()
            if key not in seen:
                seen.add(key)
                wrong = _wrong(state, Cut(old, new, is_saved, removed, at_end), check, work)
                if wrong:
                    sizes = [f"{n}:{-1 if c is None else len(c)}" for n, c in state.items()]
                    failures.append({"after": number, "wrong": wrong, "files": sizes})
        if not at_end:
            simulated.apply(changes[number])
            is_saved = is_saved or _is_saved(simulated, saved)
    counts = {"prefixes": len(changes) + 1, "states": len(seen), "wrong": len(failures)}
    return {**counts, "failures": failures}


def _is_saved(simulated: disk.Disk, name: str) -> bool:
    """Return whether a file is on the disk with its name and bytes."""
    file = simulated.synced.get(f"{simulated.root}/{name}")
    return file is not None and file.is_synced


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _wrong(state: disk.State, cut: Cut, check: Check, work: Path) -> str:
    os.chdir("/")
    shutil.rmtree(work)
    work.mkdir()
    disk.write_state(state, work)
    os.chdir(work)
    try:
        check(cut)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
