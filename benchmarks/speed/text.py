"""Text: training from VW text without names, and making a cache, against Vowpal Wabbit.

Every run is a process, measured from outside. The time of the same command on a file of one line,
the start-up, is subtracted. VW is the native driver of its wheel: `pylibvw.vw([...]).run_parser()`.
Both programs hash names to 22 bits, make one pass and write a model. Both may use one core or two;
on one core, the time is that of the processor, which other programs do not disturb.

The wheel is looked for in the path of Python, and in the environment that
`python benchmarks/vw.py --install` makes.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from speed.line import Line, Timed

ROOT = Path(__file__).resolve().parents[2]
PEER = ROOT / "build" / "peers" / "vw" / "bin" / "python"
DRIVER = "import sys, pylibvw; v = pylibvw.vw(sys.argv[1:]); v.run_parser(); v.finish()"
VERSION = "Vowpal Wabbit 9.11"
BITS, ETA, GRAVITY = "22", "0.015", "1e-7"
QUICK, FULL = 200_000, 500_000  # rows


@dataclass(frozen=True)
class Run:
    """One process: its seconds, the most memory it used in MiB, and what it printed."""

    seconds: float
    memory: float
    text: str


def run(command: list[str], cores: int) -> Run:
    """Run a command on the first of the cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(" ".join(command) + "\n" + text)
    seconds = usage.ru_utime + usage.ru_stime if cores == 1 else wall
    return Run(seconds, usage.ru_maxrss / 1024, text)


def net(command: Callable[[Path], list[str]], data: Path, one: Path, cores: int) -> Timed:
    """Time a command on the data, less its best time of two on a file of one line."""
    startup = min(run(command(one), cores).seconds for _ in range(2))
    whole = run(command(data), cores)
    return Timed(whole.seconds - startup, whole)


def vw(folder: Path, *options: str) -> Callable[[Path], list[str]]:
    """Return the command of VW for a file."""
    here = importlib.util.find_spec("pylibvw") is not None
    python = sys.executable if here else str(PEER)
    rule = ["--sgd", "--l1", GRAVITY, "--power_t", "0", "-l", ETA, "--loss_function", "logistic"]
    return lambda data: [
        python, "-c", DRIVER, "-d", str(data), "-f", str(folder / "vw.model"), "-b", BITS, *rule,
        *options,
    ]  # fmt: skip


def thresher(command: str, *options: str) -> Callable[[Path], list[str]]:
    """Return a command of Thresher for a file."""
    begin = [sys.executable, "-m", "thresher.cli", command]
    return lambda data: [*begin, str(data), *options]


def loss_of(text: str) -> float:
    """Return the mean progressive loss that a program printed."""
    for line in text.splitlines():
        if line.startswith("average loss"):
            return float(line.split("=")[1])
        if line.startswith("{") and '"mean_loss":' in line:
            found = float(line.split('"mean_loss":')[1].split(",")[0].strip(" }"))
    return found


def same_loss(ours: Run, peer: Run) -> str:
    """Compare the progressive losses."""
    a, b = loss_of(ours.text), loss_of(peer.text)
    assert abs(a - b) < 0.01, (a, b)
    return f"progressive loss {a:.4f}, VW {b:.4f}"


def same_file(ours: Run, peer: Run) -> str:
    """Compare the memory of both; the caches themselves have different formats."""
    return f"peak memory {ours.memory:.0f} MiB, VW {peer.memory:.0f} MiB"


def training(folder: Path, paths: dict[str, Path], cores: int) -> Line:
    """Train from named text, one pass, without names in the model."""
    options = ["-m", str(folder / "thresher.model"), "--bits", BITS, "--passes", "1", "--no-names"]
    options += ["--threads", str(cores), "--json", "--rule", "truncated-gradient"]
    ours = thresher("train", *options, "--gravity", GRAVITY, "--eta0", ETA)
    data, one = paths["named.vw"], paths["one.vw"]
    return Line(
        f"thresher train --no-names, VW text, {'one core' if cores == 1 else 'both cores'}",
        lambda: net(ours, data, one, cores),
        lambda: net(vw(folder), data, one, cores),
        f"{VERSION} --sgd --l1",
        4.0 if cores == 1 else 3.0,
        check=same_loss,
    )


def caching(folder: Path, paths: dict[str, Path], cores: int) -> Line:
    """Make a cache of named text; VW makes one as it learns (it has no command that only does)."""
    ours = thresher("convert", str(folder / "rows.cache"), "--threads", str(cores))
    peer = vw(folder, "--cache_file", str(folder / "rows.vw-cache"), "-k")
    data, one = paths["named.vw"], paths["one.vw"]
    return Line(
        f"thresher convert, VW text to cache, {'one core' if cores == 1 else 'both cores'}",
        lambda: net(ours, data, one, cores),
        lambda: net(peer, data, one, cores),
        f"{VERSION} --cache_file",
        2.0,
        check=same_file,
    )


def lines(full: bool) -> Iterator[Line]:
    """Yield the lines of reading text."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from vw_data import files

    paths = files(ROOT / "build" / "bench", FULL if full else QUICK)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for cores in (1, 2):
            yield training(folder, paths, cores)
        for cores in (1, 2):
            yield caching(folder, paths, cores)
