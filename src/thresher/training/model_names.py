"""The names of the features in a model: kept while rows are read, or found by another reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from thresher import _core
from thresher.data.distinct import distinct_keys
from thresher.data.matrix_source import MatrixSource
from thresher.model.name_arrays import NameArrays
from thresher.rules import RULES

if TYPE_CHECKING:
    from thresher.data.block import Position
    from thresher.data.source import Source
    from thresher.training.fitted import FittedState
    from thresher.training.trainer import Trainer

MOST_BYTES = 1 << 26  # of names collected in the first pass; with more, the rows are read again


def collector(source: Source | MatrixSource) -> _core.FirstNames | None:
    """Return what collects names in the first pass; None: names need another reading.

    Text that is read only once has its names in the blocks instead; see `NameCache`.
    """
    if isinstance(source, MatrixSource) or not (source.named and source.rereadable):
        return None
    if not source.collects_names:
        return None
    first = _core.FirstNames(source.bits or 0, MOST_BYTES)
    for part in source.parts:
        part.collector = first
    return first


def requested(trainer: Trainer, position: Position | None) -> bool | str | _core.FirstNames:
    """Return which names the blocks of a pass have, after a position; see `Source.blocks`."""
    if trainer.names is not None:
        return "blocks"
    first = trainer.first_names
    return first if first is not None and trainer.number == 0 and position is None else False


def names_of(trainer: Trainer, state: FittedState) -> Mapping[int, str]:
    """Return the names of features with nonzero weights, where the source has names.

    With `all_names` of the options, also those of zero weights that may become nonzero although no
    further row has the feature.
    """
    source, first = trainer.source, trainer.first_names
    if not source.named:
        return {}
    plan = trainer.plan
    every = trainer.options.all_names and (RULES[plan.rule].cuts or plan.target is not None)
    if every and trainer.names is not None:
        return trainer.names.names()
    keys = distinct_keys([output.keys for output in state.learned(keep=True)])
    if trainer.names is not None:
        known = trainer.names.names()
        return {key: known[key] for key in keys.tolist() if key in known}
    if first is None or first.full:
        return source.names(keys.tolist(), trainer.kinds)
    if every:
        keys = distinct_keys([keys, first.keys()])
    found = NameArrays.from_bytes(*first.of(keys))
    ended = trainer.number > 0 or (trainer.learns_once and not trainer.stopped)
    if (ended and trainer.whole_passes) or len(found) == len(keys):
        return found
    # Weights of an earlier fit, whose features may be in rows that were not read.
    rest = np.setdiff1d(keys, found.named, assume_unique=True)
    return {**found, **source.names(rest.tolist(), trainer.kinds)}


def joined(before: Mapping[int, str] | None, new: Mapping[int, str]) -> Mapping[int, str] | None:
    """Return the names of both; None if there are none."""
    return {**before, **new} if before else new or None
