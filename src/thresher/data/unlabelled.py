"""Leaves out rows without a label, as bad lines or silently."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.bad_lines import BadLines
from thresher.data.block import Block
from thresher.data.label_checks import missing_labels
from thresher.data.open_streams import open_bytes
from thresher.data.paths import can_reopen

__all__ = ["without_unlabelled"]


def without_unlabelled(block: Block, bad_lines: BadLines | None) -> Block:
    """Return the rows of a block that have a label.

    Parameters
    ----------
    block : Block
        Rows with one label each.
    bad_lines : BadLines or None
        Counts the other rows as bad lines, if it is given.
    """
    if block.labels is None or not (none := missing_labels(block.labels)).any():
        return block
    native, labels = block.native, block.labels
    lines = block.lines
    if lines is None:
        lines = np.array([native.line(row) for row in range(block.rows)], np.int64)
    if bad_lines is not None:
        _count(block, lines, none, bad_lines)
    keep = np.flatnonzero(~none)
    starts = np.asarray(native.starts).astype(np.int64)
    sizes = np.diff(starts)[keep]
    after = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(starts[keep] - after[:-1], sizes) + np.arange(after[-1])
    tags: list[bytes] | None = native.tags  # type: ignore[assignment]
    made = _core.make_block(
        starts=after,
        keys=np.ascontiguousarray(np.asarray(native.keys)[places]),
        values=np.ascontiguousarray(np.asarray(native.values)[places]),
        labels=None if block.words is not None else np.ascontiguousarray(labels[keep]),
        weights=None if block.weights is None else np.ascontiguousarray(block.weights[keep]),
        tags=None if tags is None else [tags[row] for row in keep],
        names=native.names,
        columns=block.width,
        first_line=native.first_line,
        offset=native.offset,
    )
    words = None if block.words is None else block.words[keep]
    return replace(block, native=made, words=words, lines=lines[keep])


def _count(
    block: Block, lines: NDArray[np.int64], none: NDArray[np.bool_], bad_lines: BadLines
) -> None:
    """Count rows as bad lines."""
    copied = bad_lines.policy == "quarantine"
    texts = _texts(block, lines[none]) if copied else [b""] * int(none.sum())
    for row, text in zip(np.flatnonzero(none).tolist(), texts, strict=True):
        file, line, what = block.end.file, int(lines[row]), ""
        if bad_lines.is_first(file, line):
            what = f"{block.label_place(row)}: the row has no label"
        bad_lines.add(file, line, what, text)


def _texts(block: Block, lines: NDArray[np.int64]) -> list[bytes]:
    """Return the text of lines of a block, for a quarantine file; empty if it is not known."""
    native = block.native
    if not native.bytes or not can_reopen(block.file):
        return [b""] * len(lines)
    with open_bytes(block.file) as stream:
        if not stream.seekable_plain:
            return [b""] * len(lines)
    with open(block.file, "rb") as file:
        file.seek(native.offset)
        found = file.read(native.bytes).split(b"\n")
    return [found[int(line) - native.first_line].rstrip(b"\r") for line in lines]
