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

from faults import disk
from faults.library import Library
from faults.operations import LEARNED, OPERATIONS, Operation, command, rows_learned
from faults.points import MEMORY, in_child, prepare
from thresher.training import checkpoint as checkpoints

Check = Callable[["Cut"], None]


@dataclass(frozen=True)
class Cut:
    """A state after a power cut. The working folder holds it.

    Attributes
    ----------
    old, new : dict
        The bytes of the files before and after the run.
    saved : bool
        Whether a checkpoint was complete before the cut.
    done : bool
        Whether the run was at its end.
    """

    old: dict[str, bytes]
    new: dict[str, bytes]
    saved: bool
    done: bool

    def result(self, name: str = "model") -> str:
        """Return "old" or "new"; raises an error if the file is neither."""
        content = Path(name).read_bytes()
        if content == self.new[name]:
            return "new"
        assert content == self.old[name], f"{name} is neither old nor new"
        assert not self.done, f"{name} is still old after the end of the run"
        return "old"


def _model(cut: Cut) -> None:
    cut.result()


def _cache(cut: Cut) -> None:
    cut.result("made.cache")


def _checkpoint(cut: Cut) -> None:
    checkpoints.read("run.checkpoint")


def _checkpoint_or_model(cut: Cut) -> None:
    if os.path.exists("run.checkpoint"):
        checkpoints.read("run.checkpoint")
    else:
        assert not cut.saved or cut.result() == "new", "neither checkpoint nor model"


def _learned(cut: Cut) -> None:
    rows = rows_learned()
    assert rows >= 1, "the row that was learned before is lost"
    assert rows == LEARNED or not cut.done, f"{rows} of {LEARNED} rows are left at the end"


def _cluster(cut: Cut) -> None:
    if cut.result() == "new":
        return
    if cut.saved:
        assert os.path.exists("run/committed.json"), "the checkpoint is lost"
    run = OPERATIONS["cluster"].run
    assert isinstance(run, tuple)
    assert command(*run, "--resume", "--quiet") == 0, "the run cannot be resumed"
    assert Path("model").read_bytes() == cut.new["model"], "the resumed run has another result"


CHECKS: dict[str, tuple[Check, str]] = {  # and the file that a complete checkpoint renames
    "train": (_model, "-"),
    "save": (_model, "-"),
    "convert to cache": (_cache, "-"),
    "checkpoint": (_checkpoint, "-"),
    "train, checkpoint": (_checkpoint_or_model, "run.checkpoint"),
    "tune, checkpoint": (_checkpoint_or_model, "run.checkpoint"),
    "serve, learn": (_learned, "-"),
    "cluster": (_cluster, "run/committed.json"),
}


SLICE = ("save", "checkpoint")


def cuts(name: str, step: int = 1) -> dict[str, Any]:
    """Cut the power after every `step` changes of an operation; return counts and failures."""
    check, saved = CHECKS[name]
    with tempfile.TemporaryDirectory(prefix="power-", dir=MEMORY) as place:
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
    library.watch(work)
    with open(log, "wb") as file:
        library.log(file.fileno())
        if isinstance(operation.run, tuple):
            assert command(*operation.run, "--quiet") == 0
        else:
            operation.run()
        library.log(-1)
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
            key = hashlib.sha256(repr((sorted(state.items()), is_saved, at_end)).encode()).digest()
            if key not in seen:
                seen.add(key)
                wrong = _wrong(state, Cut(old, new, is_saved, at_end), check, work)
                if wrong:
                    names = [f"{n}:{-1 if c is None else len(c)}" for n, c in state.items()]
                    failures.append({"after": number, "wrong": wrong, "files": names})
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
