"""Lines of text training: whole processes, from a named VW file to a saved model.

Both programs run as processes. Seconds are net: those of the same command on a file of one line
are subtracted, as in benchmarks/vw.py; what `check` returns shows the start-up times, too.

- With names, one core: `thresher train --rule truncated-gradient --bits 22`, which keeps the names
  of features, against VW's `--sgd --l1 -b 22`, which has none.
- Plain commands: `thresher train FILE` against `vw --loss_function logistic FILE`, on all cores.
  VW's own default is the squared loss, whose values cannot be compared. VW's seconds are those of
  its whole pass. Ours are those until the mean progressive loss is VW's final one, plus those from
  the last row to the saved model.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from speed.line import Line, Timed

FOLDER = Path(__file__).resolve().parents[2] / "build" / "bench"
DRIVER = "import sys, pylibvw; v = pylibvw.vw(sys.argv[1:]); v.run_parser(); v.finish()"
SHELL = "import sys; from thresher.cli import main; sys.exit(main())"
SGD = ("--sgd", "--l1", "1e-7", "--power_t", "0", "-l", "0.015", "-b", "22")
OURS = ("--rule", "truncated-gradient", "--gravity", "1e-7", "--eta0", "0.015", "--bits", "22")
ONE_CORE = ("--threads", "1")


class Ran(NamedTuple):
    """One process: its seconds, the final loss, and the course of (seconds, mean loss)."""

    seconds: float
    loss: float
    course: list[tuple[float, float]]


def ran(command: list[str], cores: int | None) -> tuple[float, list[tuple[float, str]]]:
    """Run a command on some cores; return its seconds, and its lines with their times."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    # Bytecode is kept, as in an installed package.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(FOLDER / "bytecode")}
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    ) as process:
        assert process.stdout is not None
        lines = [(time.perf_counter() - began, line) for line in process.stdout]
    if process.returncode:
        raise RuntimeError(" ".join(command) + "\n" + "".join(text for _, text in lines))
    return time.perf_counter() - began, lines


def vw(data: Path, options: tuple[str, ...], cores: int | None) -> Ran:
    """Train with VW; save the model."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model")
        command = [sys.executable, "-c", DRIVER, "-d", str(data), "-f", str(model)]
        seconds, lines = ran([*command, "--loss_function", "logistic", *options], cores)
        assert model.stat().st_size > 0
    loss = next(float(text.split("=")[1]) for _, text in lines if text.startswith("average loss"))
    return Ran(seconds, loss, [])


def thresher(data: Path, options: tuple[str, ...], cores: int | None) -> Ran:
    """Train with Thresher; save the model."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model")
        command = [sys.executable, "-c", SHELL, "train", str(data), "-m", str(model), "--json"]
        seconds, lines = ran([*command, *options], cores)
        assert model.stat().st_size > 0
    events = [(at, json.loads(line)) for at, line in lines if line.startswith("{")]
    means = [(at, event) for at, event in events if event.get("mean_loss")]
    # The event "done" comes when the model is saved: what was done after the last row counts.
    course = [(at, event["mean_loss"]) for at, event in means if event["event"] != "done"]
    return Ran(seconds, means[-1][1]["mean_loss"], course)


def reached(run: Ran, loss: float) -> float:
    """Return the seconds until the mean loss stayed at `loss`, and those after the last row."""
    above = [number for number, (_, mean) in enumerate(run.course) if mean > loss]
    then = above[-1] + 1 if above else 0
    if then == len(run.course):
        return float("inf")
    return run.course[then][0] + run.seconds - run.course[-1][0]


def lines(full: bool) -> Iterator[Line]:
    """Yield the lines of training from text, with names and with default options."""
    from vw_data import files

    rows = 500_000 if full else 100_000
    paths = files(FOLDER, rows)
    data, one = paths["named.vw"], paths["one.vw"]
    peer = f"VW {importlib.metadata.version('vowpalwabbit')}"

    @cache
    def target() -> float:
        return vw(data, (), None).loss

    def net(run: Any, options: tuple[str, ...], cores: int | None, until: bool = False) -> Timed:
        whole, start = run(data, options, cores), run(one, options, cores)
        seconds = reached(whole, target()) if until else whole.seconds
        return Timed(seconds - start.seconds, (whole.loss, start.seconds))

    def shown(ours: tuple[float, float], other: tuple[float, float]) -> str:
        return f"loss {ours[0]:.4f} / {other[0]:.4f}, start-up {ours[1]:.2f} / {other[1]:.2f} s"

    def same(ours: tuple[float, float], other: tuple[float, float]) -> str:
        assert abs(ours[0] - other[0]) < 0.002 * other[0], (ours, other)
        return shown(ours, other)

    yield Line(
        f"named VW text to a model with names, one core, {rows:,} rows",
        lambda: net(thresher, (*OURS, *ONE_CORE), 1),
        lambda: net(vw, SGD, 1),
        f"{peer} --sgd --l1",
        must=3.0,
        check=same,
    )
    yield Line(
        f"plain train FILE until VW's final loss, to a saved model, {rows:,} rows",
        lambda: net(thresher, (), None, until=True),
        lambda: net(vw, (), None),
        f"{peer}, logistic loss",
        must=2.0,
        check=shown,
    )
