"""Fault points: the n-th call of an operation fails, for n = 1, 2, ... until none is left.

Each point runs in a new process, forked from one that has imported everything. It must end in one
of two ways:

- the operation fails: one clear error, all files as before, no new file, no file left open; some
  files may have changed (`Operation.changes`), and are checked;
- the operation succeeds: its results have the same bytes as without a fault.

After that the same operation must succeed in the same process, with the same bytes.
"""

from __future__ import annotations

import contextlib
import errno
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

from faults.library import FAULTS, FIND, MAP, MEMORY, NAME, REMOVE, TEMPORARY, Fault, Library
from faults.operation import Operation, Run, command
from faults.operations import OPERATIONS
from faults.parts import Part
from thresher.errors import CacheError, ModelFileError

# Files are written in memory if the system allows it: to wait for a disk at each sync takes long.
PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
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
        Whether there was an n-th call. Without one, the run has no fault.
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
    with tempfile.TemporaryDirectory(prefix="faults-", dir=PLACE) as place:
        template = Path(os.path.realpath(place), "template")
        reference, modules = reference_of(operation, template)
        for module in modules:
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


def reference_of(operation: Operation, template: Path) -> tuple[Outcome, list[str]]:
    """Prepare an operation in a folder, and run it twice without a fault.

    It must succeed without an unclear message, and write the same bytes again.

    Returns
    -------
    outcome : Outcome
    modules : list of str
        Those that it imports when it needs them.
    """
    found = in_child(lambda: _runs(operation, template))
    reference, again = (Outcome(**facts) for facts in found["outcomes"])
    if reference.code != 0 or any(sign in reference.errors for sign in UNCLEAR):
        raise RuntimeError(f"it fails without a fault: {reference.errors}")
    if wrong := _unlike(operation, again, reference):
        raise RuntimeError(f"two runs without a fault differ: {wrong}")
    return reference, found["modules"]


def _runs(operation: Operation, template: Path) -> dict[str, Any]:
    before = set(sys.modules)
    prepare(operation, template)
    outcomes = []
    for _ in range(2):
        with _copy(template):
            outcomes.append(asdict(outcome_of(operation.run)))
    new = [name for name in sys.modules if name not in before and name.startswith("thresher")]
    return {"outcomes": outcomes, "modules": new}


def prepare(operation: Operation, template: Path) -> dict[str, Any]:
    """Make a folder with the inputs and the earlier results of an operation."""
    (template / "tmp").mkdir(parents=True)
    os.chdir(template)
    operation.prepare()
    return {}


@contextlib.contextmanager
def _copy(template: Path) -> Iterator[Path]:
    """Copy the prepared folder, and go there."""
    folder = template.with_name("work")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)
    os.chdir(folder)
    tempfile.tempdir = str(folder / "tmp")
    try:
        yield folder
    finally:
        os.chdir("/")


def outcome_of(run: Run, during: Any = None) -> Outcome:
    """Run an operation; its errors are not raised."""
    with _caught_output() as errors, during or contextlib.nullcontext():
        code, result = _called(run)
        gc.collect()  # objects of a failed operation may complain when they are removed
    text = errors()
    return Outcome(code, text, result, _files())


def _called(run: Run) -> tuple[int, str]:
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
    return {str(path): _content(path) for path in sorted(Path(".").rglob("*"))}


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    return "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()


def _open_files() -> dict[int, str]:
    """Return what is open, by handle."""
    found = {}
    for handle in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(FileNotFoundError):  # the one that listed them
            found[handle] = os.readlink(f"/proc/self/fd/{handle}")
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
        before, handles = _files(), _open_files()
        library.watch(folder, unnamed=not op.named)

        @contextlib.contextmanager
        def armed() -> Iterator[None]:
            library.arm(fault, n)
            try:
                yield
            finally:
                point.hit = library.disarm() > 0

        first, failed = outcome_of(op.run, armed()), library.failed()
        if not point.hit:
            point.wrong += _unlike(op, first, reference)
            return point
        now_open = _open_files()
        if new := [now_open[handle] for handle in now_open.keys() - handles]:
            point.wrong.append(f"files are left open: {new}")
        point.message = first.errors
        if any(sign in first.errors for sign in UNCLEAR):
            point.wrong.append("the error is not clear")
        if first.code == 0:
            point.wrong += _unlike(op, first, reference, failed)
        else:
            point.wrong += _unlike_before(op, fault, failed, first, before, reference)
        again = op.run
        if isinstance(op.run, tuple) and any(_is_left(op, first, reference)):
            again = (*op.run, *op.again)
        now = outcome_of(again)
        point.wrong += [f"afterwards: {what}" for what in _unlike(op, now, reference, failed)]
        if point.wrong:
            point.frames = library.frames()
    return point


