"""Lines of text training: whole processes, from a named VW file to a saved model with names.

- With names, one core: `thresher train --rule truncated-gradient --bits 22`, which keeps the names
  of features, against VW's `--sgd --l1 -b 22`, which has none.
- Plain commands: `thresher train FILE` against `vw --loss_function logistic FILE`, on all cores.
  VW's own default is the squared loss, whose values cannot be compared. VW's seconds are those of
  its whole pass. Ours are those until the mean progressive loss is VW's final one, plus those from
  the last row to the saved model.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from speed.line import Line
from speed.processes import FOLDER, Run, net
from speed.text import OURS, SGD, loss_of, losses, same_loss, train, version, vw

QUICK, FULL = 100_000, 500_000  # rows


def reached(run: Run, loss: float) -> float:
    """Return the seconds until the mean loss stayed at `loss`, and those after the last row."""
    events = [(at, json.loads(line)) for at, line in run.lines if line.startswith("{")]
    # The event "done" comes when the model is saved: what was done after the last row counts.
    course = [
        (at, event["mean_loss"])
        for at, event in events
        if event.get("mean_loss") and event["event"] != "done"
    ]
    above = [number for number, (_, mean) in enumerate(course) if mean > loss]
    then = above[-1] + 1 if above else 0
    if then == len(course):
        return float("inf")
    return course[then][0] + run.seconds - course[-1][0]


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
