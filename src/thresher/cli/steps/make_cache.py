"""`--cache`: parse the data once into a cache, and read the cache."""

from __future__ import annotations

import os
from typing import Any

from thresher.cli.render.progress import TrainingProgress
from thresher.cli.render.warning_sink import sink
from thresher.cli.steps.final_warnings import warn_of_bad_lines
from thresher.data.block import Block
from thresher.data.formats import FORMATS
from thresher.data.scan import scan
from thresher.data.shuffled import TRUE_SHUFFLES, ShuffledSource
from thresher.data.source import Source
from thresher.data.writing import why_not_current, write
from thresher.errors import ParameterError
from thresher.rules import RULES, core_args
from thresher.training.fitting import Specification


def _check_overwrite(path: str) -> None:
    """Raise ParameterError if the file exists and is not a cache."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            head = file.read(64)
        if head and not head.startswith(FORMATS["cache"].magics):
            raise ParameterError(
                f"--cache {path}: the file exists and is not a cache; it is not overwritten"
            )


def cached(
    source: Source,
    path: str,
    reading: dict[str, Any],
    observer: TrainingProgress,
    spec: Specification,
) -> Source:
    """Return a source that reads the cache; write the cache first if it is missing or outdated.

    The cache holds values in the number type of the learner. For float32, that halves its size.
    If rows are shuffled, it holds them in buckets.
    """
    dtype = core_args.rows_dtype(spec.rule, spec.params)
    if RULES[spec.rule].streams and spec.params.get("shuffle") in TRUE_SHUFFLES:
        shuffled = ShuffledSource(source, 0, path, dtype)
        shuffled.stops = source.stops
        reason = shuffled.why_read()
        if reason is not None:
            _check_overwrite(path)
            observer.tell("note", message=f"writing the cache {path}: {reason}")
            shuffled.read()
        return shuffled
    reason = why_not_current(path, source, dtype)
    if reason is not None:
        _check_overwrite(path)
        observer.tell("note", message=f"writing the cache {path}: {reason}")

        def check_stop(block: Block) -> None:
            if observer.stops():
                raise KeyboardInterrupt

        strict = sink().strict  # else the warning comes at the end of the command
        at_end = (lambda: warn_of_bad_lines(source)) if strict else None
        write(source, path, "cache", check_stop, dtype, at_end)
    kept = {name: reading[name] for name in ("bits", "multilabel", "threads") if name in reading}
    made = scan(path, format="cache", kinds=source.kinds, **kept)
    made.given = source.settled()
    made.bad_lines.count, made.bad_lines.first = source.bad_lines.count, source.bad_lines.first
    return made