def _is_left(op: Operation, now: Outcome, reference: Outcome) -> Iterator[bool]:
    """Yield whether there is something from which a run goes on: a checkpoint."""
    for name in now.files:
        kept = op.may_change(name) and not op.is_stable(name)
        yield kept and (now.code != 0 or name not in reference.files)


def _unlike_before(
    op: Operation, fault: Fault, failed: int, now: Outcome, before: Snapshot, reference: Outcome
) -> list[str]:
    """Return what is wrong after an operation that failed; `failed` are the kinds of the calls."""
    wrong = []
    if fault.harmless:
        wrong.append("it fails, though the call can be repeated")
    if now.code != 1:
        wrong.append(f"exit code {now.code}")
    if not any(reason in now.errors for reason in _reasons(fault, failed)) and not wrong:
        wrong.append("the error does not say the reason")
    for name in sorted(set(before) | set(now.files) - _leftovers(now, failed)):
        content = now.files.get(name)
        is_new = content == reference.files.get(name) or not op.is_stable(name)
        may_be_new = failed & NAME and name in op.together
        if content != before.get(name) and not op.may_change(name) and not (may_be_new and is_new):
            wrong.append(f"{name} has changed")
    try:
        op.check()
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
    return wrong


def _reasons(fault: Fault, failed: int) -> Iterator[str]:
    """Yield words of which an error must have one; `failed` are the kinds of the failed calls."""
    if failed & (MEMORY | MAP):
        yield "memory"
    if failed & ~(MEMORY | MAP):
        yield os.strerror(fault.error)
        if fault.error == errno.ENOSPC:
            yield "no space"
    if failed & FIND:
        yield ""  # `os.path.exists` says that there is no such file; then an error may say so


def _unlike(op: Operation, now: Outcome, reference: Outcome, failed: int = 0) -> list[str]:
    """Return what differs from the operation without faults."""
    if now.code != 0:
        return [f"it fails: {now.errors}"]
    if now.result != reference.result:
        return ["it returns another result"]
    wrong = []
    other = op.is_other(now.errors)
    for name in sorted((set(now.files) | set(reference.files)) - _leftovers(now, failed)):
        if name not in now.files or name not in reference.files:
            if op.is_stable(name) or not op.may_change(name):
                wrong.append(f"{name} should not be there or is missing")
        elif now.files[name] != reference.files[name] and op.is_stable(name) and not other:
            wrong.append(f"{name} has other bytes")
    return wrong


def _leftovers(now: Outcome, failed: int) -> set[str]:
    """Return the temporary files that were left because they could not be removed."""
    names = set()
    if failed & TEMPORARY:
        names |= {name for name in now.files if name.startswith("tmp/")}
    if failed & REMOVE:  # files that get another name
        names |= {name for name in now.files if name.endswith(".part")}
    return names


# ---- processes -----------------------------------------------------------------------------------


class ChildError(Exception):
    """A process ended by a signal or did not end."""

    def __init__(self, ending: str, output: str) -> None:
        super().__init__(ending, output)
        self.ending = ending
        self.output = output


def in_child(work: Callable[[], dict[str, Any]], seconds: int = SECONDS) -> dict[str, Any]:
    """Do some work in a forked process; return its result."""
    with tempfile.TemporaryFile(dir=PLACE) as file, tempfile.TemporaryFile(dir=PLACE) as errors:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(errors.fileno(), 2)
                signal.alarm(seconds)
                gc.freeze()  # a collection looks at new objects only
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
