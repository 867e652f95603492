"""Imported at the start of every process that `make coverage` measures, by a .pth file.

At its end, gcov adds the counts of a process to files, in place. A process that is killed at that
moment, or that has a full disk, leaves broken files, and gcov adds nothing to them. So processes
that run at the same time have different folders, and a folder with an error gets no more counts.
"""

import fcntl
import os
from pathlib import Path

_locks: list[int] = []  # held until the process ends


def folder_for_counts(folders: Path) -> Path:
    """Lock a folder that no process uses and that has no error; return it."""
    number = 0
    while True:
        folder = folders / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            _locks.append(lock)
            errors = folder / "errors"
            if not (errors.exists() and errors.stat().st_size):
                return folder
        number += 1


def start(settings: Path) -> None:
    """Measure this process; the counts of the core go to a folder of its own."""
    import coverage  # only where it is measured

    coverage.process_startup()
    folder = folder_for_counts(settings.with_name("core"))
    os.environ["GCOV_PREFIX"] = str(folder)
    os.environ["GCOV_ERROR_FILE"] = str(folder / "errors")


if "COVERAGE_PROCESS_START" in os.environ:
    start(Path(os.environ["COVERAGE_PROCESS_START"]))
