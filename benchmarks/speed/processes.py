"""Processes that lines time from outside: Thresher and Vowpal Wabbit, from a file to a file.

The seconds of a line are net: the start-up, the same command on a file of one line, is subtracted.
The start-up of a command is measured `STARTUPS` times, once for all repeats of the line, and the
best counts. If each repeat subtracted a start-up of its own, a slow start-up would make the repeat
look fast.

On one core, seconds are those of the processor, which other programs do not disturb. Otherwise they
are those of a clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from speed.line import Timed

FOLDER = Path(__file__).resolve().parents[2] / "build" / "bench"
# The native driver of VW's wheel.
VW = (sys.executable, "-c",
      "import sys, pylibvw; v = pylibvw.vw(sys.argv[1:]); v.run_parser(); v.finish()")  # fmt: skip
# As the script that the installed package provides.
THRESHER = (sys.executable, "-c", "import sys; from thresher.cli import main; sys.exit(main())")
STARTUPS = 5

Command = Callable[[Path], tuple[str, ...]]  # of a file of rows


@dataclass(frozen=True)
class Run:
    """One process: its seconds, the most memory in MiB, and its lines with their times."""

    seconds: float
    memory: float
    lines: list[tuple[float, str]]
    startup: float = 0.0  # seconds of the same command on a file of one line


def run(command: tuple[str, ...], cores: int) -> Run:
    """Run a command on the first of the cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    # Bytecode is kept, as in an installed package.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(FOLDER / "bytecode")}
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    assert process.stdout is not None
    with process.stdout:
        lines = [(time.perf_counter() - began, line) for line in process.stdout]
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(" ".join(command) + "\n" + "".join(text for _, text in lines))
    seconds = usage.ru_utime + usage.ru_stime if cores == 1 else wall
    return Run(seconds, usage.ru_maxrss / 1024, lines)


@cache
def startup(command: tuple[str, ...], cores: int) -> float:
    """Return the best seconds of a command on a file of one line; the first run is not counted."""
    run(command, cores)  # it may write bytecode
    return min(run(command, cores).seconds for _ in range(STARTUPS))


def net(
    command: Command,
    paths: dict[str, Path],
    cores: int,
    seconds_of: Callable[[Run], float] = lambda whole: whole.seconds,
) -> Timed:
    """Time a command on the named rows, without its start-up. The value is the run."""
    begin = startup(command(paths["one.vw"]), cores)
    whole = run(command(paths["named.vw"]), cores)
    kept = Run(whole.seconds, whole.memory, whole.lines, begin)
    return Timed(seconds_of(whole) - begin, kept)
