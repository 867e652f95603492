"""Labels that are words in caches: a cache holds numbers, and its header the words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher import _core
from thresher.data.block import Block
from thresher.data.label_checks import places_of
from thresher.errors import DataError

if TYPE_CHECKING:
    from thresher.data.source import Source

__all__ = ["numbered", "worded", "words_in", "words_of"]


def words_of(source: Source) -> list[str] | None:
    """Return the different labels of a source if they are words; None if they are numbers.

    Reads all rows if they are words.
    """
    if not source.rereadable or not source.kinds:  # only tables have words
        return None
    first = next(iter(source.blocks()), None)
    if first is None or (first.words is None and first.sets is None):
        return None
    return [str(label) for label in source.labels().tolist()]


def words_in(about: str) -> NDArray[Any] | None:
    """Return the words from the header of a cache; None if its labels are numbers."""
    try:
        words = json.loads(about).get("words")
    except (ValueError, AttributeError):
        return None
    return np.array(words, object) if words else None


def numbered(block: Block, words: list[str] | None) -> _core.Block:
    """Return the rows of a block with numbers instead of words."""
    if block.words is None and block.sets is None:
        return block.native
    if words is None:
        raise DataError(
            f"{block.place(0)}: labels are words; a cache of rows that can be read only once needs "
            f"numbers"
        )
    classes = np.array(words)
    native, fields = block.native, dict[str, Any]()
    if block.sets is not None:
        starts, labels = block.sets
        fields["label_starts"] = np.ascontiguousarray(starts, np.int64)
        fields["label_values"] = places_of(classes, labels)[0].astype(np.float64)
    else:
        assert block.words is not None
        numbers, known = places_of(classes, block.words)
        fields["labels"] = np.where(known, numbers, np.nan)
    tags: Any = native.tags
    return _core.make_block(
        starts=np.asarray(native.starts),
        keys=np.asarray(native.keys),
        values=np.asarray(native.values),
        weights=native.weights,
        tags=tags,
        names=native.names,
        columns=block.width,
        first_line=native.first_line,
        **fields,
    )


def worded(native: _core.Block, words: NDArray[Any] | None) -> dict[str, Any]:
    """Return the arguments of `Block` with words instead of numbers."""
    if words is None:
        return {}
    if native.label_starts is not None and native.label_values is not None:
        return {"sets": (native.label_starts, words[native.label_values.astype(np.int64)])}
    labels = np.asarray(native.labels)
    known = ~np.isnan(labels)
    found = np.full(len(labels), None, object)
    found[known] = words[labels[known].astype(np.int64)]
    return {"words": found}
