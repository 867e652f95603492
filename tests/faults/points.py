"""Fault points: the n-th call of an operation fails, for n = 1, 2, ... until none is left.

Each point runs in a new process, forked from one that has imported everything. It must end in one
of two ways:

- the operation fails: one clear error, all files as before, no new file, no file left open;
- the operation succeeds: its results have the same bytes as without a fault.

After that the same operation must succeed in the same process, with the same bytes.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faults.library import FAULTS, Fault, Library
from faults.operations import OPERATIONS, Operation, command
from faults.parts import Part
from thresher.errors import CacheError, ModelFileError

# Files are written in memory if the system allows it: to wait for a disk at each sync takes long.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SECONDS = 120  # after that a point counts as hanging
CLEAR = (OSError, MemoryError, ModelFileError, CacheError)  # errors of the library for faults
UNCLEAR = ("Traceback", "Exception ignored", "terminate called", "nanobind", "Fatal Python error")
Snapshot = dict[str, str]


@dataclass
class Outcome:
    """How an operation ended: exit code, what it printed as errors, its result, its files."""

    code: int
    errors: str
    result: str
    files: Snapshot


@dataclass
class Point:
    """What was found at a point.

    Attributes
    ----------
    n : int
        The call that failed.
    hit : bool
        Whether there was an n-th call.
    wrong : list of str
        What was wrong.
    message : str
        The error that the user sees.
    frames : list of str
        Where the call was made.
    """

    n: int
    hit: bool = True
    wrong: list[str] = field(default_factory=list)
    message: str = ""
    frames: list[str] = field(default_factory=list)


def sweep(name: str, parts: Sequence[Part], until: float) -> None:
    """Try the points of an operation that are due; the parts keep what is found.

    Parameters
    ----------
    name : str
        An operation.
    parts : sequence of Part
        One for each fault.
    until : float
        No point begins after this time of the monotonic clock.
    """
    if not any(part.is_due() for part in parts):
        return
    operation = OPERATIONS[name]
    with tempfile.TemporaryDirectory(prefix="faults-", dir=MEMORY) as place:
        template = Path(os.path.realpath(place), "template")
        in_child(lambda: prepare(operation, template))
        reference = Outcome(**in_child(lambda: asdict(_reference(operation, template))))
        for module in in_child(lambda: {"all": _modules(operation, template)})["all"]:
            importlib.import_module(module)
        gc.collect()
        gc.freeze()
        Library().share()
        for part in parts:
            fault = FAULTS[part.fault]
            for n in part.numbers():
                if time.monotonic() > until or not part.add(
                    asdict(_point(operation, fault, n, template, reference))
                ):
                    break
            part.write()


def prepare(operation: Operation, template: Path) -> dict[str, Any]:
    """Make a folder with the inputs and the earlier results of an operation."""
    (template / "tmp").mkdir(parents=True)
    os.chdir(template)
    operation.prepare()
    return {}


def _reference(operation: Operation, template: Path) -> Outcome:
    with _copy(template):
        return _outcome(operation.run)


def _modules(operation: Operation, template: Path) -> list[str]:
    """Return the modules that an operation imports when it needs them; then import them once."""
    before = set(sys.modules)
    _reference(operation, template)
    return [name for name in sys.modules if name not in before and name.startswith("thresher")]


@contextlib.contextmanager
def _copy(template: Path) -> Iterator[Path]:
    """Copy the prepared folder, and go there."""
    folder = template.with_name("work")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder)
    os.chdir(folder)
    tempfile.tempdir = str(folder / "tmp")
    try:
        yield folder
    finally:
        os.chdir("/")


def _outcome(run: tuple[str, ...] | Callable[[], str], during: Any = None) -> Outcome:
    """Run an operation; its errors are not raised."""
    with _caught_output() as errors, during or contextlib.nullcontext():
        code, result = _called(run)
        gc.collect()  # objects of a failed operation may complain when they are removed
    text = errors()
    return Outcome(code, text, result, _files())


def _called(run: tuple[str, ...] | Callable[[], str]) -> tuple[int, str]:
    try:
        if isinstance(run, tuple):
            return command(*run), ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return 0, run()
    except CLEAR as error:
        print(f"{error}" or type(error).__name__, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    return 1, ""


@contextlib.contextmanager
def _caught_output() -> Iterator[Callable[[], str]]:
    """Discard standard output. Handle 2 is a file (see `in_child`): return what was added."""
    streams, begin = (sys.stdout, sys.stderr), os.lseek(2, 0, os.SEEK_END)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))  # noqa: SIM115
    text: list[str] = []
    try:
        yield lambda: text[0]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = streams
        text.append(os.pread(2, 1 << 20, begin).decode("utf-8", "replace"))


def _files() -> Snapshot:
    """Return the digests of all files in the working folder; of folders, an empty text."""
    found = {}
    for path in sorted(Path(".").rglob("*")):
        whole = "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path)] = whole
    return found


def _point(op: Operation, fault: Fault, n: int, template: Path, reference: Outcome) -> Point:
    try:
        found = in_child(lambda: asdict(_try(op, fault, n, template, reference)))
    except ChildError as error:
        return Point(n, True, [error.ending], error.output, Library().frames())
    return Point(**found)


def _try(op: Operation, fault: Fault, n: int, template: Path, reference: Outcome) -> Point:
    library, point = Library(), Point(n)
    with _copy(template) as folder:
        before, handles = _files(), len(os.listdir("/proc/self/fd"))
        library.watch(folder)

        @contextlib.contextmanager
        def armed() -> Iterator[None]:
            library.arm(fault, n)
            try:
                yield
            finally:
                point.hit = library.disarm() > 0

        first = _outcome(op.run, armed())
        if not point.hit:
            point.wrong += _unlike(op, first, reference)
            return point
        point.message = first.errors
        if any(sign in first.errors for sign in UNCLEAR):
            point.wrong.append("the error is not clear")
        if first.code == 0:
            point.wrong += _unlike(op, first, reference)
        else:
            point.wrong += _unlike_before(op, fault, first, before)
        if len(os.listdir("/proc/self/fd")) > handles:
            point.wrong.append("files are left open")
        again = op.run
        left = set(first.files) - set(reference.files)  # a checkpoint that could not be removed
        if isinstance(op.run, tuple) and (first.code != 0 or left):
            again = (*op.run, *op.again)
        point.wrong += [f"afterwards: {what}" for what in _unlike(op, _outcome(again), reference)]
        if point.wrong:
            point.frames = library.frames()
    return point


def _unlike_before(op: Operation, fault: Fault, now: Outcome, before: Snapshot) -> list[str]:
    """Return what is wrong after an operation that failed."""
    wrong = []
    if fault.harmless:
        wrong.append("it fails, though the call can be repeated")
    if now.code != 1:
        wrong.append(f"exit code {now.code}")
    reasons = (os.strerror(fault.error), "memory")
    if not any(reason in now.errors for reason in reasons) and not wrong:
        wrong.append("the error does not say the reason")
    for name in sorted(set(before) | set(now.files)):
        if not _may_change(op, name) and before.get(name) != now.files.get(name):
            wrong.append(f"{name} has changed")
    try:
        op.check()
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
    return wrong


def _unlike(op: Operation, now: Outcome, reference: Outcome) -> list[str]:
    """Return what differs from the operation without faults."""
    if now.code != 0:
        return [f"it fails: {now.errors}"]
    if now.result != reference.result:
        return ["it returns another result"]
    names = {name for name in set(now.files) ^ set(reference.files) if not _may_change(op, name)}
    different = [name for name in reference.files if now.files.get(name) != reference.files[name]]
    wrong = [f"{name} should not be there or is missing" for name in sorted(names)]
    different = [name for name in different if name not in names and not _may_change(op, name)]
    return wrong + [f"{name} has other bytes" for name in different]


def _may_change(op: Operation, name: str) -> bool:
    """Whether a run may change a file; a checkpoint, for one, holds the seconds of the run."""
    return any(name == one or name.startswith(f"{one}/") for one in op.changes)


# ---- processes -----------------------------------------------------------------------------------


class ChildError(Exception):
    """A process ended by a signal or did not end."""

    def __init__(self, ending: str, output: str) -> None:
        super().__init__(ending, output)
        self.ending = ending
        self.output = output


def in_child(work: Callable[[], dict[str, Any]], seconds: int = SECONDS) -> dict[str, Any]:
    """Do some work in a forked process; return its result."""
    with tempfile.TemporaryFile(dir=MEMORY) as file, tempfile.TemporaryFile(dir=MEMORY) as errors:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(errors.fileno(), 2)
                signal.alarm(seconds)
                file.write(json.dumps(work()).encode())
                file.flush()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status != 0:
            errors.seek(0)
            raise ChildError(_ending(status), errors.read().decode("utf-8", "replace"))
        file.seek(0)
        found: dict[str, Any] = json.loads(file.read())
    return found


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "hangs" if number == signal.SIGALRM else f"crash: {signal.Signals(number).name}"
    return f"the process ends with code {os.waitstatus_to_exitcode(status)}"
