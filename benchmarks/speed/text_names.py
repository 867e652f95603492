"""Lines of text training: whole processes, from a named VW file to a saved model with names.

- With names, one core: `thresher train --rule truncated-gradient --bits 22`, which keeps the names
  of features, against VW's `--sgd --l1 -b 22`, which has none.
- Plain commands: `thresher train FILE` against `vw --loss_function logistic FILE`, on all cores.
  VW's own default is the squared loss, whose values cannot be compared. VW's seconds are those of
  its whole pass. Ours are those until the mean progressive loss is VW's final one, plus those from
  the last row to the saved model. The events of progress come ten times a second; times between
  two events are interpolated.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from speed.line import Line
from speed.processes import FOLDER, Run, net
from speed.text import OURS, SGD, loss_of, losses, same_loss, train, version, vw

QUICK, FULL = 100_000, 500_000  # rows

Event = tuple[float, dict[str, Any]]  # when it came, and its facts


def reached(run: Run, loss: float) -> float:
    """Return the seconds until the mean loss stayed at `loss`, and those after the last row."""
    events = [(at, json.loads(line)) for at, line in run.lines if line.startswith("{")]
    course = [(at, event) for at, event in events if event["event"] == "progress"]
    above = [number for number, (_, event) in enumerate(course) if event["mean_loss"] > loss]
    then = above[-1] + 1 if above else 0
    if then == len(course):
        return float("inf")
    at, event = course[then]
    if then > 0:
        before, higher = course[then - 1]
        part = (higher["mean_loss"] - loss) / (higher["mean_loss"] - event["mean_loss"])
        at = before + part * (at - before)
    return at + run.seconds - last_row(events, course)


def last_row(events: list[Event], course: list[Event]) -> float:
    """Return the time of the last row, at the speed between the last two events of progress.

    It is before the event of the pass, which comes when the nonzero weights are counted.
    """
    end, whole = next((at, event) for at, event in events if event["event"] == "pass")
    (before, first), (at, last) = course[-2:]
    speed: float = (last["examples"] - first["examples"]) / (at - before)
    rest: int = whole["examples"] - last["examples"]
    return min(end, at + rest / speed)


def named(folder: Path, paths: dict[str, Path], rows: int) -> Line:
    """Train on one core, with names in the model."""
    ours, peer = train(folder, "--threads", "1", *OURS), vw(folder, *SGD)
    return Line(
        f"named VW text to a model with names, one core, {rows:,} rows",
        lambda: net(ours, paths, 1),
        lambda: net(peer, paths, 1),
        f"{version()} --sgd --l1",
        must=3.0,
        check=same_loss,
    )


def plain(folder: Path, paths: dict[str, Path], rows: int) -> Line:
    """Train with default options."""
    ours, peer, cores = train(folder), vw(folder), len(os.sched_getaffinity(0))

    @cache
    def target() -> float:
        return loss_of(net(peer, paths, cores).value)

    return Line(
        f"plain train FILE until VW's final loss, to a saved model, {rows:,} rows",
        lambda: net(ours, paths, cores, lambda run: reached(run, target())),
        lambda: net(peer, paths, cores),
        f"{version()}, logistic loss",
        must=2.0,
        check=losses,
    )


def lines(full: bool) -> Iterator[Line]:
    """Yield the lines of training from text, with names and with default options."""
    from vw_data import files

    rows = FULL if full else QUICK
    paths = files(FOLDER, rows)
    with tempfile.TemporaryDirectory() as name:
        yield named(Path(name), paths, rows)
        yield plain(Path(name), paths, rows)
