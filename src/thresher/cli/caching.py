"""The cache of a run: made where there is none, or where it is not of these data any more."""

from __future__ import annotations

import os
from typing import Any

from thresher.cli.show import Shown
from thresher.data.block import Block
from thresher.data.cache import about_of, why_not_current
from thresher.data.source import Source, scan
from thresher.data.writing import write
from thresher.training.passes import Interrupted


def cached(source: Source, path: str, reading: dict[str, Any], watcher: Shown) -> Source:
    """Return the cache of a source, made now where it is not there or not current."""
    about = about_of(source)
    reason = "it is not there yet"
    if os.path.exists(path):
        reason = why_not_current(path, about) or ""
    if reason:
        watcher.tell("note", message=f"making the cache {path}: {reason}")

        def see(block: Block) -> None:
            if watcher.stops():
                raise Interrupted

        write(source, path, "cache", about, see)
    kept = {name: reading[name] for name in ("bits", "multilabel", "threads") if name in reading}
    made = scan(path, format="cache", **kept)
    made.bad_lines.count, made.bad_lines.first = source.bad_lines.count, source.bad_lines.first
    return made
