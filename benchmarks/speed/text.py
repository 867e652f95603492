"""Text: training from VW text without names, and making a cache, against Vowpal Wabbit.

Every run is a process, as `speed/processes.py` says. Both programs hash names to 22 bits, make one
pass and write a model. Both may use one core or two.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
from collections.abc import Iterator
from pathlib import Path

from speed.line import Line
from speed.processes import FOLDER, THRESHER, VW, Command, Run, net

BITS, ETA, GRAVITY = "22", "0.015", "1e-7"
SGD = ("--sgd", "--l1", GRAVITY, "--power_t", "0", "-l", ETA, "-b", BITS)
OURS = ("--rule", "truncated-gradient", "--gravity", GRAVITY, "--eta0", ETA, "--bits", BITS)
QUICK, FULL = 200_000, 500_000  # rows


def vw(folder: Path, *options: str) -> Command:
    """Return VW's command for a file; it saves a model."""
    end = ("-f", str(folder / "vw.model"), "--loss_function", "logistic", *options)
    return lambda data: (*VW, "-d", str(data), *end)


def train(folder: Path, *options: str) -> Command:
    """Return Thresher's command for a file; it saves a model."""
    end = ("-m", str(folder / "thresher.model"), "--json", *options)
    return lambda data: (*THRESHER, "train", str(data), *end)


def loss_of(run: Run) -> float:
    """Return the mean progressive loss that a program printed."""
    for _, line in run.lines:
        if line.startswith("average loss"):
            return float(line.split("=")[1])
        if line.startswith("{") and '"mean_loss":' in line:
            found = float(line.split('"mean_loss":')[1].split(",")[0].strip(" }\n"))
    return found


def losses(ours: Run, peer: Run) -> str:
    """Show the progressive losses and the start-up times of both."""
    return (
        f"loss {loss_of(ours):.4f} / {loss_of(peer):.4f}, "
        f"start-up {ours.startup:.2f} / {peer.startup:.2f} s"
    )


def same_loss(ours: Run, peer: Run) -> str:
    """Compare the progressive losses."""
    a, b = loss_of(ours), loss_of(peer)
    assert abs(a - b) < 0.002 * b, (a, b)
    return losses(ours, peer)


def memory(ours: Run, peer: Run) -> str:
    """Show the memory of both; the caches themselves have different formats."""
    return f"peak memory {ours.memory:.0f} MiB, VW {peer.memory:.0f} MiB"


def where(cores: int) -> str:
    """Return the words for a number of cores."""
    return "one core" if cores == 1 else "both cores"


def training(folder: Path, paths: dict[str, Path], cores: int) -> Line:
    """Train from named text, one pass, without names in the model."""
    ours = train(folder, "--passes", "1", "--no-names", "--threads", str(cores), *OURS)
    peer = vw(folder, *SGD)
    return Line(
        f"thresher train --no-names, VW text, {where(cores)}",
        lambda: net(ours, paths, cores),
        lambda: net(peer, paths, cores),
        f"{version()} --sgd --l1",
        4.0 if cores == 1 else 3.0,
        check=same_loss,
    )


def caching(folder: Path, paths: dict[str, Path], cores: int) -> Line:
    """Make a cache of named text; VW makes one as it learns (it has no command that only does)."""
    end = (str(folder / "rows.cache"), "--threads", str(cores))
    peer = vw(folder, *SGD, "--cache_file", str(folder / "rows.vw-cache"), "-k")
    return Line(
        f"thresher convert, VW text to cache, {where(cores)}",
        lambda: net(lambda data: (*THRESHER, "convert", str(data), *end), paths, cores),
        lambda: net(peer, paths, cores),
        f"{version()} --cache_file",
        2.0,
        check=memory,
    )


def version() -> str:
    """Return the name and version of the peer."""
    return f"VW {importlib.metadata.version('vowpalwabbit')}"


def lines(full: bool) -> Iterator[Line]:
    """Yield the lines of reading text."""
    from vw_data import files

    paths = files(FOLDER, FULL if full else QUICK)
    with tempfile.TemporaryDirectory() as name:
        for cores in (1, 2):
            yield training(Path(name), paths, cores)
        for cores in (1, 2):
            yield caching(Path(name), paths, cores)
