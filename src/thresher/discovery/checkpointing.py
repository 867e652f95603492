"""Checkpoints of a discovery: a resumed run has the same result."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from thresher.data.block import Position
from thresher.data.matrix_source import MatrixSource
from thresher.data.shuffled import ShuffledSource
from thresher.discovery.row_facts import RowFacts
from thresher.errors import ModelFileError
from thresher.training import checkpoint as checkpoints
from thresher.training.checkpoint import TrainingCheckpoint
from thresher.training.observer import Interrupted
from thresher.training.run_options import RunOptions

if TYPE_CHECKING:
    from thresher.data.source import Source
    from thresher.discovery.readings import Readings

KIND = "discovery"  # the kind of run


def write(readings: Readings, source: Source | MatrixSource, options: RunOptions) -> None:
    """Write the state between two visits.

    Parameters
    ----------
    readings : Readings
    source : Source or MatrixSource
    options : RunOptions
        With a checkpoint file.
    """
    assert options.checkpoint is not None
    at = readings.position
    about = {
        "run": KIND,
        "plan": asdict(readings.plan),
        "classes": _plain(readings.labels.classes),
        "labels": readings.labels.state,
        "input": [source.identity(), source.facts()],
        "reading": source.reading_state,
        "phase": readings.phase,
        "at_once": readings.at_once,
        "groups": readings.groups,
        "rows": readings.rows,
        "total": readings.total,
        "width": str(readings.width),
        "position": None if at is None else at.to_json(),
        "blocks": readings.blocks,
        "dealer": readings.dealer.state,
        "weights": [readings.weights.total, readings.weights.rows],
        "digests": readings.digests.state,
        "checks": readings.checks.state,
        "facts": readings.facts is not None,
    }
    facts = readings.facts
    rows = [] if facts is None else [facts.p, facts.lengths, facts.hashes]
    states = [
        *readings.states(), readings.checks.hashes, *(array.tobytes() for array in rows)
    ]  # fmt: skip
    names = dict(readings.names.names)
    digest = TrainingCheckpoint(about, states, names=names or None).write(options.checkpoint)
    options.observer.tell("checkpoint", examples=readings.rows, digest=digest)


def interrupt(readings: Readings, source: Source | MatrixSource, options: RunOptions) -> NoReturn:
    """Stop between two visits or after the last one; a resumed run continues from here.

    Parameters
    ----------
    readings : Readings
    source : Source or MatrixSource
    options : RunOptions
    """
    if options.checkpoint is None or (readings.phase == 0 and readings.rows == 0):
        raise KeyboardInterrupt
    write(readings, source, options)
    raise Interrupted(readings.rows)


def resume(readings: Readings, source: Source | MatrixSource, options: RunOptions) -> None:
    """Continue from a checkpoint, if there is one.

    Raises ModelFileError if it is of another run.

    Parameters
    ----------
    readings : Readings
        New readings with the same plan.
    source : Source or MatrixSource
    options : RunOptions
    """
    path = options.checkpoint
    assert path is not None
    try:
        saved = checkpoints.read(path)
    except FileNotFoundError:
        return
    about = saved.about
    if about.get("run") != KIND:
        raise ModelFileError(f"{path}: is not from a discovery of features")
    if not readings.seeded:
        readings.take_seed(int(about["plan"]["seed"]))
    for name, value in asdict(readings.plan).items():
        _same(path, name, about["plan"].get(name), value)
    if about["labels"] is None:
        _same(path, "the list of classes", about["classes"], _plain(readings.labels.classes))
    now = json.loads(json.dumps(source.identity()))
    _same(path, "the options of reading", about["input"][0], now)
    held = isinstance(source, MatrixSource | ShuffledSource)  # no digest of blocks would notice it
    if held and not source.is_unchanged(about["input"][1]):
        raise ModelFileError(f"{path}: the rows are not those of the run that wrote it")
    if about.get("groups", "") != readings.groups:
        raise ModelFileError(f"{path}: groups= is not that of the run that wrote it")
    outputs = len(readings.cores)
    states, hashes = saved.states[:outputs], saved.states[outputs]
    rows = saved.states[outputs + 1 :]
    readings.restore(states)
    readings.labels.state = about["labels"]
    source.reading_state = about["reading"]
    readings.phase, readings.rows = about["phase"], about["rows"]
    readings.at_once, readings.total = about.get("at_once", 0), about.get("total", 0)
    readings.width, readings.blocks = int(about["width"]), about["blocks"]
    at = about["position"]
    readings.position = None if at is None else Position.from_json(at)
    readings.weights.total, readings.weights.rows = about["weights"]
    readings.dealer.state, readings.digests.state = about["dealer"], about["digests"]
    readings.checks.restore(about["checks"], hashes)
    if about["facts"]:
        p, lengths, of_rows = rows
        readings.facts = RowFacts(
            np.frombuffer(p).reshape(outputs, -1).copy(),
            np.frombuffer(lengths, np.int64).copy(),
            np.frombuffer(of_rows, np.uint64).copy(),
        )
    for key, word in (saved.names or {}).items():
        readings.names.add(key, word)
    options.observer.tell("resumed", examples=readings.rows, digest=saved.digest)


def _same(path: str, name: str, before: Any, now: Any) -> None:
    if before != now:
        raise ModelFileError(
            f"{path}: {name} was {before!r} in the run that wrote it, and is {now!r} now; a "
            f"resumed run needs the same"
        )


def _plain(classes: NDArray[Any] | None) -> Any:
    return None if classes is None else classes.tolist()
