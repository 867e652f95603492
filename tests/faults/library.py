"""The preloaded library that makes calls fail (`*.cpp`): how to compile and control it.

It controls the process that preloads it: start that process with `environment()`.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
BUILT = ROOT / "build" / "faults" / "faults.so"

# Kinds of calls, as in faults.hpp.
OPEN, CREATE, READ, WRITE, SYNC, NAME, REMOVE, MAP = (1 << place for place in range(8))
SIZE, LOOK, CLOSE, MEMORY, THREAD, FIND, ACCESS, LOCK = (1 << place for place in range(8, 16))
TEMPORARY = 1 << 16
_SPACE = CREATE | WRITE | SYNC | NAME | SIZE | CLOSE
_FILES = _SPACE | OPEN | READ | LOOK | MAP


@dataclass(frozen=True)
class Fault:
    """What goes wrong.

    Attributes
    ----------
    kinds : int
        The calls that are counted.
    error : int
        The error number; 0: half of the bytes are read or written.
    from_then_on : bool
        All counted calls from the n-th on fail, not only the n-th.
    harmless : bool
        The operation must succeed all the same.
    """

    kinds: int
    error: int
    from_then_on: bool = False
    harmless: bool = False


FAULTS = {
    "disk error, once": Fault(_FILES | REMOVE, errno.EIO),
    "disk error, from then on": Fault(_FILES, errno.EIO, from_then_on=True),
    "disk full, once": Fault(_SPACE, errno.ENOSPC),
    "disk full, from then on": Fault(_SPACE, errno.ENOSPC, from_then_on=True),
    "interrupted call": Fault(OPEN | CREATE | READ | WRITE | SYNC | SIZE, errno.EINTR, False, True),
    "half of the bytes": Fault(READ | WRITE, 0, False, True),
    "no memory": Fault(MEMORY, errno.ENOMEM),
    "no thread": Fault(THREAD, errno.EAGAIN),
    "no entry": Fault(FIND, errno.EIO),
    "no access": Fault(ACCESS, errno.EPERM, harmless=True),
    "no lock": Fault(LOCK, errno.ENOLCK),
}


def works() -> bool:
    """Return whether the library can be preloaded: not beside another one, as of a sanitizer."""
    alone = os.environ.get("LD_PRELOAD", "") in ("", str(BUILT))
    return platform.libc_ver()[0] == "glibc" and alone


def environment() -> dict[str, str]:
    """Compile the library if a source is newer; return the environment that preloads it."""
    sources = sorted(FOLDER.glob("*.cpp"))
    newest = max(path.stat().st_mtime for path in (*sources, FOLDER / "faults.hpp"))
    if not BUILT.exists() or BUILT.stat().st_mtime < newest:
        BUILT.parent.mkdir(parents=True, exist_ok=True)
        made = BUILT.with_suffix(f".{os.getpid()}")
        flags = ["-std=c++20", "-O1", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
        compiler = os.environ.get("CXX", "c++").split()
        subprocess.run([*compiler, *flags, "-o", made, *sources, "-ldl"], check=True)
        made.rename(BUILT)
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    return {**os.environ, **one_thread, "LD_PRELOAD": str(BUILT), "PYTHONHASHSEED": "0"}


class Library:
    """The library in this process."""

    def __init__(self) -> None:
        self._calls = ctypes.CDLL(None)
        self._calls.faults_disarm.restype = ctypes.c_long

    def share(self) -> None:
        """Let `frames` show what forked processes did; call it before they are forked."""
        self._calls.faults_share()
        _addresses("/thresher/_core."), _addresses("/libstdc++.so")  # known to them, too

    def watch(self, folder: Path, unnamed: bool = True) -> None:
        """Count calls on files in a folder, and allocations and threads of the core.

        Parameters
        ----------
        folder : Path
        unnamed : bool
            Whether files can be made there without a name, by O_TMPFILE.
        """
        numbers = [*_addresses("/thresher/_core."), *_addresses("/libstdc++.so")]
        addresses = map(ctypes.c_size_t, numbers)
        self._calls.faults_watch(os.fsencode(folder), int(unnamed), *addresses)

    def watch_handle(self, handle: int) -> None:
        """Count calls on an open file, too."""
        self._calls.faults_watch_handle(handle)

    def arm(self, fault: Fault, n: int) -> None:
        """Let the n-th counted call fail."""
        then_on = int(fault.from_then_on)
        self._calls.faults_arm(fault.kinds, ctypes.c_long(n), then_on, fault.error)

    def disarm(self) -> int:
        """Let no call fail; return how many have failed."""
        return int(self._calls.faults_disarm())

    def failed(self) -> int:
        """Return the kinds of the calls that have failed."""
        return int(self._calls.faults_failed())

    def log(self, handle: int) -> None:
        """Write all changes of watched files to a log; -1 ends it."""
        self._calls.faults_log(handle)

    def frames(self) -> list[str]:
        """Return where the first failed call was made: files of code with offsets."""
        found = (ctypes.c_void_p * 24)()
        count = self._calls.faults_frames(found)
        places = [_place(found[number] or 0) for number in range(count)]
        return [place for place in places if not place.startswith(("faults.so", "libpython"))]


@functools.cache
def _maps() -> list[tuple[int, int, str]]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = [re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+ +(/.*)", line) for line in lines]
    return [(int(m[1], 16), int(m[2], 16), m[3]) for m in found if m]


@functools.cache
def _addresses(name: str) -> tuple[int, int]:
    found = [(begin, end) for begin, end, path in _maps() if name in path]
    return min(begin for begin, _ in found), max(end for _, end in found)


def _place(address: int) -> str:
    for begin, end, path in _maps():
        if begin <= address < end:
            start = min(first for first, _, other in _maps() if other == path)
            return f"{os.path.basename(path)}+{address - start:#x}"
    return f"{address:#x}"
