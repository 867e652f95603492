"""The cache of a run: made where there is none, or where it is not of these data any more."""

from __future__ import annotations

import os
from typing import Any

from thresher.cli.render.progress import Shown
from thresher.data.block import Block
from thresher.data.detect import CACHE_MAGIC
from thresher.data.scan import scan
from thresher.data.source import Source
from thresher.data.writing import why_not_current, write
from thresher.errors import ParameterError
from thresher.rules import core_args
from thresher.training.fitting import Specification


def _check_may_go(path: str) -> None:
    """Raise ParameterError where making a cache would overwrite what is none."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            head = file.read(len(CACHE_MAGIC))
        if head and head != CACHE_MAGIC:
            raise ParameterError(f"--cache {path}: the file is there and is no cache; it stays")


def cached(
    source: Source, path: str, reading: dict[str, Any], watcher: Shown, spec: Specification
) -> Source:
    """Return the cache of a source, made now where it is not there or not current.

    Its values are of the learner's number type, which halves what has to be read.
    """
    dtype = core_args.rows_dtype(spec.rule, spec.params)
    reason = why_not_current(path, source, dtype)
    if reason is not None:
        _check_may_go(path)
        watcher.tell("note", message=f"making the cache {path}: {reason}")

        def see(block: Block) -> None:
            if watcher.stops():
                raise KeyboardInterrupt

        write(source, path, "cache", see, dtype)
    kept = {name: reading[name] for name in ("bits", "multilabel", "threads") if name in reading}
    made = scan(path, format="cache", kinds=source.kinds, **kept)
    made.given = source.reading
    made.bad_lines.count, made.bad_lines.first = source.bad_lines.count, source.bad_lines.first
    return made
